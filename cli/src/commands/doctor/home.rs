//! Checks Holdpoint's home: its owner, the settings, pins and waiting changes.

use super::Finding;
use super::codes::Code;
use crate::arguments::Options;
use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::observation::now;
use crate::report::count;
use crate::target::{Workplace, home_path};
use contract::surface::{EntryId, EntryType};
use gate::posture::Posture;
use gate::server::{ServerId, ServerStatus};
use gate::shell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use store::receipts::check_args_key;
use store::{Home, HomeError, IncidentStore, Store, Witnessed};

/// The recorded servers and the settings.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Servers that have pins.
    pub(super) pinned: BTreeSet<String>,
    pub(super) configuration: Configuration,
    pub(super) home: PathBuf,
}

/// Checks the home, and returns the recorded servers and settings if they could be read.
pub(super) fn look(
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Result<Option<Record>, Failure> {
    let path = home_path(options)?;
    if std::fs::symlink_metadata(&path).is_err() {
        let sentence = format!("there is no home at `{}` yet: nothing is pinned", path.display());
        findings.push(Finding::new(Code::HomeMissing, sentence).fixed_by("holdpoint wire"));
        return Ok(Some(Record { home: path, ..Record::default() }));
    }
    let home = match Home::open(&path) {
        Ok(home) => home,
        Err(error) => {
            findings.push(wrong_home(&error));
            return Ok(None);
        }
    };
    let sentence = format!("home `{}`, which only you can change", home.path().display());
    findings.push(Finding::new(Code::HomeFine, sentence));
    if let Some(full) = crate::disk::full(home.path()) {
        findings.push(Finding::new(Code::DiskFull, full));
    }
    #[cfg(unix)]
    findings.extend(visible(home.path()));
    let configuration = match Configuration::read(&home.config_path()) {
        Ok(configuration) => configuration,
        Err(error) => {
            let fix = format!("holdpoint doctor --config {}", shell::path(&home.config_path()));
            let finding = Finding::new(Code::ConfigurationWrong, error.to_string());
            findings.push(finding.fixed_by(fix));
            return Ok(None);
        }
    };
    look_at_settings(&home.config_path(), &configuration, findings)?;
    // Open the key as `run` does: a gate that cannot hash arguments does not start.
    if let Err(error) = check_args_key(&home, configuration.receipts().args_hash) {
        findings.push(Finding::new(Code::ArgsKeyUnusable, error.to_string()));
    }
    let opened = configuration.store().and_then(|place| Ok(store::open(&home, &place)?));
    let mut store = match opened {
        Ok(store) => Witnessed::new(store, &home),
        Err(error) => {
            findings.push(Finding::new(Code::StoreUnusable, error.to_string()));
            return Ok(None);
        }
    };
    let launch_key = store.launch_key(false)?;
    let workplace = Workplace { home, store, configuration, launch_key };
    let looked = look_at_pins(&workplace, findings).and_then(|record| {
        look_at_ids(&workplace, findings)?;
        Ok(record)
    });
    match looked {
        Ok(record) => {
            Ok(Some(Record { configuration: workplace.configuration, home: path, ..record }))
        }
        Err(error) => {
            findings.push(Finding::new(Code::StoreUnusable, error.to_string()));
            Ok(None)
        }
    }
}

/// Reports a home that others can list. Not an error: a folder that existed before is used as it
/// is, and its owner may want it visible.
#[cfg(unix)]
fn visible(path: &Path) -> Option<Finding> {
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).ok()?);
    let sentence = "other users can list the files in the home, but not read them";
    let finding = Finding::new(Code::HomeVisible, sentence);
    (mode & 0o077 != 0).then(|| finding.fixed_by(format!("chmod 700 {}", shell::path(path))))
}

fn wrong_home(error: &HomeError) -> Finding {
    let sentence = error.to_string();
    match error {
        HomeError::OthersCanWrite { path, mode } => Finding::new(Code::HomeExposed, sentence)
            .fixed_by(format!("chmod {mode} {}", shell::path(path))),
        HomeError::ReplaceableByOthers { path } => Finding::new(Code::HomeExposed, sentence)
            .fixed_by(format!("chmod o-w {}", shell::path(path))),
        HomeError::NotOurs { .. } | HomeError::Shared { .. } => {
            Finding::new(Code::HomeExposed, sentence)
        }
        HomeError::NotADirectory { .. } | HomeError::DanglingLink { .. } | HomeError::Io { .. } => {
            Finding::new(Code::HomeUnusable, sentence)
        }
    }
}

fn look_at_settings(
    path: &Path,
    configuration: &Configuration,
    findings: &mut Vec<Finding>,
) -> Result<(), Failure> {
    let settings = configuration.settings(None, None);
    let place = if path.exists() { "`holdpoint.toml`" } else { "no `holdpoint.toml`" };
    let sentence = format!("{place}: posture {}", settings.posture);
    findings.push(Finding::new(Code::ConfigurationFine, sentence));
    if settings.posture == Posture::Monitor {
        findings.push(monitor("for all servers", path));
    }
    if configuration.is_unattended() {
        let sentence = "changes may be approved without a person (`approve.unattended`)";
        findings.push(Finding::new(Code::ApprovalsUnattended, sentence));
    }
    Ok(())
}

fn monitor(whom: &str, path: &Path) -> Finding {
    let sentence = format!("posture monitor {whom}: changes are reported, and nothing is held");
    let fix = format!("set `posture = \"guard\"` in {}", path.display());
    Finding::new(Code::PostureMonitor, sentence).fixed_by(fix)
}

/// A misspelled tool name would never trigger an approval.
fn unknown_tool(id: &ServerId, tool: &str) -> Finding {
    let tool = gate::words::escape_hidden(tool);
    let sentence = format!(
        "`{id}`: `approval.tools` names `{tool}`, and the server has no pinned tool of that name"
    );
    Finding::new(Code::ApprovalToolUnknown, sentence)
}

fn look_at_pins(workplace: &Workplace, findings: &mut Vec<Finding>) -> Result<Record, Failure> {
    let mut record = Record::default();
    let general = workplace.configuration.settings(None, None).posture;
    let (mut tools, mut servers) = (0, 0);
    for server in workplace.store.servers()? {
        servers += 1;
        let id = &server.id;
        let judged = workplace.review(id, now())?;
        let pins = &judged.server.snapshot.pins;
        let pinned = |entry_type: EntryType| {
            pins.iter().filter(|(id, pins)| id.entry_type == entry_type && !pins.is_gone()).count()
        };
        tools += pinned(EntryType::Tool);
        let is_pinned = |tool: &str| {
            let is_it = |id: &EntryId| id.entry_type == EntryType::Tool && id.key == tool;
            pins.iter().any(|(id, pins)| is_it(id) && !pins.is_gone())
        };
        let named = workplace.configuration.approved_tools(id).iter();
        findings.extend(named.filter(|tool| !is_pinned(tool)).map(|tool| unknown_tool(id, tool)));
        if pins.iter().next().is_some() {
            record.pinned.insert(id.to_string());
        }
        if pins.is_damaged() {
            findings.push(untrusted(id, pins.lost.as_deref()));
        }
        match judged.status() {
            ServerStatus::Quarantined => {
                let finding =
                    Finding::new(Code::ServerQuarantined, format!("`{id}` is quarantined"));
                findings.push(finding.fixed_by(format!("holdpoint release {id}")));
            }
            ServerStatus::Changed
            | ServerStatus::Pending
            | ServerStatus::Verified
            | ServerStatus::Unbaselined => {
                let waiting = judged.waiting().count();
                if waiting > 0 {
                    let held = judged.waiting().filter(|entry| entry.verdict.is_held()).count();
                    let parts = [(held, "held"), (waiting - held, "deferred")].into_iter();
                    let parts = parts.filter(|(number, _)| *number > 0);
                    let parts: Vec<String> =
                        parts.map(|(number, word)| format!("{number} {word}")).collect();
                    let sentence = format!("`{id}`: {}", parts.join(", "));
                    let finding = Finding::new(Code::ServerHeld, sentence);
                    findings.push(finding.fixed_by(format!("holdpoint review {id}")));
                }
            }
        }
        // A posture in a host's entry is reported together with the entry.
        let configured = workplace.configuration.settings(Some(id), None).posture;
        if configured == Posture::Monitor && general != Posture::Monitor {
            findings.push(monitor(&format!("for `{id}`"), &workplace.home.config_path()));
        }
    }
    if let Some((incident, _)) = workplace.store.incident()?.incident {
        let sentence = format!("incident mode is on, level {}", incident.level.as_str());
        let finding = Finding::new(Code::IncidentOn, sentence);
        findings.push(finding.fixed_by("holdpoint incident off --reason TEXT"));
    }
    let sentence = format!(
        "{} pinned on {}",
        count(tools, "tool", "tools"),
        count(servers, "server", "servers")
    );
    findings.push(Finding::new(Code::PinsFine, sentence));
    Ok(record)
}

/// Servers whose ids an older version derived from a word of their launch: all their receipts
/// contain that word.
fn look_at_ids(workplace: &Workplace, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    for id in workplace.store.servers_named_by_launches()? {
        let sentence = format!(
            "`{id}` was named by a word of its launch that may be a secret, and its receipts have that name: they cannot be rewritten"
        );
        let fix = format!("holdpoint receipts list --server {id}");
        findings.push(Finding::new(Code::ReceiptsHoldWords, sentence).fixed_by(fix));
    }
    Ok(())
}

fn untrusted(id: &ServerId, lost: Option<&str>) -> Finding {
    let why = lost.unwrap_or("a pin was changed by a program other than Holdpoint");
    Finding::new(Code::PinsUntrusted, format!("`{id}`: {why}"))
        .fixed_by(format!("holdpoint review {id}"))
}
