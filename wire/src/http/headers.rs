//! Headers in both directions: those sent with every request, and those read from a response.

use crate::ServerText;
use crate::error::ObserveError;
use crate::limits::MAX_SESSION_ID_BYTES;
use crate::remote::parameters;
use crate::upstream::HttpEndpoint;
use ::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use ::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use url::{Position, Url};

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// Headers that the protocol sets, or that could redirect the request or alter the response.
const OWN_HEADERS: [&str; 18] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The content type of the request body.
pub(crate) fn json() -> HeaderValue {
    HeaderValue::from_static("application/json")
}

/// The content types accepted as the response to a POST.
pub(crate) fn json_or_events() -> HeaderValue {
    HeaderValue::from_static("application/json, text/event-stream")
}

/// The headers of every request to an endpoint: the configured ones, the host and the user agent.
pub(crate) fn of_endpoint(endpoint: &HttpEndpoint) -> Result<HeaderMap, ObserveError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        // A configured one could pass for an argument that the call does not have.
        let is_parameter = name.as_str().starts_with(parameters::PREFIX);
        if is_parameter || OWN_HEADERS.contains(&name.as_str()) {
            return Err(ObserveError::HeaderNotAllowed { name: name.clone() });
        }
        headers.append(name, value.clone());
    }
    let own = concat!("holdpoint/", env!("CARGO_PKG_VERSION"));
    headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(own));
    if let Ok(host) = HeaderValue::from_str(endpoint.url.authority()) {
        headers.insert(HOST, host);
    }
    Ok(headers)
}

/// The path for requests to an endpoint.
pub(crate) fn path_of(endpoint: &HttpEndpoint) -> Uri {
    endpoint.url.path_and_query().parse().unwrap_or_else(|_| Uri::from_static("/"))
}

pub(crate) fn session_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut id = headers.get(SESSION_ID)?.clone();
    let visible = id.as_bytes().iter().all(|byte| (0x21..=0x7e).contains(byte));
    if !visible || id.is_empty() || id.len() > MAX_SESSION_ID_BYTES {
        return None;
    }
    // The session id is a credential for the session.
    id.set_sensitive(true);
    Some(id)
}

pub(crate) fn plain_encoding(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_none_or(|value| value.as_bytes() == b"identity")
}

pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let media_type = value.split(';').next().unwrap_or("").trim();
    media_type.eq_ignore_ascii_case("text/event-stream")
}

/// The origin that a redirect leads to. The rest of the address is dropped because it may contain
/// secrets.
pub(crate) fn redirect_target(headers: &HeaderMap) -> ServerText {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("");
    let target = match Url::parse(location) {
        Ok(url) if url.has_host() => {
            format!("{}://{}", url.scheme(), &url[Position::BeforeHost..Position::AfterPort])
        }
        _ if location.is_empty() => "nowhere".to_owned(),
        _ => "another path of the same server".to_owned(),
    };
    ServerText::line(&target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_taken_over_up_to_the_limit_and_only_if_visible() {
        let taken = |bytes: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(SESSION_ID, HeaderValue::from_bytes(bytes).unwrap());
            session_id(&headers).is_some_and(|id| id.is_sensitive())
        };
        assert!(taken(b"abc-1"));
        assert!(taken(&[b'x'; MAX_SESSION_ID_BYTES]));
        assert!(!taken(&[b'x'; MAX_SESSION_ID_BYTES + 1]));
        assert!(!taken(b""));
        assert!(!taken(b"a b"));
        assert!(!taken(b"caf\xe9"));
    }

    #[test]
    fn a_redirect_shows_the_origin_of_its_target_only() {
        let shown = |location: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(LOCATION, location.parse().unwrap());
            redirect_target(&headers).as_str().to_owned()
        };
        assert_eq!(shown("https://user:pw@example.com:8443/a?b"), "https://example.com:8443");
        assert_eq!(shown("/login"), "another path of the same server");
        assert_eq!(shown(""), "nowhere");
    }
}
