//! `holdpoint capture`: a server's surface as a file.

use crate::arguments::{CaptureCommand, Options};
use crate::configuration::Configuration;
use crate::confinement::{ConfinedIn, Otherwise};
use crate::failure::{Exit, Failure};
use crate::observation::{observe, remark_notes};
use crate::screen;
use crate::target::{Reach, home_path, server_id};
use crate::vouching::admit_before_look;
use contract::surface::read_capture;
use store::LaunchKey;

pub(crate) fn run(command: &CaptureCommand, options: &Options) -> Result<Exit, Failure> {
    let reach = Reach::of(&command.upstream)?;
    let home = home_path(options)?;
    let configuration = Configuration::read(&home.join("holdpoint.toml"))?;
    // A capture has no origin, so nothing is ever compared with what this key hashes.
    let key = LaunchKey::unkept()?;
    let id = server_id(&reach.origin(&key))?;
    let place = ConfinedIn { home: &home, configuration: &configuration, is_quiet: options.quiet };
    let reach = reach.configured_by(&id, &configuration, &command.upstream).confined(
        &id,
        &command.upstream.sandbox,
        place,
        Otherwise::AsBefore,
    )?;
    admit_before_look(&id, &reach, &configuration, &home)?;
    let surface = observe(&reach, &key, options)?;
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
        None => screen::print_raw(&capture)?,
        Some(path) => {
            std::fs::write(path, &capture)
                .map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?;
            // What is told is what `hash` says of the file: where the server comes from is not in it.
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
