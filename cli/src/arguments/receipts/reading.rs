//! What can be typed to read receipts: which ones, how many, in what form.

use crate::failure::Failure;
use crate::observation::now;
use clap::Args;
use ledger::export::Format;
use ledger::receipt::Filter;
use ledger::record::RulingResult;
use std::path::PathBuf;

/// The most receipts that `list` shows. `export` has no such bound.
const MAX_LISTED: u64 = 100_000;

/// Whose receipts.
#[derive(Debug, Clone, Args)]
pub(crate) struct FolderArguments {
    /// A folder of receipts [default: the home's]
    #[arg(long, value_name = "DIR")]
    pub(crate) receipts: Option<PathBuf>,
}

/// Which receipts.
#[derive(Debug, Args)]
pub(crate) struct FilterArguments {
    /// Only of this server
    #[arg(long, value_name = "ID")]
    server: Option<String>,
    /// Only of this tool, prompt or resource
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only of this principal
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Only calls that were allowed, denied or held
    #[arg(long, value_name = "DECISION", value_parser = read_decision)]
    decision: Option<RulingResult>,
    /// Only with this reason code
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// Only ids that begin with these digits
    #[arg(long = "id", value_name = "DIGITS")]
    id: Option<String>,
    /// Only from this moment on: a date, a moment in UTC, `today`, `yesterday`, or an age (1h, 2d)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only before this moment
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
}

impl FilterArguments {
    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        let moment = |text: &Option<String>| {
            text.as_ref().map(|text| ledger::receipt::moment(text, now())).transpose()
        };
        let since =
            moment(&self.since).map_err(|error| Failure::usage(format!("`--since`: {error}")))?;
        let until =
            moment(&self.until).map_err(|error| Failure::usage(format!("`--until`: {error}")))?;
        Ok(Filter {
            server: self.server.clone(),
            tool: self.tool.clone(),
            principal: self.principal.clone(),
            decision: self.decision,
            reason: self.reason.clone(),
            id: self.id.as_deref().map(digits).transpose()?,
            since,
            until,
        })
    }
}

/// People's words for a decision, and the ledger's own.
fn read_decision(text: &str) -> Result<RulingResult, String> {
    match text {
        "allowed" | "allow" => Ok(RulingResult::Allow),
        "denied" | "deny" => Ok(RulingResult::Deny),
        "held" | "require_approval" => Ok(RulingResult::RequireApproval),
        _ => Err("expected `allowed`, `denied` or `held`".to_owned()),
    }
}

/// The first digits of a receipt's id, as ids are printed.
pub(crate) fn digits(text: &str) -> Result<String, Failure> {
    let is_id = (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_ascii_lowercase()).ok_or_else(|| {
        Failure::usage("a receipt's id is 32 hexadecimal digits, or the first of them: `holdpoint receipts list` shows them")
    })
}

#[derive(Debug, Args)]
pub(crate) struct ListCommand {
    #[command(flatten)]
    pub(crate) folder: FolderArguments,
    #[command(flatten)]
    pub(crate) filter: FilterArguments,
    /// How many, the newest last
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=MAX_LISTED))]
    pub(crate) count: u64,
    /// Go on with what comes, until interrupted: a call is shown when it has ended
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Events only, the chains' own bookkeeping with them
    #[arg(long, conflicts_with = "all")]
    pub(crate) events: bool,
    /// Calls and all events, the chains' own bookkeeping with them
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowCommand {
    #[command(flatten)]
    pub(crate) folder: FolderArguments,
    /// A receipt's id, or its first digits
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct ExportCommand {
    #[command(flatten)]
    pub(crate) folder: FolderArguments,
    #[command(flatten)]
    pub(crate) filter: FilterArguments,
    /// jsonl, csv, ocsf or cef
    #[arg(long, value_name = "FORMAT", default_value_t = Format::Jsonl)]
    pub(crate) format: Format,
    /// Where to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Send to the collectors of the configuration, from where the last run ended, until interrupted
    #[arg(long, conflicts_with_all = ["format", "output", "server", "tool", "principal", "decision", "reason", "id", "since", "until", "receipts"])]
    pub(crate) live: bool,
}
