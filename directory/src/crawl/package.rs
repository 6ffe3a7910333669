//! Reads the releases of a package from npm or PyPI, ordered by version, with each release's
//! metadata.
//!
//! The registries' JSON is read with size limits. Its content is only displayed as text, never
//! trusted.

use super::target::is_release;
use super::{Manifest, kept_text, release_order};
use crate::subject::{PackageRegistry, encode_segment};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use wire::dialer::{DialError, Dialer};

/// The most releases of a package that are read.
pub const MAX_RELEASES: usize = 20_000;

/// One release of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub version: String,
    pub manifest: Manifest,
}

/// The base URLs of the registries.
#[derive(Debug, Clone)]
pub struct Registries {
    /// Without a trailing slash.
    pub npm: String,
    /// The base of `/pypi/NAME/json`, without a trailing slash.
    pub pypi: String,
}

impl Default for Registries {
    fn default() -> Self {
        Registries {
            npm: "https://registry.npmjs.org".to_owned(),
            pypi: "https://pypi.org".to_owned(),
        }
    }
}

/// Why the releases of a package could not be read.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the registry's answer about `{name}` cannot be read: {source}")]
    Unreadable { name: String, source: serde_json::Error },
    #[error("`{name}` has no release `{version}`")]
    NoRelease { name: String, version: String },
    #[error("`{name}` has no release that is not a preview, withdrawn or a source archive only")]
    NoReleases { name: String },
}

impl Registries {
    /// The releases that are neither previews nor withdrawn, oldest first.
    pub async fn releases(
        &self,
        dialer: &Dialer,
        registry: PackageRegistry,
        name: &str,
    ) -> Result<Vec<Release>, PackageError> {
        let unreadable = |source| PackageError::Unreadable { name: name.to_owned(), source };
        match registry {
            PackageRegistry::Npm => {
                let url = format!("{}/{}", self.npm, encode_segment(name));
                let body = dialer.get(&url, "application/json").await?;
                read_npm(&body).map_err(unreadable)
            }
            PackageRegistry::Pypi => {
                let url = format!("{}/pypi/{}/json", self.pypi, encode_segment(name));
                let body = dialer.get(&url, "application/json").await?;
                read_pypi(&body).map_err(unreadable)
            }
        }
    }
}

/// The releases to visit: the named ones, or else the newest few, oldest first.
pub fn chosen(
    name: &str,
    mut releases: Vec<Release>,
    named: &[String],
    newest: usize,
) -> Result<Vec<Release>, PackageError> {
    if let Some(version) =
        named.iter().find(|version| !releases.iter().any(|known| known.version == **version))
    {
        let (name, version) = (name.to_owned(), version.clone());
        return Err(PackageError::NoRelease { name, version });
    }
    match named {
        [] => {
            let excess = releases.len().saturating_sub(newest.max(1));
            releases.drain(..excess);
        }
        named => releases.retain(|release| named.contains(&release.version)),
    }
    if releases.is_empty() {
        return Err(PackageError::NoReleases { name: name.to_owned() });
    }
    Ok(releases)
}

#[derive(Deserialize)]
struct NpmDocument<'a> {
    #[serde(borrow, default)]
    versions: BTreeMap<String, &'a RawValue>,
    #[serde(default)]
    time: BTreeMap<String, serde_json::Value>,
}

/// npm's data on one version. Members may have any type, since publishers write them.
#[derive(Deserialize)]
struct NpmVersion {
    #[serde(default)]
    description: serde_json::Value,
    #[serde(default)]
    repository: serde_json::Value,
    #[serde(default)]
    license: serde_json::Value,
    #[serde(default)]
    deprecated: serde_json::Value,
    #[serde(default)]
    bin: serde_json::Value,
}

/// The releases in npm's document on a package.
pub fn read_npm(body: &[u8]) -> Result<Vec<Release>, serde_json::Error> {
    let document: NpmDocument<'_> = serde_json::from_slice(body)?;
    let mut releases = Vec::new();
    for (version, raw) in document.versions.into_iter().take(MAX_RELEASES) {
        // serde would accept an array for a struct.
        let said = Some(raw.get()).filter(|text| text.starts_with('{'));
        let said = said.and_then(|text| serde_json::from_str::<NpmVersion>(text).ok());
        let Some(said) = said else { continue };
        let is_withdrawn = said.deprecated.as_str().is_some_and(|text| !text.is_empty());
        // A preview has a `-` before any `+`.
        let is_preview = version.split('+').next().unwrap_or_default().contains('-');
        if !is_release(&version) || is_withdrawn || is_preview {
            continue;
        }
        let repository = said.repository.get("url").unwrap_or(&said.repository).as_str();
        let licence = said.license.get("type").unwrap_or(&said.license).as_str();
        let published = document.time.get(&version).and_then(serde_json::Value::as_str);
        let manifest = Manifest {
            title: None,
            description: kept_text(said.description.as_str()),
            repository: kept_text(repository.and_then(web_address).as_deref()),
            licence: kept_text(licence),
            version: Some(version.clone()),
            published_at: published.and_then(moment),
            has_launch: !said.bin.is_null(),
        };
        releases.push(Release { version, manifest });
    }
    releases.sort_by(|a, b| release_order::compare(&a.version, &b.version));
    Ok(releases)
}

#[derive(Deserialize)]
struct PypiDocument {
    info: PypiInfo,
    #[serde(default)]
    releases: BTreeMap<String, Vec<PypiFile>>,
}

#[derive(Deserialize)]
struct PypiInfo {
    #[serde(default)]
    summary: serde_json::Value,
    #[serde(default)]
    license: serde_json::Value,
    #[serde(default)]
    license_expression: serde_json::Value,
    #[serde(default)]
    classifiers: serde_json::Value,
    #[serde(default)]
    project_urls: serde_json::Value,
}

#[derive(Deserialize)]
struct PypiFile {
    #[serde(default)]
    packagetype: String,
    #[serde(default)]
    upload_time_iso_8601: String,
    #[serde(default)]
    yanked: bool,
}

/// The releases in PyPI's document on a package. Summary, licence and repository are only given for
/// the newest release.
pub fn read_pypi(body: &[u8]) -> Result<Vec<Release>, serde_json::Error> {
    let document: PypiDocument = serde_json::from_slice(body)?;
    let PypiInfo { summary, license, license_expression, classifiers, project_urls } =
        document.info;
    let classified = classifiers.as_array().into_iter().flatten();
    let classified = classified.filter_map(serde_json::Value::as_str);
    let classified = classified.filter_map(|text| text.strip_prefix("License :: ")).next();
    let licence = license_expression.as_str().or(license.as_str()).filter(|text| !text.is_empty());
    let licence = kept_text(licence.or(classified));
    let is_repository = |name: &&String| {
        let name = name.to_ascii_lowercase();
        ["repository", "source", "github", "code"].iter().any(|word| name.contains(word))
    };
    let urls = project_urls.as_object();
    let url = urls.and_then(|urls| {
        let named = urls.keys().find(is_repository).or_else(|| urls.keys().next())?;
        urls.get(named)?.as_str()
    });
    let repository = kept_text(url.and_then(web_address).as_deref());
    let mut releases = Vec::new();
    for (version, files) in document.releases.into_iter().take(MAX_RELEASES) {
        let wheel = files.iter().find(|file| file.packagetype == "bdist_wheel" && !file.yanked);
        let is_preview = version.bytes().any(|byte| byte.is_ascii_alphabetic())
            && !version.contains(".post")
            && !version.contains('+');
        let (Some(wheel), true, false) = (wheel, is_release(&version), is_preview) else {
            continue;
        };
        let manifest = Manifest {
            title: None,
            description: kept_text(summary.as_str()),
            repository: repository.clone(),
            licence: licence.clone(),
            version: Some(version.clone()),
            published_at: moment(&wheel.upload_time_iso_8601),
            has_launch: true,
        };
        releases.push(Release { version, manifest });
    }
    releases.sort_by(|a, b| release_order::compare(&a.version, &b.version));
    Ok(releases)
}

/// Converts a registry's timestamp to the log's format: RFC 3339 in UTC with seconds.
fn moment(text: &str) -> Option<String> {
    let seconds = text.get(..19)?;
    contract::time::Timestamp::parse(&format!("{seconds}Z")).map(|moment| moment.to_string())
}

/// A repository address that a page can link to. Only https is accepted.
fn web_address(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix("git+").unwrap_or(text);
    let text = text.strip_suffix(".git").unwrap_or(text);
    let address = match text.strip_prefix("git://").or_else(|| text.strip_prefix("ssh://git@")) {
        Some(rest) => format!("https://{rest}"),
        None if text.starts_with("https://") => text.to_owned(),
        None => format!("https://github.com/{}", text.strip_prefix("github:")?),
    };
    address.parse::<wire::PlainUrl>().ok().map(|plain| plain.url.to_string())
}

#[cfg(test)]
mod tests;
