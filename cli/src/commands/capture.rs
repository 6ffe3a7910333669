//! `holdpoint capture`: a server's surface as a file.

use crate::arguments::{CaptureCommand, Options};
use crate::failure::{Exit, Failure};
use crate::observation::{observe, remark_notes};
use crate::screen;
use crate::target::Reach;

pub(crate) fn run(command: &CaptureCommand, options: &Options) -> Result<Exit, Failure> {
    let surface = observe(&Reach::of(&command.upstream)?, options)?;
    remark_notes(&surface, options);
    let unreadable: Vec<String> = surface
        .unreadable()
        .iter()
        .map(|(list, reason)| format!("`{}` cannot be read: {reason}", list.method()))
        .collect();
    if !unreadable.is_empty() {
        return Err(Failure::unreadable(unreadable.join("; ")));
    }
    let capture = surface.to_capture();
    match &command.output {
        None => screen::print_raw(&capture),
        Some(path) => {
            std::fs::write(path, &capture)
                .map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
            if options.json {
                screen::print_json(&serde_json::json!({
                    "file": path,
                    "entries": surface.entries().len(),
                    "surface_hash": surface.surface_hash(),
                }))?;
            } else if !options.quiet {
                let count = surface.entries().len();
                screen::remark(format!("{count} entries written to {}", path.display()));
            }
        }
    }
    Ok(Exit::Fine)
}
