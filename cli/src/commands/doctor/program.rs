//! Checks the binary itself: where it is, whether a shell finds it, and whether others could
//! replace it.

use super::Finding;
use super::codes::Code;
use crate::gate_program::{find_in, is_this_program};
use crate::settled_program::is_in_package_folder;
use gate::shell;
use std::path::Path;

pub(super) fn look() -> Vec<Finding> {
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let mut findings = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    let shown = program.display();
    let folder = program.parent().unwrap_or(Path::new("/")).display();
    let first = format!("export PATH=\"{folder}:$PATH\"");
    let on_path = std::env::var_os("PATH").and_then(|path| find_in(crate::hosting::PROGRAM, &path));
    findings.push(match on_path {
        // `npx` and `uvx` put their own folders first in `PATH`, for this run only.
        _ if is_in_package_folder(&program) => {
            let sentence = format!("holdpoint {version}, fetched by a package manager: `{shown}`");
            Finding::new(Code::ProgramFound, sentence)
        }
        Some(found) if is_this_program(&found) => {
            Finding::new(Code::ProgramFound, format!("holdpoint {version} at `{shown}`"))
        }
        Some(found) => {
            let sentence = format!(
                "holdpoint {version} at `{shown}`; typing `holdpoint` starts another program, `{}`",
                found.display()
            );
            Finding::new(Code::ProgramOther, sentence).fixed_by(first)
        }
        None => {
            let sentence = format!("holdpoint {version} at `{shown}`, which is not on your `PATH`");
            Finding::new(Code::ProgramNotOnPath, sentence).fixed_by(first)
        }
    });
    findings.extend(exposed(&program));
    findings
}

/// Reports a gate program that other users could replace.
pub(super) fn exposed(program: &Path) -> Vec<Finding> {
    let paths = [Some(program), program.parent()].into_iter().flatten();
    let finding = |path: &Path| {
        let sentence = format!("others can write to `{}`, and so replace the gate", path.display());
        let fix = format!("chmod go-w {}", shell::path(path));
        Finding::new(Code::ProgramExposed, sentence).fixed_by(fix)
    };
    paths.filter(|path| others_can_write(path)).map(finding).collect()
}

/// Whether others can write to a path. In a sticky folder like `/tmp`, only owners can replace
/// their files, so it counts as safe.
#[cfg(unix)]
fn others_can_write(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const OTHERS: u32 = 0o002;
    const GROUP: u32 = 0o020;
    const STICKY: u32 = 0o1000;
    let Ok(found) = std::fs::metadata(path) else { return false };
    let is_ours = [0, rustix::process::getuid().as_raw()].contains(&found.uid());
    // Many systems give each user a private group whose number equals the user's.
    let is_own_group = found.gid() == found.uid();
    let is_open = found.mode() & OTHERS != 0 || found.mode() & GROUP != 0 && !is_own_group;
    let is_sticky = found.is_dir() && found.mode() & STICKY != 0;
    !is_ours || is_open && !is_sticky
}

#[cfg(not(unix))]
fn others_can_write(_path: &Path) -> bool {
    false
}
