//! `holdpoint evaluate`: measures how much the gate and the screen find on a folder of real
//! contracts, with bounds. The same folder and seed give the same tables.

mod corpus;
mod gate_table;
mod page;
mod peer;
mod screen_table;
mod table;

use crate::arguments::Options;
use crate::arguments::measure::{
    CorpusArguments, EvaluateCommand, EvaluateGate, EvaluatePage, EvaluateScreen,
    EvaluateSubcommand,
};
use crate::failure::{Exit, Failure};
use crate::screen;
use corpus::Corpus;
use gate_table::GateFigures;
use peer::Peer;
use screen_table::ScreenFigures;

pub(crate) fn run(command: &EvaluateCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        EvaluateSubcommand::Gate(command) => gate(command, options),
        EvaluateSubcommand::Screen(command) => screened(command, options),
        EvaluateSubcommand::Page(command) => page(command, options),
    }
}

fn gate(command: &EvaluateGate, options: &Options) -> Result<Exit, Failure> {
    let figures = gate_figures(&command.corpus)?;
    if let Some(path) = &command.outcomes {
        let named =
            |error: std::io::Error| Failure::usage(format!("`{}`: {error}", path.display()));
        std::fs::write(path, figures.outcomes()).map_err(named)?;
    }
    match options.json {
        true => screen::print_json(&figures.document())?,
        false => say_tables(&figures.tables()),
    }
    Ok(if figures.passes(command.posture) { Exit::Fine } else { Exit::Held })
}

fn screened(command: &EvaluateScreen, options: &Options) -> Result<Exit, Failure> {
    let figures = ScreenFigures::of(&Corpus::read(&command.corpus)?);
    match options.json {
        true => screen::print_json(&figures.document())?,
        false => say_tables(&figures.tables()),
    }
    Ok(Exit::Fine)
}

fn page(command: &EvaluatePage, options: &Options) -> Result<Exit, Failure> {
    let gate = gate_figures(&command.corpus)?;
    let screen = ScreenFigures::of(&Corpus::read(&command.corpus.corpus)?);
    let written = page::write(&command.into, &gate, &screen)?;
    match options.json {
        true => screen::print_json(&serde_json::json!({ "written": written }))?,
        false => written.iter().for_each(|path| screen::say(format!("wrote {path}"))),
    }
    Ok(Exit::Fine)
}

fn gate_figures(arguments: &CorpusArguments) -> Result<GateFigures, Failure> {
    let corpus = Corpus::read(&arguments.corpus)?;
    let peer = arguments.peer.as_deref().map(Peer::new);
    GateFigures::of(&corpus, arguments.seed, peer.as_ref())
}

fn say_tables(tables: &[table::Table]) {
    for table in tables {
        table.as_text().lines().for_each(screen::say);
        screen::say("");
    }
}
