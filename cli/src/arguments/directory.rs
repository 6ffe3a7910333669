//! What can be typed after `holdpoint directory` and `holdpoint crawl`.

use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DirectoryCommand {
    #[command(subcommand)]
    pub(crate) command: Option<DirectorySubcommand>,
    #[command(flatten)]
    pub(crate) place: DirectoryPlace,
    /// Only serve: never write, also where no other process does
    #[arg(long)]
    pub(crate) reader: bool,
    /// Copy another directory, verify what is copied, and serve that
    #[arg(long, value_name = "URL", requires = "key")]
    pub(crate) mirror: Option<String>,
    /// The public key of the log that is copied: a file, or the key itself
    #[arg(long, value_name = "KEY", requires = "mirror")]
    pub(crate) key: Option<String>,
    /// Where to listen [default: the configured address, else 127.0.0.1:8440]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
}

/// Which directory.
#[derive(Debug, Args)]
pub(crate) struct DirectoryPlace {
    /// The directory's settings [default: directory.toml in the home]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where the directory's data is [default: the configured folder, else `directory` in the home]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DirectorySubcommand {
    /// Check, prove or copy the log of any directory, with nothing but its URL and its public key
    #[command(
        after_help = "Examples:\n  holdpoint directory log verify --url https://directory.example.com --key log.pub\n  holdpoint directory log prove 17 --url https://directory.example.com --key log.pub\n  holdpoint directory log mirror ./copy --url https://directory.example.com --key log.pub"
    )]
    Log(LogCommand),
    /// Cosign the checkpoints of logs, each only if it extends what was cosigned before
    #[command(
        after_help = "Example:\n  holdpoint directory witness --listen 127.0.0.1:8441 --name witness.example.com --log log.pub"
    )]
    Witness(WitnessCommand),
    /// Anchor checkpoints with OpenTimestamps, and check anchors
    #[command(
        after_help = "Examples:\n  holdpoint directory anchor submit\n  holdpoint directory anchor upgrade\n  holdpoint directory anchor verify 1200.ots --checkpoint checkpoint.txt --header 0000…160 digits…"
    )]
    Anchor(AnchorCommand),
    /// Decide what the network's corpus serves, and see which keys contribute oddly
    #[command(
        after_help = "Examples:\n  holdpoint directory corpus list --standing conflict\n  holdpoint directory corpus adjudicate 9f2c…64 digits… dangerous --reason exfiltration\n  holdpoint directory corpus invalidate --owner acme\n  holdpoint directory corpus report"
    )]
    Corpus(CorpusCommand),
    /// Claim a server for its owner, look at claims again, and suspend them
    #[command(
        after_help = "Examples:\n  holdpoint directory claim list\n  holdpoint directory claim start com.example/weather --key owner.pub\n  holdpoint directory claim verify com.example/weather --key owner.pub --nonce 0069… --method dns\n  holdpoint directory claim check"
    )]
    Claim(ClaimCommand),
}

#[derive(Debug, Args)]
pub(crate) struct CorpusCommand {
    #[command(subcommand)]
    pub(crate) command: CorpusSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CorpusSubcommand {
    /// List definitions with what owners said of them and what is served
    #[command(
        after_help = "Examples:\n  holdpoint directory corpus list\n  holdpoint directory corpus list --standing conflict\n  holdpoint directory corpus list --found-later"
    )]
    List(CorpusList),
    /// Say what a definition is: this is served, whatever owners say
    #[command(
        after_help = "Examples:\n  holdpoint directory corpus adjudicate 9f2c…64 digits… dangerous --reason injection --text \"Orders the model to read a key.\"\n  holdpoint directory corpus adjudicate 9f2c…64 digits… cleared\n\nA definition that is found dangerous gets an advisory in the public log."
    )]
    Adjudicate(CorpusAdjudicate),
    /// Withdraw what is served of definitions, or all that an owner contributed
    #[command(
        after_help = "Examples:\n  holdpoint directory corpus invalidate 9f2c…64 digits…\n  holdpoint directory corpus invalidate --owner acme --text \"The key was stolen.\"\n\nWhat was served and is withdrawn gets an advisory in the public log."
    )]
    Invalidate(CorpusInvalidate),
    /// Show which keys contribute much, in bursts, or against others, over 30 days
    #[command(after_help = "Example:\n  holdpoint directory corpus report")]
    Report(DirectoryPlace),
}

#[derive(Debug, Args)]
pub(crate) struct CorpusList {
    #[command(flatten)]
    pub(crate) place: DirectoryPlace,
    /// Only those that stand so
    #[arg(long, value_name = "STANDING", value_parser = ["served", "waiting", "conflict", "invalidated"])]
    pub(crate) standing: Option<String>,
    /// Instead: definitions in which a later reading of the crawl found what an earlier one did not
    #[arg(long, conflicts_with = "standing")]
    pub(crate) found_later: bool,
    /// How many at most
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) limit: u64,
}

#[derive(Debug, Args)]
pub(crate) struct CorpusAdjudicate {
    /// The definition hash
    pub(crate) hash: String,
    /// What it is
    #[arg(value_parser = ["dangerous", "cleared"])]
    pub(crate) verdict: String,
    #[command(flatten)]
    pub(crate) place: DirectoryPlace,
    /// Why, as one word of the corpus [default: none, or reviewed-benign for cleared]
    #[arg(long, value_name = "CLASS", value_parser = ["hidden-instructions", "exfiltration", "injection", "overclaim", "shadowing", "secret-access", "destructive-flip", "conformance", "reviewed-benign"])]
    pub(crate) reason: Option<String>,
    /// The text of the advisory, for people [default: a fixed sentence]
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CorpusInvalidate {
    /// Definition hashes
    #[arg(required_unless_present = "owner")]
    pub(crate) hashes: Vec<String>,
    #[command(flatten)]
    pub(crate) place: DirectoryPlace,
    /// Everything that this owner contributed and reported
    #[arg(long, value_name = "NAME", conflicts_with = "hashes")]
    pub(crate) owner: Option<String>,
    /// The text of the advisory, for people [default: a fixed sentence]
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimCommand {
    #[command(subcommand)]
    pub(crate) command: ClaimSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClaimSubcommand {
    /// List claims with their states
    #[command(after_help = "Example:\n  holdpoint directory claim list")]
    List(DirectoryPlace),
    /// Print the line that an owner publishes, and where
    #[command(
        after_help = "Example:\n  holdpoint directory claim start com.example/weather --key owner.pub\n\nOwners do the same over the API: POST /api/v1/claims/start."
    )]
    Start(ClaimStart),
    /// Look for the line, and keep the claim if it is there
    #[command(
        after_help = "Example:\n  holdpoint directory claim verify com.example/weather --key owner.pub --nonce 0069… --method well-known\n\nOwners do the same over the API: POST /api/v1/claims/verify."
    )]
    Verify(ClaimVerify),
    /// Look at all claims that are due, or at those of one server now
    #[command(
        after_help = "Examples:\n  holdpoint directory claim check\n  holdpoint directory claim check com.example/weather\n\nA directory that runs and writes does this by itself, daily."
    )]
    Check(ClaimCheck),
    /// Suspend a claim
    #[command(
        after_help = "Example:\n  holdpoint directory claim suspend com.example/weather --key owner.pub"
    )]
    Suspend(ClaimStart),
}

#[derive(Debug, Args)]
pub(crate) struct ClaimStart {
    /// The server's id
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) place: DirectoryPlace,
    /// The owner's public key: a PEM file, or `ed25519:` and the key as base64
    #[arg(long, value_name = "KEY")]
    pub(crate) key: String,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimVerify {
    #[command(flatten)]
    pub(crate) claim: ClaimStart,
    /// The nonce of the line
    #[arg(long)]
    pub(crate) nonce: String,
    /// Where the line is
    #[arg(long, value_parser = ["dns", "well-known", "manifest", "attestation-key"])]
    pub(crate) method: String,
    /// With `attestation-key`: the signature, as base64
    #[arg(long, value_name = "BASE64")]
    pub(crate) signature: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ClaimCheck {
    /// The server's id
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) place: DirectoryPlace,
}

#[derive(Debug, Args)]
pub(crate) struct LogCommand {
    #[command(subcommand)]
    pub(crate) command: LogSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogSubcommand {
    /// Read every entry and every tile, and check signatures, hashes and histories
    #[command(
        after_help = "Examples:\n  holdpoint directory log verify --url https://directory.example.com --key log.pub\n  holdpoint directory log verify --folder ./copy --key log.pub --kept kept.checkpoint\n\nExits with 0, or with 14 if the log does not verify."
    )]
    Verify(LogVerify),
    /// Prove that an entry is in the log, or that the log only grew
    #[command(
        after_help = "Examples:\n  holdpoint directory log prove 17 --url https://directory.example.com --key log.pub > proof.json\n  holdpoint directory log prove --kept kept.checkpoint --url https://directory.example.com --key log.pub"
    )]
    Prove(LogProve),
    /// Copy the log into a folder, checking all that is copied
    #[command(
        after_help = "Example:\n  holdpoint directory log mirror ./copy --url https://directory.example.com --key log.pub"
    )]
    Mirror(LogMirror),
}

/// A log, and the key that it is checked with.
#[derive(Debug, Args)]
pub(crate) struct LogPlace {
    /// The directory's URL
    #[arg(long, value_name = "URL", required_unless_present = "folder")]
    pub(crate) url: Option<String>,
    /// A copy of the log in a folder
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) folder: Option<PathBuf>,
    /// The log's public key: a file, or the key itself
    #[arg(long, value_name = "KEY")]
    pub(crate) key: String,
}

#[derive(Debug, Args)]
pub(crate) struct LogVerify {
    #[command(flatten)]
    pub(crate) place: LogPlace,
    /// A checkpoint from before, which the log has to extend; the newest one is kept in its place
    #[arg(long, value_name = "FILE")]
    pub(crate) kept: Option<PathBuf>,
    /// Public keys of witnesses, of which each must have cosigned: files, or the keys themselves
    #[arg(long, value_name = "KEY")]
    pub(crate) witness: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogProve {
    /// The number of an entry
    #[arg(required_unless_present = "kept")]
    pub(crate) number: Option<u64>,
    #[command(flatten)]
    pub(crate) place: LogPlace,
    /// A checkpoint from before: prove that the log extends it
    #[arg(long, value_name = "FILE", conflicts_with = "number")]
    pub(crate) kept: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LogMirror {
    /// Where to copy to
    pub(crate) to: PathBuf,
    #[command(flatten)]
    pub(crate) place: LogPlace,
}

#[derive(Debug, Args)]
pub(crate) struct WitnessCommand {
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8441")]
    pub(crate) listen: SocketAddr,
    /// The name of the witness, which stands in its cosignatures
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// The public keys of the logs that it knows: files, or the keys themselves
    #[arg(long = "log", value_name = "KEY", required = true)]
    pub(crate) logs: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AnchorCommand {
    #[command(subcommand)]
    pub(crate) command: AnchorSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AnchorSubcommand {
    /// Ask the configured calendars to anchor the newest checkpoint
    #[command(after_help = "Example:\n  holdpoint directory anchor submit")]
    Submit(DirectoryPlace),
    /// Ask calendars whether anchors that are pending are in a block by now
    #[command(after_help = "Example:\n  holdpoint directory anchor upgrade")]
    Upgrade(DirectoryPlace),
    /// Check a proof against a checkpoint, and against a block's header that you supply
    #[command(
        after_help = "Examples:\n  holdpoint directory anchor verify 1200.ots --checkpoint checkpoint.txt\n  holdpoint directory anchor verify 1200.ots --checkpoint checkpoint.txt --header 0000…160 digits…"
    )]
    Verify(AnchorVerify),
}

#[derive(Debug, Args)]
pub(crate) struct AnchorVerify {
    /// The proof
    pub(crate) proof: PathBuf,
    /// The checkpoint that it is about, signed or not
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: PathBuf,
    /// The header of the Bitcoin block, in hexadecimal digits, from a source that you trust
    #[arg(long, value_name = "HEX")]
    pub(crate) header: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CrawlCommand {
    #[command(flatten)]
    pub(crate) place: DirectoryPlace,
    /// A file of servers, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) targets: Option<PathBuf>,
    /// The registry to list servers from
    #[arg(long, value_name = "URL", conflicts_with = "targets")]
    pub(crate) registry: Option<String>,
    /// How many of the newest releases of each package to visit [default: the configured number, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) releases: Option<u64>,
    /// Visits at a time, 1 or 2 [default: the configured number, else 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2))]
    pub(crate) workers: Option<u64>,
    /// How long a server may take for its handshake and all of its lists [default: the configured time, else 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) list_timeout: Option<u64>,
    /// How long the install of a package may take [default: the configured time, else 240]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub(crate) install_timeout: Option<u64>,
    /// Also visit servers that are not due, and releases that were seen before
    #[arg(long)]
    pub(crate) again: bool,
    /// Let packages run their install scripts, confined
    #[arg(long)]
    pub(crate) install_scripts: bool,
}
