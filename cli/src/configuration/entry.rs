//! Options of a host's entry that are looser than the configuration. They override the
//! configuration and are easy to overlook.

use super::Configuration;
use ::gate::posture::Posture;
use ::gate::server::ServerId;
use attest::Flavor;
use settings::{Parsed, Text};
use std::fmt;

/// A setting of an entry that differs from the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Looser {
    Posture { entry: Posture, configured: Posture },
    RelistMaxAge { entry: u64, configured: u64 },
    FlavorOpen,
    InPlace { option: &'static str, key: &'static str },
}

impl Looser {
    /// The command-line option with this setting.
    pub(crate) const fn option(&self) -> &'static str {
        match self {
            Looser::Posture { .. } => "--posture",
            Looser::RelistMaxAge { .. } => "--relist-max-age",
            Looser::FlavorOpen => "--flavor",
            Looser::InPlace { option, .. } => option,
        }
    }
}

impl fmt::Display for Looser {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Looser::Posture { entry, configured } => {
                write!(formatter, "posture {entry}, the configuration says {configured}")
            }
            Looser::RelistMaxAge { entry, configured } => {
                write!(formatter, "lists of up to {entry} s, the configuration says {configured}")
            }
            Looser::FlavorOpen => {
                formatter.write_str("`--flavor open`: it is used without an attestation")
            }
            Looser::InPlace { option, key } => {
                write!(formatter, "`{option}` instead of `{key}`")
            }
        }
    }
}

impl Configuration {
    /// The options of an entry that are, or may be, looser than the configuration of its server. A
    /// value that cannot be read loosens nothing: the gate refuses to start with it.
    pub(crate) fn loosened_by(
        &self,
        server: &ServerId,
        options: &[(String, String)],
    ) -> Vec<Looser> {
        let mut found = Vec::new();
        for (name, value) in options {
            let looser = self.loosened(server, name, value);
            found.extend(looser.filter(|looser| !found.contains(looser)));
        }
        found
    }

    fn loosened(&self, server: &ServerId, name: &str, value: &str) -> Option<Looser> {
        let admission = &self.of(server).admission;
        // The two values have no order, so any difference counts.
        let replaced = |option, key, configured: &Option<Text>| {
            let configured = configured.as_deref()?;
            (configured != value).then_some(Looser::InPlace { option, key })
        };
        match name {
            "--posture" => {
                let entry: Posture = value.parse().ok()?;
                let configured = self.settings(Some(server), None).posture;
                let rank = |posture| Posture::ALL.iter().position(|other| *other == posture);
                (rank(entry) < rank(configured)).then_some(Looser::Posture { entry, configured })
            }
            "--relist-max-age" => {
                let entry: u64 = value.parse().ok()?;
                let configured = self.session(server).relist_max_age.as_secs();
                (entry > configured).then_some(Looser::RelistMaxAge { entry, configured })
            }
            "--flavor" => {
                let is_open = admission.flavor == Some(Parsed(Flavor::Open));
                (value == "open" && !is_open).then_some(Looser::FlavorOpen)
            }
            "--trust-root" => {
                replaced("--trust-root", "admission.trust_root", &admission.trust_root)
            }
            "--required" => replaced("--required", "admission.required", &admission.required),
            "--attestation" => {
                replaced("--attestation", "admission.attestation", &admission.attestation)
            }
            "--allow-tool" => {
                let (option, key) = ("--allow-tool", "admission.allow_tools");
                admission.allow_tools.as_ref().map(|_| Looser::InPlace { option, key })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(configuration: &str, options: &[(&str, &str)], expected: &[&str]) {
        let configuration = crate::configuration::tests::read(configuration);
        let server: ServerId = "cursor.time".parse().unwrap();
        let options: Vec<(String, String)> =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let found: Vec<String> =
            configuration.loosened_by(&server, &options).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{options:?}");
    }

    #[test]
    fn a_posture_is_looser_than_the_one_that_counts_for_its_server() {
        let guard = "the configuration says guard";
        check("", &[("--posture", "monitor")], &[&format!("posture monitor, {guard}")]);
        check("", &[("--posture", "shield")], &[&format!("posture shield, {guard}")]);
        check("", &[("--posture", "guard")], &[]);
        check("", &[("--posture", "strict")], &[]);
        check("posture = \"monitor\"", &[("--posture", "monitor")], &[]);
        let of_one = "[server.\"cursor.time\"]\nposture = \"strict\"";
        let strict = "posture guard, the configuration says strict";
        check(of_one, &[("--posture", "guard")], &[strict]);
        check("", &[("--posture", "lax")], &[]);
    }

    #[test]
    fn an_age_is_looser_one_past_the_configured_one_and_not_at_it() {
        check("", &[("--relist-max-age", "30")], &[]);
        let words = "lists of up to 31 s, the configuration says 30";
        check("", &[("--relist-max-age", "31")], &[words]);
        check("[relist]\nmax_age = 60", &[("--relist-max-age", "31")], &[]);
    }

    #[test]
    fn what_takes_the_place_of_a_key_is_told_where_there_is_one() {
        check("", &[("--flavor", "open")], &["`--flavor open`: it is used without an attestation"]);
        check("", &[("--flavor", "enclaved")], &[]);
        check("[admission]\nflavor = \"open\"", &[("--flavor", "open")], &[]);
        let configured = "[admission]\nrequired = \"internal\"\ntrust_root = \"root.json\"";
        check(configured, &[("--required", "internal"), ("--trust-root", "root.json")], &[]);
        let words = "`--required` instead of `admission.required`";
        check(configured, &[("--required", "public")], &[words]);
        check("", &[("--required", "public"), ("--start-timeout", "5")], &[]);
        let tools = "[server.\"cursor.time\".admission]\nallow_tools = [\"add\"]";
        let words = "`--allow-tool` instead of `admission.allow_tools`";
        check(tools, &[("--allow-tool", "add"), ("--allow-tool", "drop")], &[words]);
    }
}
