//! `holdpoint scenario NAME`: a real MCP server over stdio that changes under the same name. `demo`
//! and the tests put the gate in front of it. Users do not run it, so help does not list it.

pub(crate) mod battery;
mod phase;
mod server;

use crate::failure::{Exit, Failure};
use phase::Stage;
use server::Server;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest line that is read.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;
/// How often the state file is checked for a change of phase.
const WATCH_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, clap::Args)]
pub(crate) struct ScenarioCommand {
    /// A case of the drift battery
    name: String,
    /// The file that says `before` or `after`, also while the server runs
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// Append every byte that is read to a file
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Change once this many tool calls were answered
    #[arg(long, value_name = "N")]
    change_on_call: Option<u64>,
    /// Do not announce the change
    #[arg(long)]
    withhold: bool,
}

pub(crate) fn run(command: &ScenarioCommand) -> Result<Exit, Failure> {
    let Some(case) = battery::find(&command.name)? else {
        let names = battery::names().collect::<Vec<_>>().join(", ");
        let name = &command.name;
        return Err(Failure::usage(format!("no scenario `{name}`; there are {names}")));
    };
    let mut server = Server::new(case, Stage::new(&command.state), std::io::stdout());
    server.change_on_call = command.change_on_call;
    server.is_withholding = command.withhold;
    let server = Arc::new(Mutex::new(server));
    watch(&server);
    let record = command.record.as_deref().map(open_record).transpose()?;
    serve(&server, Recorded { input: std::io::stdin().lock(), record })
}

fn open_record(path: &Path) -> Result<File, Failure> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))
}

/// Announces a change even while no request comes in.
fn watch<W: Write + Send + 'static>(server: &Arc<Mutex<Server<W>>>) {
    let server = Arc::downgrade(server);
    std::thread::spawn(move || {
        while let Some(server) = server.upgrade() {
            let told = server.lock().unwrap_or_else(PoisonError::into_inner).look();
            if told.is_err() {
                return;
            }
            drop(server);
            std::thread::sleep(WATCH_INTERVAL);
        }
    });
}

fn serve<W: Write>(server: &Mutex<Server<W>>, input: impl Read) -> Result<Exit, Failure> {
    let mut lines = BufReader::new(input);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut lines).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(Exit::Fine);
        }
        if read as u64 > MAX_LINE_BYTES {
            let message = format!("a line of more than {MAX_LINE_BYTES} bytes");
            return Err(Failure::unreachable(message));
        }
        let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
        if server.hear(&line).is_err() {
            // The client has closed the pipe, which ends the server.
            return Ok(Exit::Fine);
        }
    }
}

/// An input that records its bytes as they are read, before they are parsed.
struct Recorded<R> {
    input: R,
    record: Option<File>,
}

impl<R: Read> Read for Recorded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.input.read(buffer)?;
        if let (Some(record), Some(read)) = (&mut self.record, buffer.get(..count)) {
            record.write_all(read)?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
