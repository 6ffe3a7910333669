//! Why a program cannot be started confined.

use crate::profile::Level;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("this system offers the level `{offered}` and the profile asks for `{asked}`: {why}")]
    Level { asked: Level, offered: Level, why: String },
    #[error("the workspace `{}` {why}", path.display())]
    Workspace { path: PathBuf, why: &'static str },
    #[error("`{}` cannot be shown to the program: {why}", path.display())]
    Path { path: PathBuf, why: String },
    #[error("the program `{program}` was not found")]
    ProgramNotFound { program: String },
    #[error("the sandbox could not be set up: {0}")]
    Setup(String),
    #[error("the sandbox was not ready in time")]
    TimedOut,
    #[error("the sandbox could not be set up: {what}")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}
