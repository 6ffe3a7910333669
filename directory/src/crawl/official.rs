//! Reads the official registry's list of servers: `GET /v0.1/servers`, 100 per page, starting where
//! the last crawl ended.

use super::target::{PackageWay, Target, Way, is_release};
use super::{Manifest, kept_text};
use crate::subject::{PackageRegistry, SubjectId, encode_segment};
use contract::time::Timestamp;
use serde::Deserialize;
use wire::dialer::{DialError, Dialer};

/// The number of servers per page.
const PAGE: usize = 100;
/// The most pages that one crawl reads.
pub const MAX_PAGES: usize = 1_000;

/// A server in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub target: Target,
    pub manifest: Manifest,
}

/// Why the registry's list could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the registry's list cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the registry's list has more than {MAX_PAGES} pages, or repeats a page")]
    Endless,
}

#[derive(Debug, Deserialize)]
struct Page {
    servers: Vec<ServerItem>,
    #[serde(default)]
    metadata: PageMetadata,
}

#[derive(Debug, Default, Deserialize)]
struct PageMetadata {
    #[serde(rename = "nextCursor", default)]
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ServerItem {
    server: ServerDocument,
    #[serde(rename = "_meta", default)]
    meta: serde_json::Value,
}

/// The parts of a `server.json` that the crawler uses.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerDocument {
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    repository: serde_json::Value,
    #[serde(default)]
    packages: Vec<PackageDocument>,
    #[serde(default)]
    remotes: Vec<RemoteDocument>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackageDocument {
    #[serde(default)]
    registry_type: String,
    #[serde(default)]
    identifier: String,
    #[serde(default)]
    version: Option<String>,
}

#[derive(Debug, Deserialize)]
struct RemoteDocument {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    url: String,
}

/// All servers that were added or changed since a moment.
pub async fn list(
    dialer: &Dialer,
    registry: &str,
    updated_since: Option<Timestamp>,
) -> Result<Vec<Listed>, RegistryError> {
    let mut all = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let mut url = format!("{registry}/v0.1/servers?version=latest&limit={PAGE}");
        if let Some(moment) = updated_since {
            url.push_str(&format!("&updated_since={}", encode_segment(&moment.to_string())));
        }
        if let Some(cursor) = &cursor {
            url.push_str(&format!("&cursor={}", encode_segment(cursor)));
        }
        let (listed, next) = read_page(&dialer.get(&url, "application/json").await?)?;
        all.extend(listed);
        match next {
            None => return Ok(all),
            same if same == cursor => return Err(RegistryError::Endless),
            next => cursor = next,
        }
    }
    Err(RegistryError::Endless)
}

/// The servers of one page, and the cursor of the next. Leaves out deleted servers and those
/// without a usable name.
pub fn read_page(body: &[u8]) -> Result<(Vec<Listed>, Option<String>), serde_json::Error> {
    let page: Page = serde_json::from_slice(body)?;
    let listed = page.servers.iter().take(PAGE).filter_map(listed).collect();
    Ok((listed, page.metadata.next_cursor.filter(|cursor| !cursor.is_empty())))
}

fn listed(item: &ServerItem) -> Option<Listed> {
    let ServerItem { server, meta } = item;
    let official = meta.get("io.modelcontextprotocol.registry/official");
    let status = official.and_then(|official| official.get("status")).and_then(|it| it.as_str());
    if status == Some("deleted") {
        return None;
    }
    let repository = server.repository.get("url").and_then(serde_json::Value::as_str);
    let published = official.and_then(|official| official.get("publishedAt"));
    let published = published.and_then(serde_json::Value::as_str).and_then(|text| text.get(..19));
    let published = published.and_then(|text| Timestamp::parse(&format!("{text}Z")));
    let target = package_target(server).or_else(|| remote_target(server))?;
    let manifest = Manifest {
        title: kept_text(server.title.as_deref()),
        description: kept_text(server.description.as_deref()),
        repository: kept_text(repository.filter(|url| url.starts_with("https://"))),
        licence: None,
        version: kept_text(server.version.as_deref()),
        published_at: published.map(|moment| moment.to_string()),
        has_launch: true,
    };
    Some(Listed { target, manifest })
}

/// Packages are identified by their own name, since several registry entries may refer to the same
/// package.
fn package_target(server: &ServerDocument) -> Option<Target> {
    let package = server.packages.iter().find_map(|package| {
        let registry = match package.registry_type.as_str() {
            "npm" => PackageRegistry::Npm,
            "pypi" => PackageRegistry::Pypi,
            _ => return None,
        };
        let id = SubjectId::package(registry, &package.identifier).ok()?;
        let release = package.version.clone().filter(|version| is_release(version));
        Some((id, release))
    });
    let (id, release) = package?;
    let way = PackageWay { releases: release.into_iter().collect(), ..PackageWay::default() };
    Some(Target { id, way: Way::Package(way) })
}

fn remote_target(server: &ServerDocument) -> Option<Target> {
    let remote = server.remotes.iter().find(|remote| remote.kind == "streamable-http")?;
    let id: SubjectId = server.name.parse().ok()?;
    // Addresses with placeholders need values that only a user has.
    let is_plain = remote.url.starts_with("https://") && !remote.url.contains('{');
    is_plain.then(|| Target { id, way: Way::Remote { url: remote.url.clone() } })
}

#[cfg(test)]
mod tests;
