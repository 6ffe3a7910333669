//! What can be typed after `holdpoint attest`.

use attest::{Digest, Host, KeyId};
use clap::{Args, Subcommand};
use contract::time::Timestamp;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct AttestCommand {
    #[command(subcommand)]
    pub(crate) command: AttestSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AttestSubcommand {
    /// Create a signing key and its public key
    #[command(
        after_help = "Examples:\n  holdpoint attest keygen acme-2026.pem --passphrase prompt\n  holdpoint attest keygen acme-2026.pem --passphrase env:PASSPHRASE\n\nWrites FILE (PKCS#8, for you alone) and FILE.pub (SPKI), both as PEM. Existing files are never overwritten."
    )]
    Keygen(KeygenCommand),
    /// Sign a document or a revocation list
    #[command(
        after_help = "Examples:\n  holdpoint attest sign mail.json --key acme-2026.pem --key-id acme-2026 -o signed.json\n  holdpoint attest sign revoked.json --key security.pem --passphrase prompt > list.json\n\nAn existing file is overwritten only if it is a document or a revocation list."
    )]
    Sign(SignCommand),
    /// Check whether a document admits a server, and print the clause that denies it
    #[command(
        after_help = "Examples:\n  holdpoint attest verify mail.json --trust-root root.json --required internal --host mail.example.com\n  holdpoint attest verify mail.json --trust-root root.json --required MNPI --scheme financial-services --json\n  holdpoint attest verify mail.json --trust-root root.json --required internal --program ./mail-server --program-digest sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\nExits with 0 (ADMIT) or 13 (DENY)."
    )]
    Verify(VerifyCommand),
    /// Explain a document or a revocation list, and check its signature
    #[command(
        after_help = "Examples:\n  holdpoint attest inspect mail.json\n  holdpoint attest inspect mail.json --trust-root root.json --json"
    )]
    Inspect(InspectCommand),
    /// Show classification schemes, or check one of your own
    #[command(
        after_help = "Examples:\n  holdpoint attest schemes\n  holdpoint attest schemes us-government\n  holdpoint attest schemes ours.json"
    )]
    Schemes(SchemesCommand),
    /// Add public keys to a trust root, list them, or remove one
    #[command(
        after_help = "Examples:\n  holdpoint attest trust add root.json acme-2026.pem.pub --level public --level internal\n  holdpoint attest trust list root.json\n  holdpoint attest trust remove root.json acme-2026"
    )]
    Trust(TrustCommand),
}

#[derive(Debug, Args)]
pub(crate) struct TrustCommand {
    #[command(subcommand)]
    pub(crate) command: TrustSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustSubcommand {
    /// Trust a key for some levels; creates the file if it does not exist
    #[command(
        after_help = "Example:\n  holdpoint attest trust add root.json acme-2026.pem.pub --level internal --not-after 2027-12-31"
    )]
    Add(AddCommand),
    /// Show the trusted keys, their levels and when they expire
    #[command(after_help = "Example:\n  holdpoint attest trust list root.json")]
    List(ListTrustCommand),
    /// Remove a trusted key
    #[command(after_help = "Example:\n  holdpoint attest trust remove root.json acme-2026")]
    Remove(RemoveCommand),
}

#[derive(Debug, Args)]
pub(crate) struct AddCommand {
    /// The trust root
    #[arg(value_name = "ROOT")]
    pub(crate) trust_root: PathBuf,
    /// The public key, as PEM
    #[arg(value_name = "PEM")]
    pub(crate) key: PathBuf,
    /// A level that the key may vouch for (repeatable); no level includes another
    #[arg(long, value_name = "LEVEL", required_unless_present = "may_revoke")]
    pub(crate) level: Vec<String>,
    /// The key id that documents use [default: the file's name without `.pem` and `.pub`]
    #[arg(long, value_name = "ID")]
    pub(crate) key_id: Option<KeyId>,
    /// When the key expires, in UTC; a date means its first moment
    #[arg(long, value_name = "TIME", value_parser = read_moment)]
    pub(crate) not_after: Option<Timestamp>,
    /// Let the key sign revocation lists
    #[arg(long)]
    pub(crate) may_revoke: bool,
    /// The classification scheme of the levels
    #[arg(long, value_name = "SCHEME")]
    pub(crate) scheme: Option<String>,
    /// A note for people who read the file
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListTrustCommand {
    /// The trust root
    #[arg(value_name = "ROOT")]
    pub(crate) trust_root: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveCommand {
    /// The trust root
    #[arg(value_name = "ROOT")]
    pub(crate) trust_root: PathBuf,
    /// The key id that documents use
    #[arg(value_name = "KEY_ID")]
    pub(crate) key_id: KeyId,
}

#[derive(Debug, Args)]
pub(crate) struct KeygenCommand {
    /// Where to write the private key
    pub(crate) file: PathBuf,
    /// Encrypt it with a passphrase, read from `env:VARIABLE`, `file:PATH` or `prompt`
    #[arg(long, value_name = "SOURCE")]
    pub(crate) passphrase: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SignCommand {
    /// The document, or the revocation list
    #[arg(value_name = "DOC")]
    pub(crate) document: PathBuf,
    /// The private key, as PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The key's id in trust roots [default: `signerKeyId` of the document]
    #[arg(long, value_name = "ID")]
    pub(crate) key_id: Option<KeyId>,
    /// The key's passphrase, read from `env:VARIABLE`, `file:PATH` or `prompt`
    #[arg(long, value_name = "SOURCE")]
    pub(crate) passphrase: Option<String>,
    /// Where to write the signed document [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyCommand {
    /// The document
    #[arg(value_name = "DOC")]
    pub(crate) document: PathBuf,
    /// The trust root: the keys whose signatures count
    #[arg(long, value_name = "FILE")]
    pub(crate) trust_root: PathBuf,
    /// The level that the server needs
    #[arg(long, value_name = "LEVEL")]
    pub(crate) required: String,
    /// A built-in scheme, or a file with your own
    #[arg(long, value_name = "SCHEME", default_value = "default")]
    pub(crate) scheme: String,
    /// The host that the document came from
    #[arg(long, value_name = "HOST", conflicts_with = "program")]
    pub(crate) host: Option<Host>,
    /// The program's file, for a server on this machine
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// The digest that the program must have; needed if the document does not name one
    #[arg(long, value_name = "DIGEST", requires = "program")]
    pub(crate) program_digest: Option<Digest>,
    /// A signed list of signers and documents that no longer count
    #[arg(long, value_name = "FILE")]
    pub(crate) revocations: Option<PathBuf>,
    /// Verify as of this moment, in UTC [default: now]
    #[arg(long, value_name = "TIME", value_parser = read_moment)]
    pub(crate) now: Option<Timestamp>,
}

#[derive(Debug, Args)]
pub(crate) struct InspectCommand {
    /// The document, or the revocation list
    #[arg(value_name = "DOC")]
    pub(crate) document: PathBuf,
    /// Check the signature with the keys of this trust root
    #[arg(long, value_name = "FILE")]
    pub(crate) trust_root: Option<PathBuf>,
    /// A built-in scheme, or a file with your own
    #[arg(long, value_name = "SCHEME", default_value = "default")]
    pub(crate) scheme: String,
}

#[derive(Debug, Args)]
pub(crate) struct SchemesCommand {
    /// A built-in scheme, or a file with your own [default: all built-in ones]
    pub(crate) scheme: Option<String>,
}

fn read_moment(text: &str) -> Result<Timestamp, String> {
    let expected =
        "expected a moment in UTC like `2027-01-31T00:00:00Z`, or a date for its first moment";
    Timestamp::parse(text).ok_or_else(|| expected.to_owned())
}
