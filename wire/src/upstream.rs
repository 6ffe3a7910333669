//! Where a server is: a program to start, or an address to connect to.

use crate::authorizer::Authorizer;
use crate::confinement::Confinement;
use crate::endpoint::EndpointUrl;
use http::{HeaderName, HeaderValue};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A server to observe.
#[derive(Debug, Clone)]
pub enum Upstream {
    Stdio(StdioLaunch),
    Http(HttpEndpoint),
}

/// A program that speaks MCP on its standard input and output.
#[derive(Clone, Default)]
pub struct StdioLaunch {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Added to the environment of this process.
    pub environment: Vec<(OsString, OsString)>,
    pub directory: Option<PathBuf>,
    /// How the program is confined. It is started by this or not at all.
    pub confinement: Option<Arc<dyn Confinement>>,
}

impl fmt::Debug for StdioLaunch {
    /// Arguments and values may be secrets, so only the shape is shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("StdioLaunch")
            .field("program", &self.program)
            .field("arguments", &self.arguments.len())
            .field("environment", &names)
            .field("directory", &self.directory)
            .field("is_confined", &self.confinement.is_some())
            .finish()
    }
}

/// A streamable HTTP endpoint.
#[derive(Clone)]
pub struct HttpEndpoint {
    pub url: EndpointUrl,
    /// Headers sent with every request, such as an authorization. They are sent only to this
    /// endpoint's origin.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Also allow private, shared, link-local and metadata addresses. Loopback is always allowed.
    pub allow_private: bool,
    /// Provides a credential for every request in addition to the headers, and handles a refused
    /// one.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

impl fmt::Debug for HttpEndpoint {
    /// Header values may be secrets, so only the names are shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("HttpEndpoint")
            .field("url", &self.url)
            .field("headers", &names)
            .field("allow_private", &self.allow_private)
            .field("signs_in", &self.authorizer.is_some())
            .finish()
    }
}
