//! The identity of a server: attestation documents, classification schemes, the trust root, and the
//! rules for admitting a server.
//!
//! This crate does no I/O, reads no clock and generates no keys: bytes, times, hosts and seeds are
//! passed in. Only verification creates a [`VerifiedAttestation`].
#![forbid(unsafe_code)]

mod admission;
mod allowlist;
mod body;
mod denial;
mod digest;
mod document;
mod draft;
#[cfg(test)]
mod fixture;
mod host;
mod installed;
mod key;
mod key_id;
mod limits;
mod revocation;
mod scheme;
mod shape;
mod statement;
mod target;
mod trust;
mod verify;

pub use admission::{
    Admission, DEFAULT_CACHE_SECONDS, Flavor, IN_BAND_CAPABILITY, TOOL_DENIED_EVENT, UnknownFlavor,
    WARN_ONLY, WELL_KNOWN_PATHS,
};
pub use allowlist::{AllowlistError, ToolAllowlist};
pub use denial::{Clause, Denial, Reason};
pub use digest::{Algorithm, AttestationDigest, BadDigest, Digest, DigestHasher};
pub use document::{SignatureState, UnverifiedAttestation};
pub use draft::{Draft, DraftError};
pub use host::{BadHost, Host};
pub use installed::{
    InstallRecord, Manifest, ManifestError, NoPlace, Place, RecordError, Recorded, UnknownPackage,
    identify,
};
pub use key::{BadKey, KeyFingerprint, PublicKey, Salt, SigningKey};
pub use key_id::{BadKeyId, KeyId};
pub use limits::*;
pub use revocation::{RevocationError, RevocationList};
pub use scheme::{Clearance, Level, Scheme, SchemeError};
pub use shape::ShapeError;
pub use statement::{Statement, UnverifiedRevocationList};
pub use target::{Binding, Package, PackageSighting, Program, Target};
pub use trust::{Signer, SignerError, TrustRoot, TrustRootError};
pub use verify::{
    AttestedIdentity, Requirement, UnknownLevel, VerifiedAttestation, Vouched, verify,
};
