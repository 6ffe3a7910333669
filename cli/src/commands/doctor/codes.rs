//! Every finding that `doctor` can report: its code, which programs rely on, and its severity.
//! `docs/doctor.md` has a paragraph on each, which `holdpoint help doctor#CODE` prints.

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FindingState {
    Ok,
    /// Worth knowing, but configured on purpose.
    Note,
    /// The user is less protected than they may think.
    Wrong,
}

impl FindingState {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            FindingState::Ok => "ok",
            FindingState::Note => "note",
            FindingState::Wrong => "wrong",
        }
    }
}

/// Makes the enum and its table from the same lines, so that they cannot disagree.
macro_rules! codes {
    ($($code:ident, $name:literal, $state:ident;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Code { $($code),* }

        impl Code {
            #[cfg(test)]
            pub(crate) const ALL: &[Code] = &[$(Code::$code),*];

            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Code::$code => $name),* }
            }

            pub(crate) const fn state(self) -> FindingState {
                match self { $(Code::$code => FindingState::$state),* }
            }
        }
    };
}

codes! {
    ProgramFound, "program_found", Ok;
    ProgramNotOnPath, "program_not_on_path", Note;
    ProgramOther, "program_other", Wrong;
    ProgramExposed, "program_exposed", Wrong;
    HomeFine, "home_fine", Ok;
    HomeVisible, "home_visible", Note;
    HomeMissing, "home_missing", Note;
    HomeExposed, "home_exposed", Wrong;
    HomeUnusable, "home_unusable", Wrong;
    ConfigurationFine, "configuration_fine", Ok;
    ConfigurationWrong, "configuration_wrong", Wrong;
    PostureMonitor, "posture_monitor", Note;
    ApprovalsUnattended, "approvals_unattended", Note;
    ApprovalToolUnknown, "approval_tool_unknown", Note;
    PinsFine, "pins_fine", Ok;
    PinsUntrusted, "pins_untrusted", Wrong;
    StoreUnusable, "store_unusable", Wrong;
    DiskFull, "disk_full", Wrong;
    ArgsKeyUnusable, "args_key_unusable", Wrong;
    ServerHeld, "server_held", Note;
    ServerQuarantined, "server_quarantined", Note;
    IncidentOn, "incident_on", Note;
    ReceiptsHoldWords, "receipts_hold_words", Note;
    HostsNone, "hosts_none", Note;
    HostGuarded, "host_guarded", Ok;
    HostUnwired, "host_unwired", Wrong;
    HostUnreadable, "host_unreadable", Wrong;
    ServerUnguardable, "server_unguardable", Note;
    SignedIn, "signed_in", Note;
    CommandGone, "command_gone", Wrong;
    CommandOther, "command_other", Wrong;
    CommandCached, "command_cached", Note;
    CommandFetched, "command_fetched", Note;
    ServersShareId, "servers_share_id", Note;
    EntryLooser, "entry_looser", Note;
    EntryHome, "entry_home", Wrong;
    EntryVariable, "entry_variable", Wrong;
    EntryBypassed, "entry_bypassed", Wrong;
    EntryEnvFile, "entry_env_file", Note;
    ServerNotSeen, "server_not_seen", Note;
    SandboxFull, "sandbox_full", Ok;
    SandboxPartial, "sandbox_partial", Note;
    SandboxNone, "sandbox_none", Note;
    WatcherRuns, "watcher_runs", Ok;
    WatcherAbsent, "watcher_absent", Note;
    WatcherStopped, "watcher_stopped", Wrong;
}

impl Code {
    /// The command that explains the finding.
    pub(crate) fn page(self) -> String {
        format!("holdpoint help doctor#{}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn page() -> String {
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/doctor.md")).unwrap()
    }

    /// Each code has exactly one heading, and no heading lacks a code.
    #[test]
    fn every_code_is_explained_once() {
        let page = page();
        let headings: Vec<&str> =
            page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        let names: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len(), "two codes have one name");
        assert_eq!(headings.iter().copied().collect::<BTreeSet<_>>(), names);
        assert_eq!(headings.len(), names.len(), "a code is explained twice");
    }

    #[test]
    fn the_page_says_how_grave_a_code_is() {
        let page = page();
        for code in Code::ALL {
            let heading = format!("### {}\n\n**{}.**", code.as_str(), code.state().as_str());
            assert!(page.contains(&heading), "docs/doctor.md does not have `{heading}`");
        }
    }
}
