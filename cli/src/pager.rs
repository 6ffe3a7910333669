//! Long output on a terminal goes through a pager: `$PAGER`, else `less -FRX`.

use crate::screen;
use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// Runs `work` and prints its output, through a pager if it is longer than the screen and a person
/// can turn pages.
pub(crate) fn paged<T>(is_wanted: bool, work: impl FnOnce() -> T) -> T {
    let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let Some(pager) = is_wanted.then(chosen).flatten().filter(|_| is_terminal) else {
        return work();
    };
    screen::start_collecting();
    let done = work();
    let text = screen::end_collecting();
    let lines = text.lines().count();
    let is_long = screen::height().is_none_or(|height| lines >= height);
    if !is_long || show(pager, &text).is_err() {
        let _ = screen::print_raw(&text);
    }
    done
}

/// A pager as a command.
enum Pager {
    Less,
    /// The value of `$PAGER`, which a shell interprets.
    Named(String),
}

/// `None` if the user or the terminal wants no pager: `PAGER=` and `PAGER=cat` turn it off.
fn chosen() -> Option<Pager> {
    if std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb") {
        return None;
    }
    match std::env::var("PAGER") {
        Ok(words) if words.trim().is_empty() || words.trim() == "cat" => None,
        Ok(words) => Some(Pager::Named(words)),
        Err(_) => Some(Pager::Less),
    }
}

fn show(pager: Pager, text: &str) -> std::io::Result<()> {
    let mut command = match pager {
        Pager::Less => {
            let mut less = Command::new("less");
            less.arg("-FRX").env("LESSCHARSET", "utf-8");
            less
        }
        Pager::Named(words) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(words);
            if std::env::var_os("LESS").is_none() {
                shell.env("LESS", "FRX");
            }
            shell
        }
    };
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // The write fails if the user closes the pager early, which is no error.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().map(|_| ())
}
