//! Shows, along with the changes of a server's contract, what its sandbox stopped and the line that
//! would allow it.

use crate::screen::{self, BOLD, DIM, YELLOW, readable, styled};
use crate::target::Workplace;
use contract::time::Timestamp;
use engine::confinement::{DeniedHost, RecordFile};
use gate::server::ServerId;
use serde_json::{Value, json};

/// Older attempts are not shown.
const SHOWN_MILLISECONDS: i64 = 7 * 86_400_000;

/// The hosts that the server was recently denied and that are still not allowed.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    hosts: Vec<DeniedHost>,
    /// The complete list that would allow them, including what is allowed already.
    allow: Vec<String>,
}

impl Stopped {
    pub(super) fn of(workplace: &Workplace, id: &ServerId, now: Timestamp) -> Stopped {
        let configured = workplace.configuration.sandbox(id);
        let record = RecordFile::of(workplace.home.path(), id).read();
        let last = record.started.and_then(|start| start.keys);
        let mut rules = configured.allowed_hosts();
        let allowed: Vec<String> = rules.iter().map(ToString::to_string).collect();
        rules.extend(last.iter().flat_map(settings::Sandbox::allowed_hosts));
        let is_new = |host: &DeniedHost| {
            now.0.saturating_sub(host.last_ms) < SHOWN_MILLISECONDS && !host.is_allowed_by(&rules)
        };
        let hosts: Vec<DeniedHost> = record.denied.into_iter().filter(is_new).collect();
        let mut allow = allowed;
        for entry in hosts.iter().filter_map(|host| host.allow.clone()) {
            if !allow.contains(&entry) {
                allow.push(entry);
            }
        }
        Stopped { hosts, allow }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    pub(super) fn document(&self) -> Value {
        let hosts = self.hosts.iter().map(|host| {
            json!({
                "host": host.host,
                "port": host.port,
                "reason": host.reason,
                "count": host.count,
                "last": Timestamp(host.last_ms),
                "net_allow": host.allow,
            })
        });
        hosts.collect()
    }

    pub(super) fn show(&self, id: &ServerId) {
        if self.is_empty() {
            return;
        }
        screen::say("");
        screen::say(format!(
            "{}  {}",
            styled(BOLD, id),
            styled(YELLOW.bold(), "its sandbox kept it from the network")
        ));
        for host in &self.hosts {
            let port = host.port.map(|port| format!(":{port}")).unwrap_or_default();
            let place = readable(&format!("{}{port}", host.host));
            screen::say(format!(
                "    {place}  {}, {}",
                host.reason,
                crate::report::count(
                    usize::try_from(host.count).unwrap_or(usize::MAX),
                    "attempt",
                    "attempts"
                ),
            ));
        }
        if !self.allow.is_empty() {
            let quoted: Vec<String> =
                self.allow.iter().map(|entry| format!("\"{}\"", readable(entry))).collect();
            screen::say(styled(DIM, format!("    to allow what you expect, under {}:", table(id))));
            screen::say(format!("    net_allow = [{}]", quoted.join(", ")));
        }
    }
}

/// The configuration table, with the id quoted where TOML needs it.
fn table(id: &ServerId) -> String {
    match id.as_str().contains('.') {
        true => format!("[server.\"{id}\".sandbox] (a gateway's server: in its `sandbox`)"),
        false => format!("[server.{id}.sandbox] (a gateway's server: in its `sandbox`)"),
    }
}
