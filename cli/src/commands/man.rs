//! `holdpoint man`: writes manual pages, generated from the argument definitions.

use crate::arguments::shell::ManCommand;
use crate::arguments::{Arguments, Options};
use crate::failure::{Exit, Failure};
use crate::screen::{self, DIM, styled};
use clap::CommandFactory;
use clap_mangen::Man;
use std::path::Path;

/// The title in the middle of a page's first line.
const MANUAL: &str = "Holdpoint";

pub(crate) fn run(command: &ManCommand, options: &Options) -> Result<Exit, Failure> {
    let mut general = Arguments::command();
    general.build();
    let Some(folder) = &command.out else {
        let mut page = Vec::new();
        page_of(general).render(&mut page)?;
        screen::print_raw(&String::from_utf8_lossy(&page))?;
        return Ok(Exit::Fine);
    };
    std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    let written = write_pages(general, folder)?;
    if options.json {
        screen::print_json(&serde_json::json!({ "folder": folder, "pages": written }))?;
    } else if !options.quiet {
        let pages = crate::report::count(written.len(), "page", "pages");
        screen::say(format!("{pages} written to {}", folder.display()));
        screen::say(styled(DIM, "read one: man -l FILE"));
    }
    Ok(Exit::Fine)
}

/// Writes a page for the command and for each subcommand that is not hidden. Returns the names of
/// the files.
fn write_pages(command: clap::Command, folder: &Path) -> Result<Vec<String>, Failure> {
    let mut written = Vec::new();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        written.extend(write_pages(below.clone(), folder)?);
    }
    let path =
        page_of(command).generate_to(folder).map_err(|error| cannot_write(folder, &error))?;
    written.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    Ok(written)
}

/// The date is left blank, so that pages of one version are reproducible.
fn page_of(command: clap::Command) -> Man {
    let source = concat!("holdpoint ", env!("CARGO_PKG_VERSION"));
    Man::new(command).manual(MANUAL).source(source).date(" ")
}

fn cannot_write(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("`{}`: {error}", folder.display()))
}
