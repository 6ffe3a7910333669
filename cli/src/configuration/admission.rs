//! The attestation that a server needs, according to the configuration and the command line.

use super::Configuration;
use crate::arguments::admission::AdmissionArguments;
use crate::failure::Failure;
use attest::{Flavor, ToolAllowlist};
use engine::admission::AdmissionRules;
use gate::server::ServerId;
use settings::Text;
use std::path::Path;
use std::sync::Arc;

impl Configuration {
    /// Whether the admission configuration is incomplete: the server's entry may name the rest.
    pub(crate) fn has_part_of_admission(&self, server: &ServerId) -> bool {
        self.of(server).admission.is_partial()
    }

    /// Whether the configuration requires an attestation of a server.
    pub(crate) fn requires_attestation(&self, server: &ServerId) -> bool {
        self.of(server).admission.is_required()
    }

    /// How a server is admitted. `None` if no attestation is required. Relative paths start from
    /// `home`.
    pub(crate) fn admission(
        &self,
        server: &ServerId,
        arguments: &AdmissionArguments,
        home: &Path,
    ) -> Result<Option<AdmissionRules>, Failure> {
        let keys = &self.of(server).admission;
        let file = |name: &Option<Text>| name.as_deref().map(|name| home.join(name));
        let trust_root = arguments.trust_root.clone().or_else(|| file(&keys.trust_root));
        let configured = || keys.required.as_deref().map(str::to_owned);
        let required = arguments.required.clone().or_else(configured);
        let attestation = arguments.attestation.clone().or_else(|| file(&keys.attestation));
        let is_asked = attestation.is_some() || arguments.flavor.is_some();
        let (trust_root, required) = match (trust_root, required) {
            (Some(root), Some(level)) => (root, level),
            (None, None) if !is_asked => return Ok(None),
            (None, _) => return Err(missing("--trust-root FILE", "trust_root")),
            (Some(_), None) => return Err(missing("--required LEVEL", "required")),
        };
        AdmissionRules::requiring(&trust_root, required, arguments.flavor, attestation, keys, home)
            .map(Some)
            .map_err(Failure::usage)
    }

    /// The tools that may be used; `None` if all may. Under the enclaved flavor, a server without
    /// an allowlist has no tools.
    pub(crate) fn allowed_tools(
        &self,
        server: &ServerId,
        arguments: &AdmissionArguments,
        flavor: Option<Flavor>,
    ) -> Result<Option<Arc<ToolAllowlist>>, Failure> {
        let names = match arguments.allow_tool.as_slice() {
            [] => self.of(server).admission.allow_tools.as_deref(),
            given => Some(given),
        };
        let names = match (names, flavor) {
            (Some(names), _) => names,
            (None, Some(Flavor::Enclaved)) => &[],
            (None, Some(Flavor::Open) | None) => return Ok(None),
        };
        let list = ToolAllowlist::new(names.iter().map(String::as_str))
            .map_err(|error| Failure::usage(format!("the tools that may be used: {error}")))?;
        Ok(Some(Arc::new(list)))
    }
}

fn missing(option: &str, key: &str) -> Failure {
    Failure::usage(format!(
        "an attestation is checked against a trust root, at a level: set `{option}`, or `{key}` in `[admission]`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::tests::read;
    use std::path::PathBuf;

    fn tools(text: &str, given: &[&str], flavor: Option<Flavor>) -> Option<usize> {
        let configuration = read(text);
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
    fn half_of_what_is_needed_is_not_taken_for_nothing() {
        let asked = |text: &str, arguments: &AdmissionArguments| {
            read(text).admission(&"a".parse().unwrap(), arguments, Path::new(".")).map(|_| ())
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
