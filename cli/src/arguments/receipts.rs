//! What can be typed after `holdpoint receipts`.

use clap::{Args, Subcommand};
use ledger::record::ReceiptId;
use std::path::PathBuf;

mod reading;

pub(crate) use reading::{ExportCommand, ListCommand, ShowCommand, digits};

#[derive(Debug, Args)]
pub(crate) struct ReceiptsCommand {
    #[command(subcommand)]
    pub(crate) command: ReceiptsSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReceiptsSubcommand {
    /// Show the newest receipts, and follow them
    #[command(
        after_help = "Examples:\n  holdpoint receipts list\n  holdpoint receipts list --decision held --since yesterday\n  holdpoint receipts list -f --server files"
    )]
    List(ListCommand),
    /// Show one receipt in full, with its place in the ledger
    #[command(after_help = "Example:\n  holdpoint receipts show 3f9a2c41")]
    Show(ShowCommand),
    /// Write receipts in the format of other tools, or send them as they are written
    #[command(
        after_help = "Examples:\n  holdpoint receipts export --format csv -o receipts.csv --since 30d\n  holdpoint receipts export --format ocsf > events.json\n  holdpoint receipts export --live"
    )]
    Export(ExportCommand),
    /// Check that nothing was removed, changed or inserted
    #[command(
        after_help = "Examples:\n  holdpoint receipts verify\n  holdpoint receipts verify evidence/receipts --key receipts.pub --head kept-elsewhere.txt\n  holdpoint receipts verify --proof proof.json --key receipts.pub\n\nExits with 0, or with 14 if the receipts do not verify."
    )]
    Verify(VerifyCommand),
    /// Prove to a third party that a receipt is in the ledger, or that the ledger only grew
    #[command(
        after_help = "Examples:\n  holdpoint receipts prove 5f0c…32 digits… > proof.json\n  holdpoint receipts prove --since last-month.checkpoint > grew.json\n  holdpoint receipts prove --heads > kept-elsewhere.txt"
    )]
    Prove(ProveCommand),
}

/// The key that signed the receipts.
#[derive(Debug, Clone, Args)]
pub(crate) struct EvidenceArguments {
    /// A file with the public keys that signed them, one a line [default: the home's `keys/receipts.pub`]
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyCommand {
    /// A folder of receipts [default: the home's]
    pub(crate) folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) evidence: EvidenceArguments,
    /// Checkpoints that were kept elsewhere; detects a missing newest part
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Vec<PathBuf>,
    /// Check a proof of `receipts prove` instead of a folder
    #[arg(long, value_name = "FILE", conflicts_with_all = ["folder", "head"])]
    pub(crate) proof: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["id", "since", "heads"]))]
pub(crate) struct ProveCommand {
    /// The receipt: all 32 digits, as `receipts show` prints them
    pub(crate) id: Option<ReceiptId>,
    /// Prove the line of the outcome instead of the decision
    #[arg(long, requires = "id")]
    pub(crate) outcome: bool,
    /// An older checkpoint: prove that its chain only grew since
    #[arg(long, value_name = "FILE")]
    pub(crate) since: Option<PathBuf>,
    /// Print the newest checkpoint of every chain, to keep elsewhere
    #[arg(long)]
    pub(crate) heads: bool,
    /// A folder of receipts [default: the home's]
    #[arg(long, value_name = "DIR")]
    pub(crate) receipts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) evidence: EvidenceArguments,
}
