//! The exact reason why a visit did not get a contract: a word from a closed vocabulary, with a
//! step and a number where they apply.
//!
//! INVARIANT: no part of it is text from a server, a package or its installer. The words are in the
//! log and never change.

use contract::surface::ListKind;
use engine::confinement::{ConfineError, InstallError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::process::ExitStatus;
use wire::dialer::DialError;
use wire::{Awaited, ObserveError};

/// Why a visit did not get a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    pub kind: CauseKind,
    /// The request in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Seconds, bytes, or the status given by a program, a server or HTTP, depending on the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// The number is the timeout in seconds.
    InstallTimeout,
    /// The number is the limit in bytes.
    InstallTooLarge,
    InstallFailed,
    NoInstaller,
    NoProgram,
    NotConfined,
    /// The number is the timeout in seconds.
    NoAnswer,
    /// The number is the exit status of the program.
    Exited,
    ClosedOutput,
    /// The number is the error code.
    AnsweredError,
    NotReadable,
    UnknownRevision,
    NotResolved,
    AddressRefused,
    NotConnected,
    NoTls,
    ConnectionLost,
    /// The number is the HTTP status.
    HttpStatus,
    /// The number is the HTTP status.
    Redirected,
    /// An error of the crawler itself.
    Internal,
}

/// A request during the visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    #[serde(rename = "connection")]
    Connection,
    #[serde(rename = "initialize")]
    Initialize,
    #[serde(rename = "server/discover")]
    Discover,
    #[serde(rename = "tools/list")]
    Tools,
    #[serde(rename = "prompts/list")]
    Prompts,
    #[serde(rename = "resources/list")]
    Resources,
    #[serde(rename = "resources/templates/list")]
    Templates,
}

impl Step {
    pub const fn as_str(self) -> &'static str {
        match self {
            Step::Connection => "connection",
            Step::Initialize => "initialize",
            Step::Discover => "server/discover",
            Step::Tools => ListKind::Tools.method(),
            Step::Prompts => ListKind::Prompts.method(),
            Step::Resources => ListKind::Resources.method(),
            Step::Templates => ListKind::ResourceTemplates.method(),
        }
    }

    pub const fn of_list(list: ListKind) -> Step {
        match list {
            ListKind::Tools => Step::Tools,
            ListKind::Prompts => Step::Prompts,
            ListKind::Resources => Step::Resources,
            ListKind::ResourceTemplates => Step::Templates,
        }
    }

    const fn of(awaited: Awaited) -> Step {
        match awaited {
            Awaited::Connection | Awaited::Call => Step::Connection,
            Awaited::Initialize => Step::Initialize,
            Awaited::Discover => Step::Discover,
            Awaited::List(list) => Step::of_list(list),
        }
    }

    fn of_method(method: &str) -> Option<Step> {
        let lists = ListKind::ALL.into_iter().map(Step::of_list);
        [Step::Initialize, Step::Discover].into_iter().chain(lists).find(|it| it.as_str() == method)
    }
}

/// The error codes that JSON-RPC reserves for itself and for protocols based on it.
const PROTOCOL_CODES: std::ops::RangeInclusive<i64> = -32_768..=-32_000;

impl From<CauseKind> for Cause {
    fn from(kind: CauseKind) -> Cause {
        Cause { kind, step: None, number: None }
    }
}

impl Cause {
    pub fn at(self, step: Step) -> Cause {
        Cause { step: Some(step), ..self }
    }

    pub fn with(self, number: impl TryInto<i64>) -> Cause {
        Cause { number: number.try_into().ok(), ..self }
    }

    pub(super) fn of_install(error: &ConfineError) -> Cause {
        match error {
            ConfineError::Install(InstallError::TimedOut { after, .. }) => {
                Cause::from(CauseKind::InstallTimeout).with(after.as_secs())
            }
            ConfineError::Install(InstallError::TooLarge { bytes, .. }) => {
                Cause::from(CauseKind::InstallTooLarge).with(*bytes)
            }
            ConfineError::Install(InstallError::Failed { .. }) => CauseKind::InstallFailed.into(),
            ConfineError::Install(InstallError::NoInstaller { .. }) => {
                CauseKind::NoInstaller.into()
            }
            ConfineError::Install(InstallError::NoProgram { .. }) | ConfineError::NoProgram(_) => {
                CauseKind::NoProgram.into()
            }
            ConfineError::Install(InstallError::Confine { .. })
            | ConfineError::Refused { .. }
            | ConfineError::Plan(_) => CauseKind::NotConfined.into(),
            ConfineError::Install(InstallError::Registry(_) | InstallError::File { .. })
            | ConfineError::File { .. } => CauseKind::Internal.into(),
        }
    }

    pub(super) fn of_listing(error: &ObserveError) -> Cause {
        match error {
            ObserveError::ProgramNotFound { .. }
            | ObserveError::DirectoryNotFound { .. }
            | ObserveError::CannotStart { .. } => CauseKind::NoProgram.into(),
            ObserveError::Exited { awaited, status, .. } => {
                Cause { number: code_of(*status), ..CauseKind::Exited.into() }
                    .at(Step::of(*awaited))
            }
            ObserveError::ClosedOutput { awaited, .. } => {
                Cause::from(CauseKind::ClosedOutput).at(Step::of(*awaited))
            }
            ObserveError::TimedOut { awaited, after, .. } => {
                Cause::from(CauseKind::NoAnswer).at(Step::of(*awaited)).with(after.as_secs())
            }
            ObserveError::Refused { method, code, .. } => {
                let step = Step::of_method(method);
                let cause = Cause { step, ..CauseKind::AnsweredError.into() };
                // Only codes of the protocol: otherwise a server could write arbitrary numbers into
                // the log.
                if PROTOCOL_CODES.contains(code) { cause.with(*code) } else { cause }
            }
            ObserveError::UnreadableHandshake { method, .. } => {
                Cause { step: Step::of_method(method), ..CauseKind::NotReadable.into() }
            }
            ObserveError::UnknownRevision { .. } => CauseKind::UnknownRevision.into(),
            ObserveError::NotResolved { .. } => CauseKind::NotResolved.into(),
            ObserveError::PrivateAddressRefused { .. }
            | ObserveError::AddressRefused { .. }
            | ObserveError::PlainHttp { .. }
            | ObserveError::StrangersPort { .. } => CauseKind::AddressRefused.into(),
            ObserveError::CannotConnect { .. } => CauseKind::NotConnected.into(),
            ObserveError::Tls { .. } => CauseKind::NoTls.into(),
            ObserveError::ConnectionLost { awaited, .. } => {
                Cause::from(CauseKind::ConnectionLost).at(Step::of(*awaited))
            }
            ObserveError::HttpStatus { method, status } => {
                let step = Step::of_method(method);
                Cause { step, ..CauseKind::HttpStatus.into() }.with(status.as_u16())
            }
            ObserveError::NeedsSignIn { .. } => Cause::from(CauseKind::HttpStatus).with(401),
            ObserveError::RedirectRefused { status, .. } => {
                Cause::from(CauseKind::Redirected).with(status.as_u16())
            }
            _ => CauseKind::Internal.into(),
        }
    }

    /// The cause for a URL that cannot be used.
    pub(super) fn of_url(_: &DialError) -> Cause {
        CauseKind::AddressRefused.into()
    }
}

/// The exit status of a program; `None` if a signal ended it.
fn code_of(status: ExitStatus) -> Option<i64> {
    status.code().map(i64::from)
}

impl CauseKind {
    /// The cause without its step and number.
    pub const fn summary(self) -> &'static str {
        match self {
            CauseKind::InstallTimeout => "the install took too long",
            CauseKind::InstallTooLarge => "the package grew too large while it was installed",
            CauseKind::InstallFailed => "the installer failed",
            CauseKind::NoInstaller => "the crawler has no installer for the package",
            CauseKind::NoProgram => "the package has no program to start",
            CauseKind::NotConfined => "the package could not be confined",
            CauseKind::NoAnswer => "a request was not answered in time",
            CauseKind::Exited => "the program ended before it answered",
            CauseKind::ClosedOutput => "the program closed its output before it answered",
            CauseKind::AnsweredError => "a request was answered with an error",
            CauseKind::NotReadable => "an answer could not be read in exactly one way",
            CauseKind::UnknownRevision => "the server speaks an unknown revision of the protocol",
            CauseKind::NotResolved => "the name of the server has no address",
            CauseKind::AddressRefused => {
                "the server is at an address that the crawler does not visit"
            }
            CauseKind::NotConnected => "the server could not be connected to",
            CauseKind::NoTls => "there was no secure connection to the server",
            CauseKind::ConnectionLost => "the connection to the server was lost",
            CauseKind::HttpStatus => "a request was answered with an error of HTTP",
            CauseKind::Redirected => "the server redirects elsewhere, which is not followed",
            CauseKind::Internal => "the crawler itself had a fault",
        }
    }
}

impl fmt::Display for Cause {
    /// A sentence without a full stop.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.step.filter(|step| *step != Step::Connection).map(Step::as_str);
        match (self.kind, step, self.number) {
            (CauseKind::InstallTimeout, _, Some(seconds)) => {
                write!(formatter, "the install took longer than {seconds} s")
            }
            (CauseKind::InstallTooLarge, _, Some(bytes)) => {
                let mebibytes = bytes >> 20;
                write!(
                    formatter,
                    "the package grew larger than {mebibytes} MiB while it was installed"
                )
            }
            (CauseKind::NoAnswer, Some(step), Some(seconds)) => {
                write!(formatter, "no answer to `{step}` within {seconds} s")
            }
            (CauseKind::NoAnswer, None, Some(seconds)) => {
                write!(formatter, "no answer within {seconds} s")
            }
            (CauseKind::Exited, Some(step), Some(status)) => write!(
                formatter,
                "the program ended before it answered `{step}`, with status {status}"
            ),
            (CauseKind::Exited, Some(step), None) => {
                write!(formatter, "the program ended before it answered `{step}`, by a signal")
            }
            (CauseKind::AnsweredError, Some(step), Some(code)) => {
                write!(formatter, "`{step}` was answered with error {code}")
            }
            (CauseKind::NotReadable, Some(step), _) => {
                write!(formatter, "the answer to `{step}` could not be read in exactly one way")
            }
            (CauseKind::HttpStatus, _, Some(status)) => {
                write!(formatter, "a request was answered with status {status}")
            }
            (kind, _, _) => formatter.write_str(kind.summary()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, sentence: &str) {
        let cause: Cause = serde_json::from_str(json).unwrap();
        assert_eq!(cause.to_string(), sentence);
        assert_eq!(serde_json::to_string(&cause).unwrap(), json);
    }

    #[test]
    fn a_cause_is_kept_as_words_and_told_as_a_sentence() {
        check(
            r#"{"kind":"no-answer","step":"tools/list","number":60}"#,
            "no answer to `tools/list` within 60 s",
        );
        check(r#"{"kind":"no-answer","step":"connection","number":60}"#, "no answer within 60 s");
        check(
            r#"{"kind":"exited","step":"initialize","number":1}"#,
            "the program ended before it answered `initialize`, with status 1",
        );
        check(
            r#"{"kind":"exited","step":"initialize"}"#,
            "the program ended before it answered `initialize`, by a signal",
        );
        check(
            r#"{"kind":"answered-error","step":"initialize","number":-32603}"#,
            "`initialize` was answered with error -32603",
        );
        check(
            r#"{"kind":"not-readable","step":"resources/templates/list"}"#,
            "the answer to `resources/templates/list` could not be read in exactly one way",
        );
        check(
            r#"{"kind":"install-too-large","number":2147483648}"#,
            "the package grew larger than 2048 MiB while it was installed",
        );
        check(r#"{"kind":"http-status","number":503}"#, "a request was answered with status 503");
        check(r#"{"kind":"not-resolved"}"#, "the name of the server has no address");
    }

    #[test]
    fn a_server_chooses_no_number_of_the_log() {
        for (code, kept) in [(-32_601, Some(-32_601)), (4_930_123_456_789, None), (0, None)] {
            let message = Default::default();
            let refused = ObserveError::Refused { method: "tools/list", code, message };
            assert_eq!(Cause::of_listing(&refused).number, kept, "{code}");
        }
    }

    #[test]
    fn other_words_are_not_read() {
        for text in [
            r#"{"kind":"because the server said so"}"#,
            r#"{"kind":"exited","step":"tools/call"}"#,
            r#"{"kind":"exited","said":"x"}"#,
            r#"{"kind":"exited","number":"1"}"#,
        ] {
            assert!(serde_json::from_str::<Cause>(text).is_err(), "{text}");
        }
    }
}
