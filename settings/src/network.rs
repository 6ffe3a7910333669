//! `[network]` and `[judge]`: what an install may ask others, and what vetoes it. Nothing is
//! requested unless both a URL and a key are configured and no veto applies.

use crate::configuration::Configuration;
use crate::keys::{tables, words};
use crate::secret::SecretName;
use crate::value::{Text, Whole};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// The file with which a machine's administrator can forbid the network.
pub const ENTERPRISE_FILE: &str = "/etc/holdpoint/holdpoint.toml";
/// The variable by which a person asks all programs not to send data home (consoledonottrack.com).
pub const DO_NOT_TRACK: &str = "DO_NOT_TRACK";

tables! {
    /// The directory to query for what other installs observed.
    Network {
        url: Option<Text>,
        key: Option<SecretName>,
        /// Whether private and loopback addresses may be reached. Metadata and link-local addresses
        /// are never reached.
        allow_private: bool,
        /// Whether to report observations and decisions to the directory.
        contribute: bool,
        /// Vetoes all of it, whatever else is configured.
        forbid: bool,
    }
    /// The model to ask for an opinion on a change that the comparison cannot settle.
    JudgeKeys {
        api: Option<JudgeApi>,
        /// The full address of its chat API.
        url: Option<Text>,
        model: Option<Text>,
        key: Option<SecretName>,
        allow_private: bool,
        /// The most questions per day for all servers together.
        daily: Option<Whole<1, 200>>,
        /// The most questions per day for one server.
        daily_per_server: Option<Whole<1, 200>>,
        /// Whether `holdpoint screen` asks the model without `--judge`.
        screen: bool,
    }
}

words! {
    /// The chat API that the model is served by.
    JudgeApi {
        /// `POST …/chat/completions`
        #[default]
        Openai,
        /// `POST …/messages`
        Anthropic,
    }
}

impl Network {
    /// A key that cannot be used as configured, and why.
    pub fn mistake(&self) -> Option<(&'static str, String)> {
        match (&self.url, &self.key) {
            (Some(_), None) => {
                return Some(("key", "missing: name where the directory's key is kept, such as `env:HOLDPOINT_NETWORK_KEY`".to_owned()));
            }
            (None, Some(_)) => {
                return Some((
                    "url",
                    "missing: name the directory, such as `https://directory.example.com`"
                        .to_owned(),
                ));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        let url = self.url.as_deref().and_then(url_mistake);
        let key = self.key.as_ref().and_then(key_mistake);
        url.map(|why| ("url", why.to_owned())).or(key.map(|why| ("key", why)))
    }

    /// Whether a directory is configured.
    pub fn is_named(&self) -> bool {
        self.url.is_some() && self.key.is_some()
    }
}

impl JudgeKeys {
    pub(crate) fn mistake(&self) -> Option<(&'static str, String)> {
        let named = [
            ("api", self.api.is_some()),
            ("url", self.url.is_some()),
            ("model", self.model.is_some()),
            ("key", self.key.is_some()),
        ];
        let is_begun = named.iter().any(|(_, is_named)| *is_named);
        if is_begun && let Some((missing, _)) = named.into_iter().find(|(_, is_named)| !is_named) {
            let why = "missing: a model is named by `api`, `url`, `model` and `key` together";
            return Some((missing, why.to_owned()));
        }
        let url = self.url.as_deref().and_then(url_mistake);
        let key = self.key.as_ref().and_then(key_mistake);
        url.map(|why| ("url", why.to_owned())).or(key.map(|why| ("key", why)))
    }

    pub fn is_named(&self) -> bool {
        self.url.is_some() && self.key.is_some()
    }
}

fn url_mistake(url: &str) -> Option<&'static str> {
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    (!is_web).then_some("begins with `https://`, or with `http://` for a private address")
}

/// The gate itself reads a network key, which is valid for 90 days. It must be stored where a
/// person can replace it.
fn key_mistake(key: &SecretName) -> Option<String> {
    match key {
        SecretName::Env(_) | SecretName::File(_) | SecretName::Keyring(_) => None,
        SecretName::Vault(_) | SecretName::Age(_) => {
            Some("is named by `env:VARIABLE`, `file:PATH` or `keyring:NAME`".to_owned())
        }
    }
}

/// Why nothing is requested although the configuration names whom to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Veto {
    DoNotTrack,
    /// The administrator's file forbids it, or cannot be read.
    Enterprise(PathBuf),
    /// `network.forbid` in the user's own configuration.
    Forbidden,
    /// `holdpoint network off`.
    TurnedOff,
}

impl fmt::Display for Veto {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Veto::DoNotTrack => write!(formatter, "the variable `{DO_NOT_TRACK}` is set"),
            Veto::Enterprise(path) => {
                write!(formatter, "`{}` forbids it or cannot be read", path.display())
            }
            Veto::Forbidden => formatter.write_str("`network.forbid` is set in holdpoint.toml"),
            Veto::TurnedOff => formatter.write_str("`holdpoint network off` was run"),
        }
    }
}

/// The sources of vetoes.
#[derive(Debug, Clone, Copy)]
pub struct VetoSources<'a> {
    /// Whether `DO_NOT_TRACK` has a value that requests it.
    pub do_not_track: bool,
    /// The administrator's file.
    pub enterprise: &'a Path,
    /// Whether the network was last turned off with `holdpoint network off`.
    pub is_off: bool,
}

impl Network {
    /// The first veto that applies. An unreadable administrator's file counts as a veto, so that a
    /// mistake in it cannot enable the network.
    pub fn veto(&self, sources: VetoSources<'_>) -> Option<Veto> {
        if sources.do_not_track {
            return Some(Veto::DoNotTrack);
        }
        let enterprise = Configuration::read(sources.enterprise);
        if enterprise.map_or(true, |file| file.of(None).network.forbid) {
            return Some(Veto::Enterprise(sources.enterprise.to_owned()));
        }
        if self.forbid {
            return Some(Veto::Forbidden);
        }
        sources.is_off.then_some(Veto::TurnedOff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Result<Network, String> {
        Configuration::parse(text).map(|read| read.of(None).network.clone())
    }

    #[test]
    fn a_directory_is_named_by_its_url_and_a_place_of_its_key() {
        let named = network("[network]\nurl = \"https://d.example\"\nkey = \"env:KEY\"\n").unwrap();
        assert!(named.is_named() && !named.contribute && !named.allow_private);
        assert!(!network("").unwrap().is_named());
        for (text, expected) in [
            ("[network]\nurl = \"https://d.example\"\n", "`network.key`: missing"),
            ("[network]\nkey = \"env:KEY\"\n", "`network.url`: missing"),
            ("[network]\nurl = \"ftp://d\"\nkey = \"env:KEY\"\n", "`network.url`: begins with"),
            ("[network]\nurl = \"https://d\"\nkey = \"vault:a#b\"\n", "`network.key`: is named by"),
            ("[network]\nurll = \"https://d\"\n", "did you mean `network.url`"),
            ("[server.a.network]\nforbid = true\n", "`server.a.network`"),
        ] {
            let wrong = network(text).unwrap_err();
            assert!(wrong.contains(expected), "{text}: {wrong}");
        }
        let secret = network("[network]\nurl = \"https://d\"\nkey = \"hunter2\"\n").unwrap_err();
        assert!(!secret.contains("hunter2"), "{secret}");
    }

    #[test]
    fn a_model_is_named_whole_or_not_at_all() {
        let read = |text: &str| Configuration::parse(text).map(|read| read.of(None).judge.clone());
        let whole = "[judge]\napi = \"anthropic\"\nurl = \"https://m.example/v1/messages\"\nmodel = \"m\"\nkey = \"env:K\"\n";
        assert!(read(whole).unwrap().is_named());
        let part = read("[judge]\nurl = \"https://m.example\"\n").unwrap_err();
        assert!(part.contains("`judge.api`: missing"), "{part}");
        assert!(read("[judge]\ndaily = 201\n").is_err());
    }

    #[test]
    fn each_veto_stops_everything() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("holdpoint.toml");
        let veto = |network: &Network, do_not_track, is_off| {
            network.veto(VetoSources { do_not_track, enterprise: &file, is_off })
        };
        let open = Network::default();
        assert_eq!(veto(&open, false, false), None);
        assert_eq!(veto(&open, true, false), Some(Veto::DoNotTrack));
        assert_eq!(veto(&open, false, true), Some(Veto::TurnedOff));
        let forbidding = Network { forbid: true, ..Network::default() };
        assert_eq!(veto(&forbidding, false, false), Some(Veto::Forbidden));
        let by_file = Some(Veto::Enterprise(file.clone()));
        for text in ["[network]\nforbid = true\n", "this is no TOML [", "unknown = 1\n"] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(veto(&open, false, false), by_file, "{text}");
        }
        std::fs::write(&file, "[network]\nforbid = false\n").unwrap();
        assert_eq!(veto(&open, false, false), None);
    }
}
