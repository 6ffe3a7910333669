//! Landlock: restricts file access a second time, independently of the file tree, with different
//! kernel code.

use super::plan::{Node, NodeAccess, NodeKind, Plan};
use crate::profile::{FilePolicy, Level};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::path::Path;

/// The newest interface whose rights we know. An older kernel enforces those that it supports.
const KNOWN: ABI = ABI::V7;
/// With an older version, files could be truncated or moved despite the rules.
const NEEDED: ABI = ABI::V3;

#[derive(Debug, thiserror::Error)]
pub(super) enum RulesError {
    #[error("Landlock: {0}")]
    Ruleset(#[from] RulesetError),
    #[error("Landlock is not enforced by this kernel")]
    NotEnforced,
}

/// Restricts this process and its children. `blocks_network` also refuses TCP, for use without a
/// network namespace.
pub(super) fn restrict(plan: &Plan, blocks_network: bool) -> Result<(), RulesError> {
    let mut ruleset = Ruleset::default();
    if plan.files != FilePolicy::None {
        ruleset = ruleset
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(NEEDED))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(KNOWN))?;
    }
    if blocks_network {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let mut rules = ruleset.scope(Scope::from_all(KNOWN))?.create()?;
    if plan.files != FilePolicy::None {
        // Everything in the sandbox's tree may be listed. Without such a tree, the program can list
        // what it may read.
        if plan.level == Level::Full {
            rules = beneath(rules, Path::new("/"), AccessFs::ReadDir.into())?;
        }
        for node in &plan.nodes {
            // Without a separate tree, the in-memory folders would be the system's own `/tmp` and
            // `/dev/shm`.
            let is_system = matches!(node.kind, NodeKind::Temporary { .. });
            if plan.level == Level::Full || !is_system {
                rules = add(rules, node)?;
            }
        }
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(RulesError::NotEnforced),
    }
}

fn add(rules: RulesetCreated, node: &Node) -> Result<RulesetCreated, RulesError> {
    let read = AccessFs::from_read(KNOWN);
    match &node.kind {
        NodeKind::Bind { access: NodeAccess::Read, .. }
        | NodeKind::File { .. }
        | NodeKind::Processes => beneath(rules, &node.target, read),
        NodeKind::Bind { access: NodeAccess::Device, .. } => {
            let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
            beneath(rules, &node.target, access)
        }
        NodeKind::Bind { access: NodeAccess::Write, .. } | NodeKind::Temporary { .. } => {
            // Creating devices is never allowed.
            let devices = AccessFs::MakeBlock | AccessFs::MakeChar;
            beneath(rules, &node.target, AccessFs::from_all(KNOWN) & !devices)
        }
        NodeKind::Folder | NodeKind::Link { .. } | NodeKind::Hidden => Ok(rules),
    }
}

fn beneath(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesError> {
    // An optional node may be missing.
    match PathFd::new(path) {
        Ok(descriptor) => Ok(rules.add_rule(PathBeneath::new(descriptor, access))?),
        Err(_) => Ok(rules),
    }
}

/// The version of the interface in this kernel; 0 without Landlock.
pub(super) fn interface_version() -> u32 {
    // The crate does not report it, so probe each version by a right that it introduced.
    let versions: [(u32, ABI); 3] = [(1, ABI::V1), (2, ABI::V2), (3, ABI::V3)];
    let by_files = versions.iter().rev().find(|(_, abi)| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessFs::from_all(*abi)).and_then(Ruleset::create).is_ok()
    });
    let has_network = offers(|ruleset| ruleset.handle_access(AccessNet::from_all(ABI::V4)));
    let has_devices = offers(|ruleset| ruleset.handle_access(AccessFs::from_all(ABI::V5)));
    let has_scope = offers(|ruleset| ruleset.scope(Scope::from_all(ABI::V6)));
    match (has_scope, has_devices, has_network, by_files) {
        (true, ..) => 6,
        (_, true, ..) => 5,
        (_, _, true, _) => 4,
        (_, _, _, Some((version, _))) => *version,
        (_, _, _, None) => 0,
    }
}

fn offers(ask: impl FnOnce(Ruleset) -> Result<Ruleset, RulesetError>) -> bool {
    ask(Ruleset::default().set_compatibility(CompatLevel::HardRequirement))
        .and_then(Ruleset::create)
        .is_ok()
}
