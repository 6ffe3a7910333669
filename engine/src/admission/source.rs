//! Where a server's document is looked for.

use attest::{Denial, IN_BAND_CAPABILITY, MAX_DOCUMENT_BYTES, WELL_KNOWN_PATHS};
use contract::json::Document;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use wire::HttpEndpoint;
use wire::attestation::{FETCH_PATIENCE, FetchLimits, fetch};

/// Where a document is looked for.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file that the operator names, also for a server that publishes nothing. No other place is asked.
    File(PathBuf),
    /// The well-known places of a remote server's origin, then what it says of itself.
    Published(HttpEndpoint),
    /// What a server says of itself, in the answer to `initialize` or `server/discover`.
    InBand,
}

impl Source {
    /// The document, or nothing where there is none anywhere.
    pub(super) fn find(&self, handshake: Option<&str>) -> Result<Option<Vec<u8>>, Denial> {
        match self {
            Source::File(path) => read(path, MAX_DOCUMENT_BYTES).map(Some),
            Source::Published(endpoint) => {
                let limits = FetchLimits { bytes: MAX_DOCUMENT_BYTES, patience: FETCH_PATIENCE };
                let found = fetch(endpoint, &WELL_KNOWN_PATHS, limits);
                let found = found.map_err(Denial::fetch_failed)?;
                Ok(found.or_else(|| in_band(handshake?)))
            }
            Source::InBand => Ok(handshake.and_then(in_band)),
        }
    }
}

/// A file's bytes, or one more than the limit: whoever reads them says that it is too much.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Denial> {
    let failed =
        |error: std::io::Error| Denial::fetch_failed(format!("`{}`: {error}", path.display()));
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path).map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// `capabilities.experimental` of a handshake may carry the document.
fn in_band(handshake: &str) -> Option<Vec<u8>> {
    let document = Document::parse(handshake).ok()?;
    let experimental = document.root().get("capabilities")?.get("experimental")?;
    let found = experimental.get(IN_BAND_CAPABILITY)?;
    Some(found.raw().as_bytes().to_vec())
}
