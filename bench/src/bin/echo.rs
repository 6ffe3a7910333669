//! `echo [TOOLS [EDITION]]`: a server over standard input and output that answers each call with the call's own text.
#![allow(clippy::print_stderr, reason = "a measurement prints")]

use holdpoint_bench::server::Server;
use holdpoint_bench::standard;
use std::io::{self, BufRead, BufReader};
use std::process::ExitCode;

const CHUNK_BYTES: usize = 64 * 1024;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let mut number = |usual| numbers.next().unwrap_or(Ok(usual)).map_err(io::Error::other);
    let tools = usize::try_from(number(10)?).map_err(io::Error::other)?;
    let mut server = Server::new(tools, number(0)?);
    let mut input = BufReader::with_capacity(CHUNK_BYTES, standard::input()?);
    let mut output = standard::output()?;
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        server.answer(line.strip_suffix(b"\n").unwrap_or(&line), &mut output)?;
        line.clear();
    }
    Ok(())
}
