//! What a tried program used and was denied, and the lines that would allow it.

use crate::screen::{self, BOLD, DIM, YELLOW, readable, styled};
use engine::confinement::holds_credentials;
use gate::server::ServerId;
use sandbox::{Access, AccessKind, Blocked, Event, Level, Outcome, Profile};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The most paths that are kept.
const MAX_PATHS: usize = 2_000;
/// The most lines that are shown per kind.
const MAX_SHOWN: usize = 40;
/// Paths that programs probe everywhere, and paths of the system.
const NOISE: [&str; 4] = ["/proc", "/sys", "/dev", "/etc/ld.so"];
/// The accesses observed during a trial.
#[derive(Debug, Default)]
pub(super) struct Findings {
    blocked: BTreeMap<(String, Option<u16>), Blocked>,
    connected: BTreeSet<(String, u16)>,
    /// Existing files that were hidden or read-only.
    denied: BTreeMap<PathBuf, AccessKind>,
    pub(super) failed: Option<String>,
}

impl Findings {
    pub(super) fn hear(&mut self, event: Event) {
        match event {
            Event::Blocked(blocked) if self.blocked.len() < MAX_PATHS => {
                self.blocked.insert((blocked.host.clone(), blocked.port), blocked);
            }
            Event::Connected { host, port } if self.connected.len() < MAX_PATHS => {
                self.connected.insert((host, port));
            }
            Event::Access(access) if self.denied.len() < MAX_PATHS => self.hear_access(access),
            Event::Failed(why) => self.failed = Some(why),
            Event::Blocked(_)
            | Event::Connected { .. }
            | Event::Access(_)
            | Event::Ended { .. } => {}
        }
    }

    fn hear_access(&mut self, Access { mut path, kind, outcome }: Access) {
        if kind == AccessKind::Write && outcome != Outcome::Allowed {
            path = repository_of(&path).unwrap_or(path);
        }
        let is_noise = NOISE.iter().any(|noise| path.starts_with(noise));
        let is_told = match outcome {
            Outcome::Allowed => false,
            Outcome::Denied => true,
            // Programs probe for many files that do not exist.
            Outcome::NotThere => path.exists() || kind == AccessKind::Write && has_parent(&path),
        };
        if is_told && !is_noise && path.is_absolute() {
            let known = self.denied.entry(path).or_insert(kind);
            *known = (*known).max(kind);
        }
    }

    /// The paths to add under `read`, or under `write` if `is_write`.
    fn paths(&self, is_write: bool) -> Vec<&Path> {
        // Never propose a socket: whoever can connect to it can use the service behind it, so a
        // person has to name it.
        let is_meant = |kind: AccessKind| {
            kind != AccessKind::Connect && (kind == AccessKind::Write) == is_write
        };
        let paths =
            self.denied.iter().filter(|(path, kind)| is_meant(**kind) && !holds_credentials(path));
        let mut named: Vec<&Path> = Vec::new();
        for (path, _) in paths {
            // A folder covers everything below it; the paths are sorted.
            if !named.iter().any(|known| path.starts_with(known)) {
                named.push(path);
            }
        }
        named
    }

    fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> =
            self.blocked.values().filter_map(Blocked::allow_entry).collect();
        hosts.dedup();
        hosts
    }

    /// The table lines that would allow what was denied.
    fn lines(&self, profile: &Profile, learns: bool) -> Vec<String> {
        let list = |key: &str, known: Vec<String>, more: Vec<String>| {
            let is_new = |entry: &String| !known.contains(entry);
            let more: Vec<String> = more.into_iter().filter(is_new).collect();
            if more.is_empty() && (known.is_empty() || !learns) {
                return None;
            }
            let all = known.into_iter().chain(more).map(|entry| format!("{:?}", readable(&entry)));
            Some(format!("{key} = [{}]", all.collect::<Vec<_>>().join(", ")))
        };
        let shown =
            |paths: Vec<&Path>| paths.iter().map(|path| path.display().to_string()).collect();
        let allowed = profile.allow.iter().map(ToString::to_string).collect();
        let head = learns.then(|| format!("fs = \"{}\"", profile.files));
        let workspace = profile.workspace.as_ref().filter(|_| learns);
        let workspace =
            workspace.map(|path| format!("workspace = {:?}", path.display().to_string()));
        let write = profile.write.iter().map(|path| path.display().to_string()).collect();
        head.into_iter()
            .chain(workspace)
            .chain(list("net_allow", allowed, self.hosts()))
            .chain(list("read", Vec::new(), shown(self.paths(false))))
            .chain(list("write", write, shown(self.paths(true))))
            .collect()
    }

    pub(super) fn show(&self, id: &ServerId, profile: &Profile, learns: bool) {
        let remark = |line: String| screen::remark(line);
        if !learns {
            remark(styled(BOLD, "denied:").to_string());
            if self.blocked.is_empty() && self.denied.is_empty() {
                remark("  nothing".to_owned());
            }
            for blocked in self.blocked.values().take(MAX_SHOWN) {
                let port = blocked.port.map(|port| format!(":{port}")).unwrap_or_default();
                let place = readable(&format!("{}{port}", blocked.host));
                remark(format!("  network  {place} {}", blocked.reason));
            }
            for (path, kind) in self.denied.iter().take(MAX_SHOWN) {
                let word = match kind {
                    AccessKind::Read => "read   ",
                    AccessKind::Write => "write  ",
                    AccessKind::Execute => "execute",
                    AccessKind::Connect => "connect",
                };
                remark(format!("  {word}  {}", readable(&path.display().to_string())));
            }
            let rest = self.denied.len().saturating_sub(MAX_SHOWN);
            if rest > 0 {
                remark(format!("  and {rest} more"));
            }
        }
        let lines = self.lines(profile, learns);
        if !lines.is_empty() {
            let what =
                if learns { "a profile for what it did:" } else { "to allow what you expect:" };
            remark(styled(DIM, what).to_string());
            remark(format!("[server.{:?}.sandbox]", id.as_str()));
            lines.into_iter().for_each(remark);
        }
        let secrets = self.denied.keys().filter(|path| holds_credentials(path)).count();
        if secrets > 0 {
            let files = crate::report::count(secrets, "path", "paths");
            remark(
                styled(YELLOW, format!("{files} where credentials are kept: left out")).to_string(),
            );
        }
    }

    pub(super) fn document(&self, level: Level, code: u8, profile: &Profile) -> Value {
        let network: Vec<Value> = self
            .blocked
            .values()
            .map(|blocked| {
                json!({
                    "host": blocked.host,
                    "port": blocked.port,
                    "reason": blocked.reason.code(),
                    "count": blocked.count,
                    "net_allow": blocked.allow_entry(),
                })
            })
            .collect();
        let files: Vec<Value> =
            self.denied.iter().map(|(path, kind)| json!({ "path": path, "kind": kind })).collect();
        json!({
            "level": level,
            "fs_policy": profile.files,
            "net_policy": profile.network,
            "exit_code": code,
            "denied": { "network": network, "files": files },
            "lines": self.lines(profile, true),
        })
    }
}

/// The `.git` folder that a path is in: writable as a whole or not at all.
fn repository_of(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|above| above.ends_with(".git")).map(Path::to_owned)
}

fn has_parent(path: &Path) -> bool {
    path.parent().is_some_and(|parent| parent != Path::new("/") && parent.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::BlockReason;

    fn access(path: &str, kind: AccessKind, outcome: Outcome) -> Event {
        Event::Access(Access { path: PathBuf::from(path), kind, outcome })
    }

    fn heard(events: Vec<Event>) -> Findings {
        let mut findings = Findings::default();
        events.into_iter().for_each(|event| findings.hear(event));
        findings
    }

    #[test]
    fn what_was_denied_becomes_the_lines_that_allow_it() {
        let blocked = Blocked {
            host: "a.example".to_owned(),
            port: Some(443),
            reason: BlockReason::NotAllowed,
            count: 1,
        };
        let findings = heard(vec![
            Event::Blocked(blocked),
            access("/usr/share/x", AccessKind::Write, Outcome::Denied),
            access("/usr/share/x/y", AccessKind::Write, Outcome::Denied),
            access("/etc/passwd", AccessKind::Read, Outcome::NotThere),
            access("/nowhere/at/all", AccessKind::Read, Outcome::NotThere),
            access("/etc/hosts", AccessKind::Read, Outcome::Allowed),
            access("/proc/1/mem", AccessKind::Read, Outcome::Denied),
            access("/work/.git/index.lock", AccessKind::Write, Outcome::Denied),
        ]);
        let lines = findings.lines(&Profile::default(), false);
        assert_eq!(
            lines,
            [
                "net_allow = [\"a.example\"]",
                "read = [\"/etc/passwd\"]",
                "write = [\"/usr/share/x\", \"/work/.git\"]"
            ]
        );
    }

    #[test]
    fn credentials_are_never_proposed() {
        let lines = |path: &str, kind: AccessKind| {
            let findings = heard(vec![access(path, kind, Outcome::Denied)]);
            assert_eq!(findings.denied.len(), 1, "{path}");
            findings.lines(&Profile::default(), false)
        };
        for path in ["/home/ada/.ssh/id_ed25519", "/root/.config/gh/hosts.yml", "/etc/shadow"] {
            assert_eq!(lines(path, AccessKind::Read), [""; 0], "{path}");
        }
        assert_eq!(lines("/run/docker.sock", AccessKind::Connect), [""; 0]);
        for path in ["/home/ada/ssh/id", "/home/ada/.config/other", "/etc/shadowed"] {
            assert_eq!(lines(path, AccessKind::Read), [format!("read = [\"{path}\"]")], "{path}");
        }
    }
}
