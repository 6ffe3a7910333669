//! A redirect URI may be any text. Two lines are a registered address and the one that a client
//! requests. A browser is only redirected to the second if an independent URL parser finds the same
//! host, path and query in both, and the same port unless the address is on the user's own machine.

use settings::gateway::{MAX_REDIRECT_URI_BYTES, RedirectKind, RedirectUri};
use url::Url;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (first, second) = text.split_once('\n').unwrap_or((text, text));
    let (Some(registered), Some(asked)) = (read(first), read(second)) else { return };
    let (before, after) = (url(first), url(second));
    assert!(registered.allows(&registered));
    assert_eq!(registered.allows(&asked), asked.allows(&registered));
    if !registered.allows(&asked) {
        return;
    }
    let is_loopback = asked.kind() == RedirectKind::Loopback;
    assert_eq!(registered.kind(), asked.kind());
    assert_eq!((before.scheme(), before.host_str()), (after.scheme(), after.host_str()));
    assert_eq!((before.path(), before.query()), (after.path(), after.query()));
    assert!(is_loopback || before.port() == after.port());
}

fn url(text: &str) -> Url {
    Url::parse(text).expect("a redirect URI is a URL")
}

/// Parses an address, and checks the properties of accepted ones.
fn read(text: &str) -> Option<RedirectUri> {
    let read = text.parse::<RedirectUri>().ok()?;
    let url = url(text);
    assert!(text.len() <= MAX_REDIRECT_URI_BYTES);
    assert_eq!(read.as_str(), text, "it is kept as it was written");
    assert!(url.fragment().is_none());
    match read.kind() {
        RedirectKind::Web | RedirectKind::Loopback => {
            assert!(url.username().is_empty() && url.password().is_none());
            assert_eq!(url.host_str(), Some(read.place()), "a person is shown the host");
        }
        RedirectKind::PrivateScheme => assert_eq!(read.place(), format!("{}:", url.scheme())),
    }
    match read.kind() {
        RedirectKind::Web => assert_eq!(url.scheme(), "https"),
        RedirectKind::Loopback => {
            assert_eq!(url.scheme(), "http");
            assert!(matches!(read.place(), "127.0.0.1" | "[::1]" | "localhost"));
        }
        RedirectKind::PrivateScheme => assert!(!matches!(url.scheme(), "http" | "https")),
    }
    Some(read)
}
