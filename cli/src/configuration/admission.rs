//! Who has to vouch for a server: the configuration and the command line together.

use super::Configuration;
use crate::arguments::admission::AdmissionArguments;
use crate::commands::attest::{find_scheme, read_trust_root};
use crate::failure::Failure;
use attest::{Binding, DEFAULT_CACHE_SECONDS, Digest, Flavor, Package, ToolAllowlist};
use engine::admission::Terms;
use gate::server::ServerId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use toml::Value;

/// What is about one server, and cannot be said for all of them.
const OF_ONE_SERVER: [&str; 6] = [
    "admission.attestation",
    "admission.program_digest",
    "admission.package",
    "admission.version",
    "admission.integrity",
    "admission.allow_tools",
];
/// What names the package that a server has to be, together.
const OF_A_PACKAGE: [&str; 3] = ["admission.package", "admission.version", "admission.integrity"];
const TEXTS: [&str; 9] = [
    "admission.trust_root",
    "admission.required",
    "admission.scheme",
    "admission.revocations",
    "admission.attestation",
    "admission.program_digest",
    "admission.package",
    "admission.version",
    "admission.integrity",
];

/// How a server is admitted.
#[derive(Debug)]
pub(crate) struct AdmissionRules {
    pub(crate) terms: Terms,
    pub(crate) max_age: Duration,
    /// The operator's own file, in place of what the server publishes.
    pub(crate) attestation: Option<PathBuf>,
    /// What the program has to be; nothing where nobody said.
    pub(crate) bindings: Vec<Binding>,
}

impl Configuration {
    /// Whether it asks who vouches for a server without saying all that it takes: the server's own entry may have the rest.
    pub(crate) fn has_part_of_admission(&self, server: &ServerId) -> Result<bool, Failure> {
        let is_named = |key| {
            let text = self.text(Some(server.as_str()), key).map_err(Failure::usage);
            text.map(|text| text.is_some())
        };
        let root = is_named("admission.trust_root")?;
        let level = is_named("admission.required")?;
        let document = is_named("admission.attestation")?;
        Ok(!(root && level) && (root || level || document))
    }

    /// Whether it requires an attestation of a server.
    pub(crate) fn requires_attestation(&self, server: &ServerId) -> Result<bool, Failure> {
        let is_named = |key| {
            let text = self.text(Some(server.as_str()), key).map_err(Failure::usage);
            text.map(|text| text.is_some())
        };
        Ok(is_named("admission.trust_root")? && is_named("admission.required")?)
    }

    /// How a server is admitted; nothing where nobody asked for that. `home` is where files without a folder lie.
    pub(crate) fn admission(
        &self,
        server: &ServerId,
        arguments: &AdmissionArguments,
        home: &Path,
    ) -> Result<Option<AdmissionRules>, Failure> {
        let named = |key| self.text(Some(server.as_str()), key).map_err(Failure::usage);
        let file = |key| named(key).map(|path| path.map(|path| home.join(path)));
        let trust_root = match &arguments.trust_root {
            Some(path) => Some(path.clone()),
            None => file("admission.trust_root")?,
        };
        let required = match &arguments.required {
            Some(level) => Some(level.clone()),
            None => named("admission.required")?,
        };
        let attestation = match &arguments.attestation {
            Some(path) => Some(path.clone()),
            None => file("admission.attestation")?,
        };
        let is_asked = attestation.is_some() || arguments.flavor.is_some();
        let (trust_root, required) = match (trust_root, required) {
            (Some(root), Some(level)) => (root, level),
            (None, None) if !is_asked => return Ok(None),
            (None, _) => return Err(missing("--trust-root FILE", "trust_root")),
            (Some(_), None) => return Err(missing("--required LEVEL", "required")),
        };
        let scheme = named("admission.scheme")?;
        let scheme = find_scheme(scheme.as_deref().unwrap_or("default"))?;
        let flavor = match named("admission.flavor")? {
            Some(word) => Some(word.parse().map_err(Failure::usage)?),
            None => None,
        };
        let flavor = arguments.flavor.or(flavor).unwrap_or(Flavor::Enclaved);
        let root = Arc::new(read_trust_root(&trust_root)?);
        root.check_scheme(&scheme).map_err(Failure::usage)?;
        let terms = Terms::new(root, scheme, required, flavor)
            .map_err(|error| Failure::usage(format!("the required level: {error}")))?;
        let terms = match file("admission.revocations")? {
            Some(list) => terms.with_revocations(list),
            None => terms,
        };
        let usual = usize::try_from(DEFAULT_CACHE_SECONDS).unwrap_or(usize::MAX);
        let seconds = self.count(Some(server.as_str()), "admission.cache_seconds", usual);
        let max_age = Duration::from_secs(seconds.map_err(Failure::usage)? as u64);
        let bindings = self.bindings(Some(server.as_str())).map_err(Failure::usage)?;
        Ok(Some(AdmissionRules { terms, max_age, attestation, bindings }))
    }

    /// The tools that may be used; `None` if all may. Under the enclaved flavor a server without an allowlist has no tools.
    pub(crate) fn allowed_tools(
        &self,
        server: &ServerId,
        arguments: &AdmissionArguments,
        flavor: Option<Flavor>,
    ) -> Result<Option<Arc<ToolAllowlist>>, Failure> {
        let configured = self.tools(Some(server.as_str())).map_err(Failure::usage)?;
        let names = if arguments.allow_tool.is_empty() {
            configured
        } else {
            Some(arguments.allow_tool.iter().map(String::as_str).collect())
        };
        let names = match (names, flavor) {
            (Some(names), _) => names,
            (None, Some(Flavor::Enclaved)) => Vec::new(),
            (None, Some(Flavor::Open) | None) => return Ok(None),
        };
        let list = ToolAllowlist::new(names)
            .map_err(|error| Failure::usage(format!("the tools that may be used: {error}")))?;
        Ok(Some(Arc::new(list)))
    }

    pub(super) fn check_admission(&self) -> Result<(), String> {
        for key in OF_ONE_SERVER {
            if self.value(None, key).is_some() {
                return Err(format!("`{key}` is about one server: write it under `server.ID`"));
            }
        }
        let servers = self.table.get("server").and_then(Value::as_table);
        let ids = servers.into_iter().flat_map(toml::Table::keys).map(|id| Some(id.as_str()));
        for server in std::iter::once(None).chain(ids) {
            for key in TEXTS {
                self.text(server, key)?;
            }
            self.bindings(server)?;
            self.tools(server)?;
        }
        Ok(())
    }

    /// What the program of a server has to be: all of it has to hold.
    fn bindings(&self, server: Option<&str>) -> Result<Vec<Binding>, String> {
        let mut bindings = Vec::new();
        if let Some(text) = self.text(server, "admission.program_digest")? {
            bindings.push(Binding::File(digest("admission.program_digest", &text)?));
        }
        let [name, version, integrity] =
            OF_A_PACKAGE.map(|key| self.text(server, key).map(|value| (key, value)));
        match [name?, version?, integrity?] {
            [(_, None), (_, None), (_, None)] => {}
            [(_, Some(name)), (_, Some(version)), (key, Some(integrity))] => {
                let integrity = digest(key, &integrity)?;
                bindings.push(Binding::Package(Package { name, version, integrity }));
            }
            some => {
                let missing = some.iter().find(|(_, value)| value.is_none()).map(|(key, _)| *key);
                return Err(format!(
                    "a package is named by `package`, `version` and `integrity` together: `{}` is missing",
                    missing.unwrap_or_default()
                ));
            }
        }
        Ok(bindings)
    }

    fn text(&self, server: Option<&str>, key: &str) -> Result<Option<String>, String> {
        match self.value(server, key).map(Value::as_str) {
            None => Ok(None),
            Some(Some(text)) if !text.trim().is_empty() => Ok(Some(text.to_owned())),
            Some(_) => Err(format!("`{key}` is a text in quotes, and not an empty one")),
        }
    }

    fn tools(&self, server: Option<&str>) -> Result<Option<Vec<&str>>, String> {
        let key = "admission.allow_tools";
        let problem = || format!("`{key}` is a list of tools' names in quotes");
        match self.value(server, key) {
            None => Ok(None),
            Some(Value::Array(names)) => {
                let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
                names.map(Some).ok_or_else(problem)
            }
            Some(_) => Err(problem()),
        }
    }
}

fn digest(key: &str, text: &str) -> Result<Digest, String> {
    Digest::parse(text).map_err(|error| format!("`{key}`: {error}"))
}

fn missing(option: &str, key: &str) -> Failure {
    Failure::usage(format!(
        "who vouches for a server is checked against a trust root, at a level: name `{option}`, or `{key}` in `[admission]`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match Configuration::parse(text).and_then(|configuration| configuration.check()) {
            Err(problem) => problem,
            Ok(()) => panic!("accepted: {text}"),
        }
    }

    fn tools(text: &str, given: &[&str], flavor: Option<Flavor>) -> Option<usize> {
        let configuration = Configuration::parse(text).unwrap();
        configuration.check().unwrap();
        let allow_tool = given.iter().map(ToString::to_string).collect();
        let arguments = AdmissionArguments { allow_tool, ..AdmissionArguments::default() };
        let id = "a".parse().unwrap();
        let allowed = configuration.allowed_tools(&id, &arguments, flavor).unwrap();
        allowed.map(|allowed| allowed.len())
    }

    #[test]
    fn tools_are_limited_by_the_configuration_or_the_command_line() {
        let text = "[server.a.admission]\nallow_tools = [\"x\", \"y\"]";
        for flavor in [None, Some(Flavor::Open), Some(Flavor::Enclaved)] {
            assert_eq!(tools(text, &[], flavor), Some(2));
            assert_eq!(tools(text, &["z"], flavor), Some(1));
            assert_eq!(tools("[server.a.admission]\nallow_tools = []", &[], flavor), Some(0));
        }
    }

    #[test]
    fn a_server_without_an_allowlist_has_no_tools_under_the_enclaved_flavor_only() {
        assert_eq!(tools("", &[], Some(Flavor::Enclaved)), Some(0));
        assert_eq!(tools("", &[], Some(Flavor::Open)), None);
        assert_eq!(tools("", &[], None), None);
    }

    #[test]
    fn wrong_values_are_refused() {
        for text in [
            "[admission]\nflavor = \"closed\"",
            "[admission]\ntrust_root = \"\"",
            "[admission]\nrequired = 1",
            "[admission]\ncache_seconds = -1",
            "[admission]\nallow_tools = [\"x\"]",
            "[admission]\nattestation = \"x\"",
            "[server.a.admission]\nallow_tools = \"x\"",
            "[server.a.admission]\nallow_tools = [1]",
            "[server.a.admission]\nprogram_digest = \"x\"",
            "[server.a.admission]\nlevel = \"x\"",
            "[admission]\npackage = \"x\"\nversion = \"1\"\nintegrity = \"sha512-x\"",
            "[server.a.admission]\npackage = 1",
        ] {
            refused(text);
        }
    }

    #[test]
    fn a_package_is_named_by_three_keys_or_none() {
        let integrity = Digest::sha256(b"archive");
        let keys = [
            "package = \"mail\"".to_owned(),
            "version = \"1.2.3\"".to_owned(),
            format!("integrity = \"{integrity}\""),
        ];
        let text = |keys: &[String]| format!("[server.a.admission]\n{}", keys.join("\n"));
        let configuration = Configuration::parse(&text(&keys)).unwrap();
        configuration.check().unwrap();
        let (name, version) = ("mail".to_owned(), "1.2.3".to_owned());
        let package = Binding::Package(Package { name, version, integrity: integrity.clone() });
        assert_eq!(configuration.bindings(Some("a")), Ok(vec![package.clone()]));
        let both = format!("{}\nprogram_digest = \"{integrity}\"", text(&keys));
        let both = Configuration::parse(&both).unwrap().bindings(Some("a")).unwrap();
        assert_eq!(both, [Binding::File(integrity.clone()), package]);
        for (missing, name) in ["package", "version", "integrity"].into_iter().enumerate() {
            let mut some = keys.to_vec();
            some.remove(missing);
            let problem = refused(&text(&some));
            assert!(problem.contains(&format!("`admission.{name}` is missing")), "{problem}");
            let one = refused(&text(&keys[missing..=missing]));
            assert!(one.contains("together"), "{one}");
        }
        let wrong = refused(&text(&keys).replace("sha256-", "sha1-"));
        assert!(wrong.starts_with("`admission.integrity`: "), "{wrong}");
    }

    #[test]
    fn half_of_what_is_needed_is_not_taken_for_nothing() {
        let asked = |text: &str, arguments: &AdmissionArguments| {
            let configuration = Configuration::parse(text).unwrap();
            configuration.admission(&"a".parse().unwrap(), arguments, Path::new(".")).map(|_| ())
        };
        let none = AdmissionArguments::default();
        assert!(asked("", &none).is_ok());
        assert!(asked("[admission]\nrequired = \"public\"", &none).is_err());
        assert!(asked("[admission]\ntrust_root = \"root.json\"", &none).is_err());
        let attestation = Some(PathBuf::from("signed.json"));
        assert!(asked("", &AdmissionArguments { attestation, ..none }).is_err());
        let flavor = Some(Flavor::Open);
        assert!(
            asked("", &AdmissionArguments { flavor, ..AdmissionArguments::default() }).is_err()
        );
    }
}
