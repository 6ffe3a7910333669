//! Exit codes, and failures that carry one.

mod refused_act;

use crate::arguments::Options;
use std::fmt;
use std::process::ExitCode;

/// The exit code of the process.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Fine,
    Usage,
    Held,
    Unreachable,
    Internal,
    /// Admission, policy or a preflight rule denies it.
    Denied,
    /// Evidence does not verify.
    Evidence,
    /// The user is less protected than they may think.
    Unprotected,
    /// The exit code of the server that `run` started.
    Server(u8),
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Usage => 2,
            Exit::Held => 10,
            Exit::Unreachable => 11,
            Exit::Internal => 12,
            Exit::Denied => 13,
            Exit::Evidence => 14,
            Exit::Unprotected => 15,
            Exit::Server(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Shown in place of the server's standard error: an agent with a shell must not learn from an
/// error message what the gate keeps from it.
const STDERR_LEFT_OUT: &str =
    "what it wrote to standard error is left out: a terminal shows it, and so does --server-text";

/// Why a command failed, as a message for a person.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) reason: Option<&'static str>,
    message: String,
    /// The message including what the server wrote to standard error.
    quoting: Option<String>,
}

impl Failure {
    fn new(exit: Exit, reason: Option<&'static str>, message: impl fmt::Display) -> Failure {
        Failure { exit, reason, message: message.to_string(), quoting: None }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Usage, None, message)
    }

    pub(crate) fn held(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Held, None, message)
    }

    pub(crate) fn unreachable(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Unreachable, Some("upstream_unreachable"), message)
    }

    /// A server could not be observed. Its standard error is only included by
    /// [`Failure::with_server_text`].
    pub(crate) fn quoting_server(error: &wire::ObserveError) -> Failure {
        if error.stderr().is_none() {
            return Failure::unreachable(error);
        }
        let message = format!("{}; {STDERR_LEFT_OUT}", error.without_stderr());
        Failure { quoting: Some(error.to_string()), ..Failure::unreachable(message) }
    }

    /// The failure including the server's own text, if there is any.
    pub(crate) fn with_server_text(self) -> Failure {
        match self.quoting {
            Some(message) => Failure { message, quoting: None, ..self },
            None => self,
        }
    }

    /// The server was reached, but its answer is invalid or ambiguous.
    pub(crate) fn unreadable(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Unreachable, Some("surface_unreadable"), message)
    }

    /// An invalid or ambiguous capture is held, as the list it came from would be.
    pub(crate) fn unreadable_capture(message: impl fmt::Display) -> Failure {
        Failure { exit: Exit::Held, ..Failure::unreadable(message) }
    }

    /// The server is not admitted.
    pub(crate) fn denied(reason: &'static str, message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Denied, Some(reason), message)
    }

    pub(crate) fn evidence(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Evidence, None, message)
    }

    pub(crate) fn internal(message: impl fmt::Display) -> Failure {
        Failure::new(Exit::Internal, Some("internal"), message)
    }
}

impl Failure {
    /// Adds that the disk is full, if it is. When Holdpoint cannot read or write its own files,
    /// that is the likeliest reason, and the errors of the system and of SQLite do not say what to
    /// do.
    pub(crate) fn explained_by_disk(self, options: &Options) -> Failure {
        let is_ours = self.exit == Exit::Internal;
        let home = crate::target::home_path(options).ok().filter(|_| is_ours);
        match home.and_then(|home| crate::disk::full(&home)) {
            Some(full) => Failure { message: format!("{full} ({})", self.message), ..self },
            None => self,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl From<store::StoreError> for Failure {
    fn from(error: store::StoreError) -> Failure {
        use store::StoreError as Error;
        match error {
            Error::Ledger(error) => error.into(),
            Error::Home(error) => error.into(),
            Error::Changed { .. } => Failure::held(error),
            Error::Newer { .. }
            | Error::Foreign { .. }
            | Error::NotShareable { .. }
            | Error::Address(_)
            | Error::UnfitServer { .. }
            | Error::NewerSchema { .. }
            | Error::ForeignSchema { .. }
            | Error::OtherKey { .. }
            | Error::NoKey { .. } => Failure::usage(error),
            Error::NothingToWithdraw { .. } | Error::OverLimit { .. } | Error::Refused(_) => {
                Failure::usage(error)
            }
            Error::Untrusted { .. } | Error::OlderStore { .. } => Failure::held(error),
            Error::Damaged { .. }
            | Error::Rigged { .. }
            | Error::Replaced { .. }
            | Error::NotTaken { .. }
            | Error::Busy { .. }
            | Error::Database { .. }
            | Error::DiskFull { .. }
            | Error::LeaseOver
            | Error::NotFollowed { .. }
            | Error::Unreachable { .. }
            | Error::Unresolved { .. }
            | Error::Server { .. }
            | Error::Unwitnessed { .. }
            | Error::Nameless
            | Error::Garbled { .. }
            | Error::Unreadable { .. } => Failure::internal(error),
        }
    }
}

impl From<store::receipts::ReceiptsError> for Failure {
    fn from(error: store::receipts::ReceiptsError) -> Failure {
        use store::receipts::ReceiptsError as Error;
        match error {
            Error::Home(error) => error.into(),
            Error::Key { .. } | Error::ArgsKey { .. } | Error::Index { .. } => {
                Failure::evidence(error)
            }
            Error::Busy { .. }
            | Error::Full { .. }
            | Error::Stopped(_)
            | Error::ForeignTicket
            | Error::Answered
            | Error::Write(_) => {
                Failure { reason: Some("ledger_unavailable"), ..Failure::internal(error) }
            }
        }
    }
}

impl From<store::HomeError> for Failure {
    fn from(error: store::HomeError) -> Failure {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match &error {
            store::HomeError::Io { source, .. }
                if matches!(source.kind(), StorageFull | QuotaExceeded) =>
            {
                Failure::internal(error)
            }
            _ => Failure::usage(error),
        }
    }
}

impl From<store::ObservationError> for Failure {
    fn from(error: store::ObservationError) -> Failure {
        Failure::internal(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::internal(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::internal(error)
    }
}
