//! Parses a client ID metadata document, in which a client identified by a URL describes itself.
//! Pure; the document is untrusted.

use contract::json::{Document, Node};
use settings::gateway::{MAX_REDIRECT_URIS, RedirectKind, RedirectUri};
use url::{Host, Url};

/// The largest document that is read.
pub(super) const MAX_DOCUMENT_BYTES: usize = 16 * 1024;
/// The longest name that a person is shown.
const MAX_NAME_CHARACTERS: usize = 80;

/// The validated URL of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentUrl {
    pub(super) text: String,
    pub(super) host: String,
}

impl DocumentUrl {
    /// Returns `None` if no document may be at this URL. `may_be_local` accepts plain HTTP on
    /// loopback addresses.
    pub(super) fn read(text: &str, may_be_local: bool) -> Option<DocumentUrl> {
        let is_plain = text.len() <= 512
            && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\\#".contains(&byte));
        let url = Url::parse(text).ok().filter(|_| is_plain)?;
        let host = url.host()?;
        let is_loopback = match &host {
            Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        let is_reachable = match url.scheme() {
            "https" => !is_loopback || may_be_local,
            "http" => is_loopback && may_be_local,
            _ => false,
        };
        // The draft requires a path. A text that `url` would normalize is refused, so that each
        // document has a single name.
        let is_exact = url.as_str() == text && url.path() != "/";
        let has_credentials = !url.username().is_empty() || url.password().is_some();
        let host = host.to_string();
        (is_reachable && is_exact && !has_credentials)
            .then(|| DocumentUrl { text: text.to_owned(), host })
    }
}

/// The client's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientDocument {
    pub(super) name: Option<String>,
    pub(super) redirect_uris: Vec<RedirectUri>,
}

impl ClientDocument {
    /// Parses the document at a URL, which must name that URL as its client id.
    pub(super) fn read(bytes: &[u8], url: &str) -> Result<ClientDocument, &'static str> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err("it is too long");
        }
        let document = Document::parse_bytes(bytes).map_err(|_| "it is not valid JSON")?;
        let root = document.root();
        let text = |name: &str| match root.get(name) {
            None => Ok(None),
            Some(node) => node.as_str().map(Some).ok_or("a member has the wrong type"),
        };
        if text("client_id")?.as_deref() != Some(url) {
            return Err("it is the document of another client");
        }
        // A client identified by its URL has no secret: one in a public document would be
        // everyone's.
        if root.get("client_secret").is_some() {
            return Err("it has a secret");
        }
        match text("token_endpoint_auth_method")?.as_deref() {
            None | Some("none") => {}
            Some(_) => return Err("its client authenticates in a way that is not served"),
        }
        let uris = root.get("redirect_uris").filter(|node| node.is_array());
        let uris = uris.ok_or("it lists no `redirect_uris`")?;
        if uris.items().take(MAX_REDIRECT_URIS + 1).count() > MAX_REDIRECT_URIS {
            return Err("it lists too many `redirect_uris`");
        }
        let read = |node: Node<'_>| {
            let uri: RedirectUri = node.as_str()?.parse().ok()?;
            // A private scheme without a dot may belong to another application, which may do more
            // with the address than redirect.
            let is_usable = match uri.kind() {
                RedirectKind::Web | RedirectKind::Loopback => true,
                RedirectKind::PrivateScheme => uri.place().contains('.'),
            };
            is_usable.then_some(uri)
        };
        // Leave out unusable addresses: a client may list some for other servers.
        let redirect_uris: Vec<RedirectUri> = uris.items().filter_map(read).collect();
        if redirect_uris.is_empty() {
            return Err("none of its `redirect_uris` can be used");
        }
        Ok(ClientDocument {
            name: text("client_name")?.and_then(|name| shown(&name)),
            redirect_uris,
        })
    }
}

/// A stranger's text for display: a single line without characters that hide or reorder others.
fn shown(text: &str) -> Option<String> {
    let is_shown = |c: &char| {
        c.is_alphanumeric() || c.is_ascii_punctuation() || matches!(c, ' ' | '–' | '—' | '·' | '’')
    };
    let name: String = text.chars().filter(is_shown).take(MAX_NAME_CHARACTERS).collect();
    let name = name.trim().to_owned();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://client.example/id.json";

    fn read(text: &str) -> Result<ClientDocument, &'static str> {
        ClientDocument::read(text.as_bytes(), URL)
    }

    fn good() -> String {
        format!(
            r#"{{"client_id":"{URL}","client_name":"Client","redirect_uris":["https://client.example/cb","http://127.0.0.1/cb"]}}"#
        )
    }

    #[test]
    fn a_document_names_its_own_url_and_has_no_secret() {
        let document = read(&good()).unwrap();
        assert_eq!(document.name.as_deref(), Some("Client"));
        assert_eq!(document.redirect_uris.len(), 2);
        for (old, new, why) in [
            (URL, "https://client.example/other.json", "another client"),
            ("\"client_name\":\"Client\"", "\"client_secret\":\"x\"", "a secret"),
            ("\"client_name\":\"Client\"", "\"client_name\":7", "wrong type"),
            (
                "\"client_name\":\"Client\"",
                "\"token_endpoint_auth_method\":\"client_secret_basic\"",
                "not served",
            ),
            ("\"client_name\":\"Client\"", "\"client_id\":\"x\"", "not valid JSON"),
            (r#"["https://client.example/cb","http://127.0.0.1/cb"]"#, "[]", "can be used"),
            (r#"["https://client.example/cb","http://127.0.0.1/cb"]"#, "7", "lists no"),
            (
                r#"["https://client.example/cb","http://127.0.0.1/cb"]"#,
                r#"["javascript:alert(1)","http://client.example/cb","cursor://x"]"#,
                "can be used",
            ),
        ] {
            let refused = read(&good().replacen(old, new, 1)).unwrap_err();
            assert!(refused.contains(why), "{new}: {refused}");
        }
    }

    #[test]
    fn a_document_is_bounded() {
        let with = |count: usize| {
            let uris: Vec<String> =
                (0..count).map(|n| format!("\"https://c.example/{n}\"")).collect();
            format!(r#"{{"client_id":"{URL}","redirect_uris":[{}]}}"#, uris.join(","))
        };
        assert!(read(&with(MAX_REDIRECT_URIS)).is_ok());
        assert!(read(&with(MAX_REDIRECT_URIS + 1)).is_err());
        let padded = |bytes: usize| format!("{}{}", good(), " ".repeat(bytes - good().len()));
        assert!(read(&padded(MAX_DOCUMENT_BYTES)).is_ok());
        assert!(read(&padded(MAX_DOCUMENT_BYTES + 1)).is_err());
    }

    #[test]
    fn a_name_cannot_hide_or_reorder_text() {
        for (text, expected) in [
            ("Editor", Some("Editor")),
            ("Ed\u{202e}rotid\u{200b}e", Some("Edrotide")),
            ("a\nb\tc", Some("abc")),
            ("\u{2066}\u{200b}", None),
            ("<b>Bank</b>", Some("<b>Bank</b>")),
        ] {
            assert_eq!(shown(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(shown(&"x".repeat(500)).unwrap().len(), MAX_NAME_CHARACTERS);
    }

    #[test]
    fn a_client_is_named_by_a_public_url_with_a_path() {
        for text in ["https://client.example/id.json", "https://client.example:8443/a?b=c"] {
            assert_eq!(DocumentUrl::read(text, false).unwrap().text, text);
        }
        for text in [
            "http://client.example/id.json",
            "http://127.0.0.1/id.json",
            "https://127.0.0.1/id.json",
            "https://[::1]/id.json",
            "https://localhost/id.json",
            "https://x.localhost/id.json",
            "https://client.example/",
            "https://client.example",
            "https://client.example/a/../id.json",
            "https://CLIENT.example/id.json",
            "https://u:p@client.example/id.json",
            "https://client.example/id.json#x",
            "https://0x7f.1/id.json",
            "ftp://client.example/id.json",
            "editor",
        ] {
            assert_eq!(DocumentUrl::read(text, false), None, "{text}");
        }
        assert!(DocumentUrl::read("http://127.0.0.1:9/id.json", true).is_some());
        assert!(DocumentUrl::read("http://client.example/id.json", true).is_none());
    }
}
