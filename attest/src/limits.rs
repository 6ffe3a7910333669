//! All size limits in one place.

/// The longest attestation document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 256 * 1024;
/// The longest trust root, in bytes.
pub const MAX_TRUST_ROOT_BYTES: usize = 1024 * 1024;
/// The longest revocation list, in bytes.
pub const MAX_REVOCATION_LIST_BYTES: usize = 4 * 1024 * 1024;
/// The longest classification scheme, in bytes.
pub const MAX_SCHEME_BYTES: usize = 256 * 1024;
/// The longest PEM text of a key, in bytes.
pub const MAX_PEM_BYTES: usize = 8 * 1024;

/// The longest record of an installer, in bytes.
pub const MAX_INSTALL_RECORD_BYTES: usize = 16 * 1024 * 1024;
/// The longest `package.json` of an installed package, in bytes.
pub const MAX_PACKAGE_MANIFEST_BYTES: usize = 1024 * 1024;
/// The longest name of a package, in bytes: npm has the same limit.
pub const MAX_PACKAGE_NAME_BYTES: usize = 214;
/// The deepest nesting of installed packages, counting the innermost one.
pub const MAX_PACKAGE_NESTING: usize = 32;
/// The deepest nesting of an installer's record that is not JSON.
pub const MAX_RECORD_DEPTH: usize = 32;

/// The longest single text in any of these (an id, a name, a host), in bytes.
pub const MAX_TEXT_BYTES: usize = 1_024;
/// The longest id of a key, in bytes.
pub const MAX_KEY_ID_BYTES: usize = 256;

/// The most capabilities of a document.
pub const MAX_CAPABILITIES: usize = 64;
/// The most hosts that a document is bound to.
pub const MAX_HOSTS: usize = 256;
/// The most tools that a document names, and the most that an allowlist has.
pub const MAX_TOOLS: usize = 2_048;

/// The most signers of a trust root.
pub const MAX_SIGNERS: usize = 256;
/// The most revoked signers, and the most revoked documents, of a revocation list.
pub const MAX_REVOKED: usize = 16_384;

/// The longest validity of a revocation list, in days. An earlier list can hide a later one for
/// this long.
pub const MAX_REVOCATION_LIST_DAYS: i64 = 31;

/// The most levels of a classification scheme.
pub const MAX_LEVELS: usize = 64;
/// The most aliases of a level.
pub const MAX_ALIASES: usize = 64;
/// The most compartments, and the most releasability markings, of a scheme.
pub const MAX_MARKINGS: usize = 256;

/// The most rounds of PBKDF2 that an encrypted key may ask for.
pub const MAX_PBKDF2_ROUNDS: u32 = 10_000_000;
/// The most memory that an encrypted key may require for scrypt, in bytes.
pub const MAX_SCRYPT_BYTES: u64 = 256 * 1024 * 1024;
/// The highest scrypt parallelization that an encrypted key may require.
pub const MAX_SCRYPT_PARALLELIZATION: u16 = 16;
