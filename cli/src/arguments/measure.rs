//! `holdpoint calibrate` and `holdpoint evaluate`.

use clap::{Args, Subcommand};
use gate::posture::Posture;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct CalibrateCommand {
    #[command(subcommand)]
    pub(crate) command: CalibrateSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CalibrateSubcommand {
    /// Report how often holds were overridden, by posture and kind of change
    #[command(
        after_help = "Examples:\n  holdpoint calibrate report\n  holdpoint calibrate report --json\n  holdpoint calibrate report --plot calibration.svg\n\nIt measures and decides nothing: what the gate holds stays held."
    )]
    Report(CalibrateReport),
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateReport {
    /// Further outcomes, one JSON object a line, as `holdpoint evaluate gate --outcomes` writes them
    #[arg(long, value_name = "FILE")]
    pub(crate) outcomes: Option<PathBuf>,
    /// Write a plot of the cells as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateCommand {
    #[command(subcommand)]
    pub(crate) command: EvaluateSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvaluateSubcommand {
    /// Measure the gate on held-out mutations of real contracts, and its friction over release histories
    #[command(
        after_help = "Example:\n  holdpoint evaluate gate ./corpus --posture guard\n\nExits with 10 if the posture misses a case of a safety stratum, or too many of the others."
    )]
    Gate(EvaluateGate),
    /// Measure the screen on hostile and harmless texts and on newest releases
    #[command(after_help = "Example:\n  holdpoint evaluate screen ./corpus --json")]
    Screen(EvaluateScreen),
    /// Write the tables and plots of both into a Markdown page
    #[command(after_help = "Example:\n  holdpoint evaluate page ./corpus --into docs/evidence.md")]
    Page(EvaluatePage),
}

/// A folder of captures, and how cases are made of it.
#[derive(Debug, Args)]
pub(crate) struct CorpusArguments {
    /// A folder with captures of releases: REGISTRY/PACKAGE/VERSION.json
    #[arg(value_name = "DIR")]
    pub(crate) corpus: PathBuf,
    /// The seed of the mutations
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Also give the cases to this program as `PROGRAM grade-drift` (mcp-pin)
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) peer: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateGate {
    #[command(flatten)]
    pub(crate) corpus: CorpusArguments,
    /// The posture that decides the exit code
    #[arg(long, value_name = "POSTURE", default_value = "guard")]
    pub(crate) posture: Posture,
    /// Write each case as an outcome, for `holdpoint calibrate report --outcomes`
    #[arg(long, value_name = "FILE")]
    pub(crate) outcomes: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateScreen {
    /// A folder with captures of releases, and with texts in hostile/texts.jsonl
    #[arg(value_name = "DIR")]
    pub(crate) corpus: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluatePage {
    #[command(flatten)]
    pub(crate) corpus: CorpusArguments,
    /// The page; what is between its marks `<!-- begin: holdpoint evaluate -->` and `<!-- end -->` is replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) into: PathBuf,
}
