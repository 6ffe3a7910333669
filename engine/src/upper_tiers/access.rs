//! Determines from the configuration what may be requested: vetoes, keys and limits. A problem here
//! costs only the answer, never the call.

use super::UpperTiers;
use crate::consult::{Budget, Consult, ConsultSettings, DAILY, DAILY_PER_SERVER};
use crate::export::do_not_track;
use crate::network::{NetworkClient, NetworkFolder, NetworkSettings};
use gate::consult::ChatApi;
use settings::network::{DO_NOT_TRACK, ENTERPRISE_FILE, VetoSources};
use settings::{JudgeApi, JudgeKeys, Network, SecretError, SecretName, Veto};
use std::path::Path;
use store::receipts::DiskFolder;
use zeroize::Zeroizing;

/// Reads a key by its name.
pub type ReadKey<'a> = &'a dyn Fn(&SecretName) -> Result<String, SecretError>;

/// Whom requests may be sent to.
#[derive(Debug, Default)]
pub struct Access {
    /// Why nothing is requested although the configuration may name whom to ask.
    pub veto: Option<Veto>,
    pub network: Option<NetworkSettings>,
    pub consult: Option<ConsultSettings>,
    /// Descriptions of configured services that cannot be used.
    pub problems: Vec<String>,
}

impl Access {
    /// The access on this machine, considering the variable and the administrator's file.
    pub fn here(
        network: &Network,
        judge: &JudgeKeys,
        home: &Path,
        read_key: ReadKey<'_>,
    ) -> Access {
        let sources = VetoSources {
            do_not_track: do_not_track(std::env::var_os(DO_NOT_TRACK).as_deref()),
            enterprise: Path::new(ENTERPRISE_FILE),
            is_off: NetworkFolder::of(home).is_off(),
        };
        Access::of(network, judge, sources, read_key)
    }

    /// INVARIANT: if a veto applies, or no URL and key are configured, no key is read and nothing
    /// is created.
    pub fn of(
        network: &Network,
        judge: &JudgeKeys,
        sources: VetoSources<'_>,
        read_key: ReadKey<'_>,
    ) -> Access {
        if !network.is_named() && !judge.is_named() {
            return Access { veto: network.veto(sources), ..Access::default() };
        }
        if let Some(veto) = network.veto(sources) {
            return Access { veto: Some(veto), ..Access::default() };
        }
        let mut access = Access::default();
        let mut key_of = |what: &str, name: &SecretName| match read_key(name) {
            Ok(key) if !key.is_empty() => Some(Zeroizing::new(key)),
            Ok(_) => {
                access.problems.push(format!("{what} is not asked: its key `{name}` is empty"));
                None
            }
            Err(error) => {
                access.problems.push(format!("{what} is not asked: its key: {error}"));
                None
            }
        };
        if let (Some(url), Some(name)) = (&network.url, &network.key) {
            access.network = key_of("the directory", name).map(|key| NetworkSettings {
                url: url.trim_end_matches('/').to_owned(),
                key,
                allow_private: network.allow_private,
                contribute: network.contribute,
            });
        }
        let JudgeKeys { api, url, model, key, allow_private, daily, daily_per_server, .. } = judge;
        if let (Some(api), Some(url), Some(model), Some(name)) = (api, url, model, key) {
            let most = |count: Option<u64>, usual: u32| {
                count.and_then(|count| u32::try_from(count).ok()).unwrap_or(usual)
            };
            let budget = Budget {
                daily: most(daily.map(|count| count.0), DAILY),
                daily_per_server: most(daily_per_server.map(|count| count.0), DAILY_PER_SERVER),
            };
            access.consult = key_of("the model", name).map(|key| ConsultSettings {
                api: match api {
                    JudgeApi::Openai => ChatApi::OpenAi,
                    JudgeApi::Anthropic => ChatApi::Anthropic,
                },
                url: url.to_string(),
                model: model.to_string(),
                key,
                allow_private: *allow_private,
                budget,
            });
        }
        access
    }

    /// Starts the permitted tiers. One that cannot be started is reported and counts as absent.
    pub fn start(self, home: &Path, receipts: &DiskFolder, remark: &dyn Fn(&str)) -> UpperTiers {
        self.problems.iter().for_each(|problem| remark(problem));
        let folder = NetworkFolder::of(home);
        let network = self.network.and_then(|settings| {
            let started = NetworkClient::start(settings, folder.clone(), receipts.clone());
            started.map_err(|error| remark(&format!("the directory is not asked: {error}"))).ok()
        });
        let consult = self.consult.and_then(|settings| {
            let started = Consult::start(settings, folder.clone());
            started.map_err(|error| remark(&format!("the model is not asked: {error}"))).ok()
        });
        UpperTiers::new(network, consult)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const NAMED: &str = "[network]\nurl = \"https://d.example/\"\nkey = \"env:K\"\n\
        [judge]\napi = \"openai\"\nurl = \"https://m.example/v1/chat/completions\"\nmodel = \"m\"\nkey = \"env:K\"\n";

    fn access(text: &str, do_not_track: bool, is_off: bool) -> (Access, usize) {
        let configuration = settings::Configuration::parse(text).unwrap();
        let keys = configuration.of(None);
        let enterprise = Path::new("/no/such/file");
        let sources = VetoSources { do_not_track, enterprise, is_off };
        let reads = Cell::new(0);
        let read = |_: &SecretName| {
            reads.set(reads.get() + 1);
            Ok("secret".to_owned())
        };
        (Access::of(&keys.network, &keys.judge, sources, &read), reads.get())
    }

    #[test]
    fn nothing_is_built_without_a_url_and_a_key_or_with_a_veto() {
        for (text, do_not_track, is_off) in
            [("", false, false), (NAMED, true, false), (NAMED, false, true)]
        {
            let (access, reads) = access(text, do_not_track, is_off);
            assert!(access.network.is_none() && access.consult.is_none(), "{access:?}");
            assert_eq!(reads, 0, "no key is read");
            let home = tempfile::tempdir().unwrap();
            let tiers = access.start(home.path(), &DiskFolder::new(home.path()), &|_| {});
            assert!(tiers.are_held());
            assert!(!home.path().join("network").exists());
        }
    }

    #[test]
    fn what_is_named_whole_is_used_and_its_key_is_never_printed() {
        let (access, reads) = access(NAMED, false, false);
        assert_eq!(reads, 2);
        let network = access.network.as_ref().unwrap();
        assert_eq!(network.url, "https://d.example");
        assert_eq!(access.consult.as_ref().unwrap().budget, Budget::default());
        assert!(!format!("{access:?}").contains("secret"), "{access:?}");
    }

    #[test]
    fn a_key_that_cannot_be_read_is_a_problem_and_not_a_failure() {
        let configuration = settings::Configuration::parse(NAMED).unwrap();
        let keys = configuration.of(None);
        let enterprise = Path::new("/no/such/file");
        let sources = VetoSources { do_not_track: false, enterprise, is_off: false };
        let read = |name: &SecretName| name.read(|_| None);
        let access = Access::of(&keys.network, &keys.judge, sources, &read);
        assert!(access.network.is_none() && access.consult.is_none());
        assert_eq!(access.problems.len(), 2, "{:?}", access.problems);
    }
}
