//! Landlock: which files a confined program may use, a second time and by other code of the kernel than the tree.

use super::plan::{Node, NodeAccess, NodeKind, Plan};
use crate::profile::{FilePolicy, Level};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::path::Path;

/// The newest interface whose rights we know. An older kernel enforces those that it has.
const KNOWN: ABI = ABI::V7;
/// With less, a file could be truncated or moved past the rules.
const NEEDED: ABI = ABI::V3;

#[derive(Debug, thiserror::Error)]
pub(super) enum RulesError {
    #[error("Landlock: {0}")]
    Ruleset(#[from] RulesetError),
    #[error("Landlock is not enforced by this kernel")]
    NotEnforced,
}

/// Restricts this process and what it starts. `blocks_network` also refuses TCP, for where there is no namespace for it.
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
        // The tree has nothing that may not be listed. Without a tree of its own, the program lists what it may read.
        if plan.level == Level::Full {
            rules = beneath(rules, Path::new("/"), AccessFs::ReadDir.into())?;
        }
        for node in &plan.nodes {
            // Without a tree of its own, the folders in memory would be the system's own `/tmp` and `/dev/shm`.
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
            // Devices are made nowhere.
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
    // An optional node may not be there.
    match PathFd::new(path) {
        Ok(descriptor) => Ok(rules.add_rule(PathBeneath::new(descriptor, access))?),
        Err(_) => Ok(rules),
    }
}

/// The version of the interface that this kernel has; 0 without Landlock.
pub(super) fn interface_version() -> u32 {
    // The crate does not tell, so each version is asked for by a right that it brought.
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
