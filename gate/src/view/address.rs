//! Spellings of a resource's address. A server may treat many of them as the same address, and does
//! not say which ones, so spellings that any reader may treat as the same are treated as the same
//! here.

use percent_encoding::percent_decode_str;

/// How often an address is percent-decoded: a server behind a proxy may see it decoded twice.
const MAX_DECODINGS: usize = 3;

/// An address without anything that spellings differ in.
///
/// In addition to the normalization of RFC 3986 (case of scheme and host, percent-encoding, dot
/// segments, default ports), it drops what only some readers distinguish: letter case everywhere,
/// encoded delimiters, backslashes, empty segments and trailing slashes, user information, a
/// fragment and the host `localhost` of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AddressKey {
    place: String,
    query: Option<String>,
}

impl AddressKey {
    pub(super) fn of(address: &str) -> AddressKey {
        let is_ignored = |letter: char| letter.is_whitespace() || letter.is_control();
        let address: String = address.chars().filter(|letter| !is_ignored(*letter)).collect();
        let address = address.split('#').next().unwrap_or_default();
        let (place, query) = match address.split_once('?') {
            Some((place, query)) => (place, Some(decoded(query))),
            None => (address, None),
        };
        AddressKey { place: normal_place(place), query: query.filter(|query| !query.is_empty()) }
    }

    /// The key without its query: a server that ignores queries treats all of them as the same.
    pub(super) fn without_query(&self) -> Option<AddressKey> {
        self.query.as_ref().map(|_| AddressKey { place: self.place.clone(), query: None })
    }
}

fn normal_place(place: &str) -> String {
    let decoded = decoded(place).replace('\\', "/");
    let (scheme, rest) = decoded.split_once(':').unwrap_or(("", &decoded));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
        None => ("", rest),
    };
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    format!("{scheme}://{}/{}", normal_host(scheme, authority), segments.join("/"))
}

fn normal_host<'a>(scheme: &str, authority: &'a str) -> &'a str {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let default_port = match scheme {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        "ftp" => ":21",
        _ => ":",
    };
    let host = host.strip_suffix(default_port).unwrap_or(host);
    let host = host.strip_suffix(':').unwrap_or(host);
    let host = host.strip_suffix('.').unwrap_or(host);
    if scheme == "file" && host == "localhost" { "" } else { host }
}

fn decoded(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..MAX_DECODINGS {
        let decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            break;
        }
        text = decoded;
    }
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_address_have_one_key() {
        let check = |address: &str, others: &[&str]| {
            for other in others {
                assert_eq!(AddressKey::of(address), AddressKey::of(other), "{address} {other}");
            }
        };
        check(
            "file:///home/ada/notes.txt",
            &[
                "FILE:///home/ada/notes.txt",
                "file:/home/ada/notes.txt",
                "file://localhost/home/ada/notes.txt",
                "file:///home/ada/%6eotes%2Etxt",
                "file:///home/ada/%256eotes.txt",
                "file:///home//ada/./notes.txt",
                "file:///home/eve/../ada/notes.txt",
                "file:///home/eve/%2e%2E/ada/notes.txt",
                "file:///home%2Fada%5cnotes.txt",
                "file:///home/ada/notes.txt/",
                "file:///home/ada/Notes.TXT",
                " file:///home/ada/notes\u{9}.txt#top",
                "file:///home/ada/notes.txt?",
            ],
        );
        check(
            "https://example.com",
            &["https://EXAMPLE.com:443/", "https://me@example.com./", "HTTPS://example%2ecom:"],
        );
        check("memo:One", &["memo:one", "MEMO://%2Fone", "memo:/one"]);
    }

    #[test]
    fn other_addresses_have_other_keys() {
        let check = |one: &str, other: &str| {
            assert_ne!(AddressKey::of(one), AddressKey::of(other), "{one} {other}");
        };
        check("file:///a", "file:///b");
        check("file:///a", "file:///a/b");
        check("file:///a", "file://host/a");
        check("http://a:8080/", "http://a/");
        check("memo:one", "note:one");
        check("memo:one?id=1", "memo:one?id=2");
        check("memo:one?id=1", "memo:one");
    }
}
