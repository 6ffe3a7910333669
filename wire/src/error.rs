//! Why a server could not be observed, with everything that the user needs to act on it.

use crate::ServerText;
use crate::http::address::AddressClass;
use contract::origin::shown_program;
use contract::surface::ListKind;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// What the client was waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    Connection,
    Initialize,
    Discover,
    List(ListKind),
    Call,
}

impl fmt::Display for Awaited {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Connection => formatter.write_str("the connection"),
            Awaited::Initialize => formatter.write_str("the answer to `initialize`"),
            Awaited::Discover => formatter.write_str("the answer to `server/discover`"),
            Awaited::Call => formatter.write_str("the answer to `tools/call`"),
            Awaited::List(list) => write!(formatter, "the answer to `{}`", list.method()),
        }
    }
}

/// Why a server could not be observed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    #[error("the program `{}` was not found", shown(.program))]
    ProgramNotFound { program: OsString },
    #[error("the directory `{}` was not found", .directory.display())]
    DirectoryNotFound { directory: PathBuf },
    #[error("the program `{}` could not be started: {source}", shown(.program))]
    CannotStart { program: OsString, source: std::io::Error },
    #[error("the server exited ({status}) before {awaited} arrived{}", said(.stderr))]
    Exited { awaited: Awaited, status: ExitStatus, stderr: ServerText },
    #[error("the server closed its standard output before {awaited} arrived{}", said(.stderr))]
    ClosedOutput { awaited: Awaited, stderr: ServerText },
    #[error("waited {} s for {awaited}, which did not arrive{}", seconds(*.after), said(.stderr))]
    TimedOut { awaited: Awaited, after: Duration, stderr: ServerText },
    #[error("the server answered `{method}` with error {code}: `{message}`")]
    Refused { method: &'static str, code: i64, message: ServerText },
    #[error("the answer to `{method}` cannot be read: {reason}")]
    UnreadableHandshake { method: &'static str, reason: String },
    #[error(
        "the server speaks revision `{revision}` of the protocol, which Holdpoint does not support"
    )]
    UnknownRevision { revision: ServerText },

    #[error("no address was found for `{host}`: {source}")]
    NotResolved { host: String, source: std::io::Error },
    #[error("`{host}` is at {address}, {class}: refused; allow private addresses to reach it")]
    PrivateAddressRefused { host: String, address: IpAddr, class: AddressClass },
    #[error("`{host}` is at {address}, {class}: refused")]
    AddressRefused { host: String, address: IpAddr, class: AddressClass },
    #[error("plain http is for loopback addresses only, and `{host}` is at {address}; use https")]
    PlainHttp { host: String, address: IpAddr },
    #[error("`{host}` is reached over https on port 443 only, not on port {port}")]
    StrangersPort { host: String, port: u16 },
    #[error("could not connect to `{host}` at {address}: {source}")]
    CannotConnect { host: String, address: IpAddr, source: std::io::Error },
    #[error("no secure connection to `{host}`: {source}")]
    Tls { host: String, source: std::io::Error },
    #[error("the connection to `{host}` failed while waiting for {awaited}: {source}")]
    ConnectionLost { host: String, awaited: Awaited, source: hyper::Error },
    #[error("the header `{name}` is set by the protocol and cannot be given")]
    HeaderNotAllowed { name: http::HeaderName },
    #[error("the server answered with status {status} to `{method}`{}", hint(*.status))]
    HttpStatus { method: &'static str, status: http::StatusCode },
    #[error("the server needs a sign-in (status 401{}); give its token as a header",
        if *.challenged { " with WWW-Authenticate" } else { ", without WWW-Authenticate" })]
    NeedsSignIn { challenged: bool },
    #[error("{words}")]
    Withheld { words: String },
    #[error(
        "the server redirects to `{target}` (status {status}); redirects are not followed, give that URL yourself if you trust it"
    )]
    RedirectRefused { status: http::StatusCode, target: ServerText },

    #[error("no randomness for request ids: {0}")]
    NoRandomness(getrandom::Error),
}

impl ObserveError {
    /// The error without the server's standard error.
    pub fn without_stderr(&self) -> String {
        let whole = self.to_string();
        let quoted = self.stderr().map(said).unwrap_or_default();
        whole.strip_suffix(&quoted).unwrap_or(&whole).to_owned()
    }

    /// The end of the server's standard error, unless it is empty.
    pub fn stderr(&self) -> Option<&ServerText> {
        match self {
            ObserveError::Exited { stderr, .. }
            | ObserveError::ClosedOutput { stderr, .. }
            | ObserveError::TimedOut { stderr, .. } => Some(stderr).filter(|text| !text.is_empty()),
            _ => None,
        }
    }
}

/// Whole seconds, with tenths if there is a fraction.
pub(crate) fn seconds(duration: Duration) -> String {
    let tenths = (duration.as_millis() + 50) / 100;
    match tenths % 10 {
        0 => format!("{}", tenths / 10),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

fn said(stderr: &ServerText) -> String {
    if stderr.is_empty() {
        String::new()
    } else {
        format!("; its standard error ends with:\n{stderr}")
    }
}

fn hint(status: http::StatusCode) -> &'static str {
    match status.as_u16() {
        404 | 405 => {
            "; if it offers only the HTTP+SSE transport of revision 2024-11-05 (a GET that streams events), \
             that one is not supported: look for its streamable HTTP endpoint"
        }
        403 => "; it refuses this client or its credentials",
        _ => "",
    }
}

/// The folders of a path, and words that are not a program's name, may contain secrets.
fn shown(program: &OsStr) -> String {
    shown_program(&program.to_string_lossy())
}
