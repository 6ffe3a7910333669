//! `holdpoint capture`: writes a server's surface to a file.

use crate::arguments::{CaptureCommand, Options};
use crate::failure::{Exit, Failure};
use crate::observation::observe_unpinned;
use crate::screen;
use contract::surface::read_capture;

pub(crate) fn run(command: &CaptureCommand, options: &Options) -> Result<Exit, Failure> {
    let (_, surface) = observe_unpinned(&command.upstream, options)?;
    let capture = surface.to_capture();
    match &command.output {
        None => screen::print_raw(&capture)?,
        Some(path) => {
            std::fs::write(path, &capture)
                .map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
            // Report what `hash` prints for the file: it does not contain the origin.
            let written = read_capture(capture.as_bytes()).map_err(Failure::internal)?;
            if options.json {
                screen::print_json(&serde_json::json!({
                    "file": path,
                    "entries": written.entries().count(),
                    "surface_hash": written.surface_hash(),
                }))?;
            } else if !options.quiet {
                let count = written.entries().count();
                screen::remark(format!("{count} entries written to {}", path.display()));
            }
        }
    }
    Ok(Exit::Fine)
}
