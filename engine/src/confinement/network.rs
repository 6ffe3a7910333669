//! Determines which hosts a confined server may reach: those that the operator names, those in its
//! launch, and those in the table of known packages. Pure.

use sandbox::{HostRule, NetworkPolicy};
use settings::Sandbox;

/// The network of a confined server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub policy: NetworkPolicy,
    pub allow: Vec<HostRule>,
}

impl Network {
    /// `named` are the hosts in the launch, `known` those of its package.
    pub(super) fn of(keys: &Sandbox, named: Vec<HostRule>, known: &[HostRule]) -> Network {
        let policy = keys.net.map(|word| word.0);
        let allow = match policy {
            Some(NetworkPolicy::BlockAll | NetworkPolicy::None) => Vec::new(),
            Some(NetworkPolicy::Allowlist) | None => {
                let mut allow = keys.allowed_hosts();
                for rule in named.into_iter().chain(known.iter().cloned()) {
                    if !allow.contains(&rule) {
                        allow.push(rule);
                    }
                }
                allow
            }
        };
        let usual = match allow.is_empty() {
            true => NetworkPolicy::BlockAll,
            false => NetworkPolicy::Allowlist,
        };
        Network { policy: policy.unwrap_or(usual), allow }
    }
}

/// The hosts of the URLs in a launch's words. A word is an argument, or the value of a variable.
pub(super) fn named_hosts<'a>(words: impl Iterator<Item = &'a str>) -> Vec<HostRule> {
    let urls = words.filter_map(|word| {
        let at =
            ["https://", "http://", "wss://", "ws://"].iter().find_map(|scheme| word.find(scheme));
        url::Url::parse(word.get(at?..)?).ok()
    });
    let rules = urls.filter_map(|url| {
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        let is_plain = matches!(url.scheme(), "http" | "ws");
        let prefix = if is_plain { "tcp:" } else { "" };
        // An address includes its port and needs no prefix.
        format!("{prefix}{host}:{port}").parse::<HostRule>().ok()
    });
    rules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &[&str]) -> Vec<String> {
        named_hosts(words.iter().copied()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn urls_in_words_name_hosts() {
        assert_eq!(named(&["https://a.example/mcp"]), ["a.example"]);
        assert_eq!(named(&["--url=https://a.example:8443/x"]), ["a.example:8443"]);
        assert_eq!(named(&["http://a.example"]), ["tcp:a.example:80"]);
        assert_eq!(named(&["wss://b.example/s", "x", "/srv"]), ["b.example"]);
        assert!(named(&["a.example", "file:///etc", "https://", "postgres://db/x"]).is_empty());
    }

    #[test]
    fn nothing_is_reached_where_nothing_is_named() {
        let keys = |text: &str| toml::from_str::<Sandbox>(text).unwrap();
        let rule = |text: &str| text.parse::<HostRule>().unwrap();
        let known = [rule("known.example")];
        let network = |text: &str, named: &[&str], known: &[HostRule]| {
            let network =
                Network::of(&keys(text), named.iter().map(|it| rule(it)).collect(), known);
            let allow: Vec<String> = network.allow.iter().map(ToString::to_string).collect();
            format!("{} {}", network.policy, allow.join(" "))
        };
        assert_eq!(network("", &[], &[]), "block_all ");
        assert_eq!(network("", &["a.example"], &known), "allowlist a.example known.example");
        assert_eq!(
            network("net_allow = [\"b.example\"]", &["b.example"], &[]),
            "allowlist b.example"
        );
        assert_eq!(network("net = \"block_all\"", &["a.example"], &known), "block_all ");
        assert_eq!(network("net = \"allowlist\"", &[], &[]), "allowlist ");
        assert_eq!(network("net = \"none\"", &["a.example"], &[]), "none ");
    }
}
