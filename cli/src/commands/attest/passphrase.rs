//! Reads passphrases. A passphrase is never an argument: other users of the machine can list
//! arguments.

use crate::failure::Failure;
use console::Term;
use std::io::Read;
use zeroize::Zeroizing;

/// The longest passphrase, in bytes.
const MAX_PASSPHRASE_BYTES: usize = 4_096;

/// Reads an existing passphrase.
pub(super) fn read(source: &str) -> Result<Zeroizing<String>, Failure> {
    check(match source.split_once(':') {
        Some(("env", variable)) => {
            let told =
                |what| Failure::usage(format!("the passphrase: the variable `{variable}` {what}"));
            match std::env::var(variable) {
                Ok(value) => Zeroizing::new(value),
                Err(std::env::VarError::NotPresent) => return Err(told("is not set")),
                Err(std::env::VarError::NotUnicode(_)) => return Err(told("is not text in UTF-8")),
            }
        }
        Some(("file", path)) => read_file(path)?,
        None if source == "prompt" => prompt("Passphrase: ")?,
        // Do not repeat the source: it may be the passphrase itself, given by mistake.
        _ => {
            return Err(Failure::usage(
                "`--passphrase` takes `env:VARIABLE`, `file:PATH` or `prompt`",
            ));
        }
    })
}

/// Reads a new passphrase; a terminal prompts for it twice.
pub(super) fn choose(source: &str) -> Result<Zeroizing<String>, Failure> {
    let passphrase = read(source)?;
    if source == "prompt" && *prompt("Again: ")? != *passphrase {
        return Err(Failure::usage("the two passphrases differ; nothing was written"));
    }
    Ok(passphrase)
}

/// The first line of a file.
fn read_file(path: &str) -> Result<Zeroizing<String>, Failure> {
    let wrong =
        |error: std::io::Error| Failure::usage(format!("the passphrase: `{path}`: {error}"));
    let limit = u64::try_from(MAX_PASSPHRASE_BYTES).unwrap_or(u64::MAX) + 2;
    let mut text = Zeroizing::new(String::with_capacity(MAX_PASSPHRASE_BYTES + 2));
    let file = std::fs::File::open(path).map_err(wrong)?;
    file.take(limit).read_to_string(&mut text).map_err(wrong)?;
    let line = text.split(['\r', '\n']).next().unwrap_or_default();
    Ok(Zeroizing::new(line.to_owned()))
}

fn prompt(question: &str) -> Result<Zeroizing<String>, Failure> {
    let terminal = Term::stderr();
    if !terminal.is_term() {
        return Err(Failure::usage("a passphrase can be typed only at a terminal"));
    }
    crate::screen::ask(question);
    terminal.read_secure_line().map(Zeroizing::new).map_err(Failure::internal)
}

fn check(passphrase: Zeroizing<String>) -> Result<Zeroizing<String>, Failure> {
    if passphrase.is_empty() || passphrase.len() > MAX_PASSPHRASE_BYTES {
        return Err(Failure::usage(format!("a passphrase has 1 to {MAX_PASSPHRASE_BYTES} bytes")));
    }
    Ok(passphrase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_file(contents: &str) -> Result<Zeroizing<String>, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), contents).unwrap();
        read(&format!("file:{}", file.path().display()))
    }

    #[test]
    fn a_passphrase_is_the_first_line_of_its_file() {
        assert_eq!(*from_file("correct horse \r\nmore").unwrap(), "correct horse ");
        assert_eq!(*from_file("correct horse").unwrap(), "correct horse");
    }

    #[test]
    fn a_passphrase_ends_at_its_limit() {
        let long = "x".repeat(MAX_PASSPHRASE_BYTES);
        assert_eq!(*from_file(&format!("{long}\r\n")).unwrap(), long);
        assert!(from_file(&"x".repeat(MAX_PASSPHRASE_BYTES + 1)).is_err());
        assert!(from_file("\n").is_err());
    }

    #[test]
    fn a_passphrase_as_an_argument_is_refused_and_not_repeated() {
        for source in ["hunter2", "s3cret:word", ""] {
            let told = read(source).unwrap_err().to_string();
            assert!(told.contains("env:VARIABLE"), "{told}");
            assert!(source.is_empty() || !told.contains(source), "{told}");
        }
    }
}
