//! Long output on a terminal goes through a pager: `$PAGER`, else `less -FRX`.

use crate::screen;
use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// Prints what `work` says, through a pager if it is longer than the screen and a person is there to turn pages.
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
    /// The words of `$PAGER`, for the shell.
    Named(String),
}

/// `None` if the user or the terminal wants none: `PAGER=` and `PAGER=cat` turn it off.
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
        // A person who has seen enough closes the pager before it has read everything.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().map(|_| ())
}
