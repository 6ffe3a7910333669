//! `relay CMD…`: forwards bytes between its own standard streams and a program's, and does nothing
//! else.
//!
//! The baseline for the cost of the gate.
#![allow(clippy::print_stderr, reason = "a measurement prints")]

use holdpoint_bench::standard;
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};

/// The size of a read: the capacity of a pipe.
const CHUNK_BYTES: usize = 64 * 1024;

fn main() -> ExitCode {
    match relay() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("relay: {error}");
            ExitCode::FAILURE
        }
    }
}

fn relay() -> io::Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().ok_or_else(|| io::Error::other("which program?"))?;
    let mut child =
        Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (to_child, from_child) = (child.stdin.take(), child.stdout.take());
    std::thread::spawn(move || to_child.map(|to_child| pass_on(standard::input()?, to_child)));
    from_child.map(|from_child| pass_on(from_child, standard::output()?)).transpose()?;
    let status = child.wait()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Forwards until the input ends, and then closes the output.
fn pass_on(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = input.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        output.write_all(chunk.get(..count).unwrap_or_default())?;
    }
}
