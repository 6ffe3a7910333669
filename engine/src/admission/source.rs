//! Where a server's document is searched for.

use attest::{Denial, IN_BAND_CAPABILITY, MAX_DOCUMENT_BYTES, WELL_KNOWN_PATHS};
use contract::hash::sha256_hex;
use contract::json::Document;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use wire::HttpEndpoint;
use wire::attestation::{FETCH_PATIENCE, FetchLimits, Greeting, fetch, greet};

/// The largest response to the gate's own handshake. It may contain a document in addition to
/// everything else.
pub(super) const MAX_GREETING_BYTES: usize = 4 * MAX_DOCUMENT_BYTES;

/// Where a document is searched for.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file that the operator names, also for a server that publishes nothing. No other place is
    /// used.
    File(PathBuf),
    /// The well-known paths of a remote server's origin, then its handshake.
    Published(HttpEndpoint),
    /// The server's handshake: the response to `initialize` or `server/discover`.
    InBand,
}

/// A document as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundDocument {
    pub(super) bytes: Vec<u8>,
    pub(super) is_in_band: bool,
}

/// The evidence of a check, used to decide whether a later handshake adds to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// The operator's file decides alone, so the handshake is not examined.
    pub(super) ignores_handshake: bool,
    /// The document was found in a handshake.
    pub(super) is_in_band: bool,
    /// The hash of the document; `None` if none was found.
    pub(super) document: Option<String>,
}

impl Evidence {
    pub(super) fn of(source: &Source, found: Option<&FoundDocument>) -> Evidence {
        Evidence {
            ignores_handshake: matches!(source, Source::File(_)),
            is_in_band: found.is_some_and(|found| found.is_in_band),
            document: found.map(|found| sha256_hex(&found.bytes)),
        }
    }

    /// Whether a check with this evidence also covers a handshake: it has no document, or the same
    /// one.
    pub(super) fn covers(&self, handshake: &str) -> bool {
        self.ignores_handshake
            || match in_band(handshake) {
                Some(document) => self.document == Some(sha256_hex(&document)),
                None => !self.is_in_band,
            }
    }
}

impl Source {
    /// Finds the document. Returns `None` if there is none. If there is no handshake with a remote
    /// server yet (`handshake` is `None`) and its well-known paths have no document, the gate does
    /// a handshake itself.
    pub(super) fn find(
        &self,
        handshake: Option<&str>,
        greeting: Greeting,
    ) -> Result<Option<FoundDocument>, Denial> {
        match self {
            Source::File(path) => read(path, MAX_DOCUMENT_BYTES)
                .map(|bytes| Some(FoundDocument { bytes, is_in_band: false })),
            Source::Published(endpoint) => {
                let limits = FetchLimits { bytes: MAX_DOCUMENT_BYTES, patience: FETCH_PATIENCE };
                let found = fetch(endpoint, &WELL_KNOWN_PATHS, limits);
                if let Some(bytes) = found.map_err(Denial::fetch_failed)? {
                    return Ok(Some(FoundDocument { bytes, is_in_band: false }));
                }
                if handshake.is_some() {
                    return Ok(handshake.and_then(found_in));
                }
                let limits = FetchLimits { bytes: MAX_GREETING_BYTES, patience: FETCH_PATIENCE };
                let said = greet(endpoint, greeting, limits).map_err(Denial::fetch_failed)?;
                Ok(said.as_deref().and_then(found_in))
            }
            Source::InBand => Ok(handshake.and_then(found_in)),
        }
    }

    /// A document in the handshake besides the one found elsewhere. It must verify too.
    pub(super) fn second_document(
        &self,
        handshake: Option<&str>,
        first: &FoundDocument,
    ) -> Option<Vec<u8>> {
        match self {
            Source::File(_) | Source::InBand => None,
            Source::Published(_) => {
                handshake.and_then(in_band).filter(|second| *second != first.bytes)
            }
        }
    }
}

/// Reads up to one byte more than the limit; the parser refuses anything that is too long.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Denial> {
    let failed =
        |error: std::io::Error| Denial::fetch_failed(format!("`{}`: {error}", path.display()));
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// The document in a handshake.
pub(super) fn found_in(handshake: &str) -> Option<FoundDocument> {
    in_band(handshake).map(|bytes| FoundDocument { bytes, is_in_band: true })
}

/// The document in a handshake's `capabilities.experimental`.
fn in_band(handshake: &str) -> Option<Vec<u8>> {
    let document = Document::parse(handshake).ok()?;
    let experimental = document.root().get("capabilities")?.get("experimental")?;
    let found = experimental.get(IN_BAND_CAPABILITY)?;
    Some(found.raw().as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(document: Option<&str>) -> String {
        let experimental = document.map(|document| format!(r#""mcp-attestation":{document}"#));
        format!(r#"{{"capabilities":{{"experimental":{{{}}}}}}}"#, experimental.unwrap_or_default())
    }

    #[test]
    fn a_handshake_needs_a_check_of_its_own_if_its_document_is_not_the_one_that_was_checked() {
        let endpoint = HttpEndpoint {
            url: "https://a.example/mcp".parse().unwrap(),
            headers: Vec::new(),
            allow_private: false,
            authorizer: None,
        };
        let published = Source::Published(endpoint);
        let found = |is_in_band| FoundDocument { bytes: b"{\"v\":1}".to_vec(), is_in_band };
        let covers = |source: &Source, found: Option<&FoundDocument>, document| {
            Evidence::of(source, found).covers(&handshake(document))
        };
        for (found, document, expected) in [
            (Some(found(false)), None, true),
            (Some(found(false)), Some("{\"v\":1}"), true),
            (Some(found(false)), Some("{\"v\":2}"), false),
            (Some(found(true)), Some("{\"v\":1}"), true),
            (Some(found(true)), Some("{\"v\":2}"), false),
            (Some(found(true)), None, false),
            (None, None, true),
            (None, Some("{\"v\":1}"), false),
        ] {
            assert_eq!(covers(&published, found.as_ref(), document), expected, "{document:?}");
        }
        let file = Source::File("document.json".into());
        assert!(covers(&file, Some(&found(false)), Some("{\"v\":2}")));
    }
}
