//! Checks whether a claim's line is published where an owner would put it. All requests go through
//! the one dialer, or to the resolver.

use super::dns::{DnsError, Resolver};
use super::{ClaimKey, Method, Place, line};
use crate::crawl::package::Registries;
use crate::subject::{PackageRegistry, SubjectId, encode_segment};
use serde::Deserialize;
use std::time::Duration;
use wire::attestation::FetchLimits;
use wire::dialer::{DialError, Dialer};

/// The largest file of claims that is read.
pub const MAX_FILE_BYTES: usize = 64 * 1024;
/// The largest registry document about one release.
const MAX_MANIFEST_BYTES: usize = 4 * 1024 * 1024;
/// The timeout of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most lines that are read per place.
const MAX_LINES: usize = 10_000;

/// Why a claim was not confirmed.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    #[error("this server cannot be claimed in this way")]
    Method,
    #[error("the line is not there")]
    Absent,
    #[error("the operator does not know this key as the publisher's")]
    UnknownKey,
    #[error("the signature is not one of this line by this key")]
    Signature,
    #[error(transparent)]
    Dns(#[from] DnsError),
    #[error(transparent)]
    Dial(#[from] DialError),
}

/// The claim to look for.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    pub server: &'a SubjectId,
    pub key: &'a ClaimKey,
    pub nonce: &'a str,
    pub method: Method,
}

impl Sought<'_> {
    pub fn line(&self) -> String {
        line(self.server, self.key, self.nonce)
    }
}

/// Checks claims.
#[derive(Debug)]
pub struct Checker {
    dialer: Dialer,
    resolver: Resolver,
    registries: Registries,
    /// The publishers' keys that the operator registered.
    publishers: Vec<(SubjectId, ClaimKey)>,
}

impl Checker {
    pub fn new(
        dialer: Dialer,
        resolver: Resolver,
        registries: Registries,
        publishers: Vec<(SubjectId, ClaimKey)>,
    ) -> Checker {
        let limits = FetchLimits { bytes: MAX_MANIFEST_BYTES, patience: PATIENCE };
        Checker { dialer: dialer.with_limits(limits), resolver, registries, publishers }
    }

    /// Whether this attestation key is registered for the server: the claim is valid as long as it
    /// is.
    pub fn knows_publisher(&self, server: &SubjectId, key: &ClaimKey) -> bool {
        self.publishers.iter().any(|(known, its)| known == server && its == key)
    }

    /// The methods by which a server can be claimed, and where to put the line.
    pub fn offers(
        &self,
        server: &SubjectId,
        key: &ClaimKey,
        places: &[Place],
    ) -> Vec<(Method, String)> {
        let mut offers = Vec::new();
        for place in places {
            match place {
                Place::Domain { name, has_records, well_known } => {
                    if *has_records {
                        offers.push((Method::Dns, format!("_holdpoint.{name}")));
                    }
                    offers.push((Method::WellKnown, well_known.clone()));
                }
                Place::Package { registry, name } => {
                    offers.push((Method::Manifest, format!("{}:{name}", registry.as_str())));
                }
            }
        }
        if self.knows_publisher(server, key) {
            offers.push((Method::AttestationKey, server.to_string()));
        }
        offers
    }

    /// Looks for the line. Returns the host or package where it was found.
    pub async fn find(&self, sought: Sought<'_>, places: &[Place]) -> Result<String, NotFound> {
        let mut last = NotFound::Method;
        for place in places {
            match self.look(sought, place).await {
                Ok(name) => return Ok(name),
                Err(NotFound::Method) => {}
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    async fn look(&self, sought: Sought<'_>, place: &Place) -> Result<String, NotFound> {
        let expected = sought.line();
        let (name, is_there) = match (place, sought.method) {
            (Place::Domain { name, has_records: true, .. }, Method::Dns) => {
                let texts = self.resolver.texts(&format!("_holdpoint.{name}")).await?;
                (name.clone(), texts.iter().take(MAX_LINES).any(|text| text.trim() == expected))
            }
            (Place::Domain { name, well_known, .. }, Method::WellKnown) => {
                let body = self.dialer.get(well_known, "application/json").await?;
                (name.clone(), read_file(&body).contains(&expected))
            }
            (Place::Package { registry: PackageRegistry::Npm, name }, Method::Manifest) => {
                let npm = &self.registries.npm;
                let url = format!("{npm}/{}/latest", encode_segment(name));
                let body = self.dialer.get(&url, "application/json").await?;
                (name.clone(), read_npm_manifest(&body).contains(&expected))
            }
            (Place::Package { registry: PackageRegistry::Pypi, name }, Method::Manifest) => {
                let pypi = &self.registries.pypi;
                let url = format!("{pypi}/pypi/{}/json", encode_segment(name));
                let body = self.dialer.get(&url, "application/json").await?;
                (name.clone(), read_pypi_manifest(&body).contains(&expected))
            }
            _ => return Err(NotFound::Method),
        };
        if is_there { Ok(name) } else { Err(NotFound::Absent) }
    }

    /// Checks a signature with the publisher's key.
    pub fn signature(&self, sought: Sought<'_>, signature: &str) -> Result<String, NotFound> {
        if !self.knows_publisher(sought.server, sought.key) {
            return Err(NotFound::UnknownKey);
        }
        match sought.key.signed(&sought.line(), signature) {
            true => Ok(sought.server.to_string()),
            false => Err(NotFound::Signature),
        }
    }
}

#[derive(Deserialize)]
struct ClaimsFile {
    claims: Vec<String>,
}

/// The lines in `/.well-known/holdpoint.json`: `{"claims": ["v1 …"]}`.
pub fn read_file(body: &[u8]) -> Vec<String> {
    if body.len() > MAX_FILE_BYTES {
        return Vec::new();
    }
    let file: Option<ClaimsFile> = serde_json::from_slice(body).ok();
    file.map(|file| file.claims.into_iter().take(MAX_LINES).collect()).unwrap_or_default()
}

#[derive(Deserialize)]
struct NpmManifest {
    #[serde(default)]
    holdpoint: serde_json::Value,
}

/// The lines in an npm package's manifest: its member `holdpoint`, a string or an array of strings.
pub fn read_npm_manifest(body: &[u8]) -> Vec<String> {
    let manifest: Option<NpmManifest> = serde_json::from_slice(body).ok();
    match manifest.map(|manifest| manifest.holdpoint) {
        Some(serde_json::Value::String(line)) => vec![line],
        Some(serde_json::Value::Array(lines)) => {
            let texts = lines.iter().filter_map(serde_json::Value::as_str);
            texts.take(MAX_LINES).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    }
}

#[derive(Deserialize)]
struct PypiManifest {
    info: PypiInfo,
}

#[derive(Deserialize)]
struct PypiInfo {
    #[serde(default)]
    description: Option<String>,
}

/// The lines of a Python package's description that begin with `holdpoint:`, even inside an HTML
/// comment.
pub fn read_pypi_manifest(body: &[u8]) -> Vec<String> {
    let manifest: Option<PypiManifest> = serde_json::from_slice(body).ok();
    let description = manifest.and_then(|manifest| manifest.info.description).unwrap_or_default();
    let said = description.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("<!--").map_or(line, |rest| rest.trim_end_matches("-->"));
        line.trim().strip_prefix("holdpoint:").map(|rest| rest.trim().to_owned())
    });
    said.take(MAX_LINES).collect()
}

#[cfg(test)]
mod tests;
