//! Where packages are fetched from: the public registry, or the one in the operator's settings.

use sandbox::HostRule;
use settings::{Parsed, Sandbox};
use std::path::Path;

const NPM: &str = "https://registry.npmjs.org/";
const PYPI: &str = "https://pypi.org/simple";
/// The host of the files that PyPI's index links to.
const PYPI_FILES: &str = "files.pythonhosted.org";

/// Why packages cannot be fetched from the configured place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRegistry {
    #[error("{0} names a package registry that is not an `https:` or `http:` URL")]
    Url(&'static str),
    #[error(
        "{0} has a credential in the URL of the package registry, and the install step gets no secrets: use a registry that needs none, or install the package and start its program"
    )]
    Credential(&'static str),
}

/// A registry, and the hosts needed to fetch from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackageSource {
    pub(super) url: String,
    pub(super) hosts: Vec<HostRule>,
}

impl PackageSource {
    pub(super) fn npm(
        keys: &Sandbox,
        user_home: Option<&Path>,
    ) -> Result<PackageSource, BadRegistry> {
        let named =
            keys.npm_registry.as_ref().map(|url| ("`sandbox.npm_registry`", url.to_string()));
        let named = named.or_else(|| variable(&["npm_config_registry", "NPM_CONFIG_REGISTRY"]));
        let named = named.or_else(|| {
            let text = std::fs::read_to_string(user_home?.join(".npmrc")).ok()?;
            let value = |line: &str| {
                let rest = line.trim().strip_prefix("registry")?;
                Some(rest.trim_start().strip_prefix('=')?.trim().to_owned())
            };
            Some(("`.npmrc`", text.lines().find_map(value)?))
        });
        match named {
            Some((by, url)) => PackageSource::named(by, url, &[]),
            None => Ok(PackageSource::public(keys, NPM, &["registry.npmjs.org"])),
        }
    }

    pub(super) fn python(keys: &Sandbox) -> Result<PackageSource, BadRegistry> {
        let named =
            keys.python_index.as_ref().map(|url| ("`sandbox.python_index`", url.to_string()));
        let variables = ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"];
        match named.or_else(|| variable(&variables)) {
            Some((by, url)) => PackageSource::named(by, url, &[PYPI_FILES]),
            None => Ok(PackageSource::public(keys, PYPI, &["pypi.org", PYPI_FILES])),
        }
    }

    /// A public registry. Its hosts may resolve to private addresses if `net_allow` says so, which
    /// is also the line suggested for a blocked attempt: some networks have a mirror under the
    /// public name.
    fn public(keys: &Sandbox, url: &str, hosts: &[&str]) -> PackageSource {
        let allowed = keys.net_allow.as_deref().unwrap_or_default();
        let rule = |host: &&str| {
            let is_wanted = |rule: &HostRule| rule.allows_private() && rule.covers_name(host);
            let is_private = allowed.iter().any(|Parsed(rule)| is_wanted(rule));
            let prefix = if is_private { "private:" } else { "" };
            format!("{prefix}{host}").parse().ok()
        };
        PackageSource { url: url.to_owned(), hosts: hosts.iter().filter_map(rule).collect() }
    }

    /// A registry that the operator names may be on a private network.
    fn named(by: &'static str, url: String, more: &[&str]) -> Result<PackageSource, BadRegistry> {
        let parsed = url::Url::parse(&url).map_err(|_| BadRegistry::Url(by))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(BadRegistry::Credential(by));
        }
        let prefix = match parsed.scheme() {
            "https" => "private:",
            "http" => "private:tcp:",
            _ => return Err(BadRegistry::Url(by)),
        };
        let (host, port) = match (parsed.host_str(), parsed.port_or_known_default()) {
            (Some(host), Some(port)) => (host, port),
            _ => return Err(BadRegistry::Url(by)),
        };
        let own = format!("{prefix}{host}:{port}");
        let more = more.iter().map(|host| format!("private:{host}"));
        let hosts = std::iter::once(own).chain(more).filter_map(|rule| rule.parse().ok());
        Ok(PackageSource { url, hosts: hosts.collect() })
    }
}

fn variable(names: &[&'static str]) -> Option<(&'static str, String)> {
    names.iter().find_map(|name| {
        std::env::var(name).ok().filter(|value| !value.is_empty()).map(|value| (*name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(source: &PackageSource) -> Vec<String> {
        source.hosts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_registry_of_the_settings_is_the_only_host() {
        let keys = |text: &str| toml::from_str::<Sandbox>(text).unwrap();
        let npm = |url: &str| PackageSource::npm(&keys(&format!("npm_registry = \"{url}\"")), None);
        let own = npm("https://npm.corp.example:8443/x/").unwrap();
        assert_eq!(rules(&own), ["private:npm.corp.example:8443"]);
        assert_eq!(
            rules(&npm("http://npm.corp.example/").unwrap()),
            ["private:tcp:npm.corp.example:80"]
        );
        assert!(matches!(npm("https://a:b@npm.corp.example/"), Err(BadRegistry::Credential(_))));
        assert!(matches!(npm("npm.corp.example"), Err(BadRegistry::Url(_))));
        let index = keys("python_index = \"https://py.corp.example/simple\"");
        let index = PackageSource::python(&index).unwrap();
        assert_eq!(rules(&index), ["private:py.corp.example", "private:files.pythonhosted.org"]);
    }

    #[test]
    fn a_registry_in_npmrc_counts_and_its_tokens_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let text = "//a.example/:_authToken=secret\nregistry = https://a.example/npm/\n";
        std::fs::write(folder.path().join(".npmrc"), text).unwrap();
        let source = PackageSource::npm(&Sandbox::default(), Some(folder.path())).unwrap();
        assert_eq!(source.url, "https://a.example/npm/");
        let none = PackageSource::npm(&Sandbox::default(), None).unwrap();
        assert_eq!(rules(&none), ["registry.npmjs.org"]);
        std::fs::write(folder.path().join(".npmrc"), "registry-x=1\nregistry=https://b.example/")
            .unwrap();
        let source = PackageSource::npm(&Sandbox::default(), Some(folder.path())).unwrap();
        assert_eq!(source.url, "https://b.example/");
    }

    #[test]
    fn a_public_registry_may_be_at_a_private_address_where_net_allow_says_so() {
        let allow = |entry: &str| -> Sandbox {
            toml::from_str(&format!("net_allow = [\"{entry}\"]")).unwrap()
        };
        let npm = |entry: &str| rules(&PackageSource::npm(&allow(entry), None).unwrap());
        assert_eq!(npm("private:registry.npmjs.org"), ["private:registry.npmjs.org"]);
        assert_eq!(npm("registry.npmjs.org"), ["registry.npmjs.org"]);
        assert_eq!(npm("private:other.example"), ["registry.npmjs.org"]);
        let python = PackageSource::python(&allow("private:*.pythonhosted.org")).unwrap();
        assert_eq!(rules(&python), ["pypi.org", "private:files.pythonhosted.org"]);
    }
}
