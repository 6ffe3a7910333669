//! The binary itself: where it is, whether a shell finds it, and whether others could replace it.

use super::Finding;
use super::codes::Code;
use std::path::{Path, PathBuf};

pub(super) fn look() -> Vec<Finding> {
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let mut findings = Vec::new();
    let version = env!("CARGO_PKG_VERSION");
    let shown = program.display();
    if on_path(crate::hosting::PROGRAM).is_some() {
        let sentence = format!("holdpoint {version} at `{shown}`");
        findings.push(Finding::new(Code::ProgramFound, sentence));
    } else {
        let folder = program.parent().unwrap_or(Path::new("/")).display();
        let sentence = format!("holdpoint {version} at `{shown}`, which a shell does not find");
        let mend = format!("export PATH=\"{folder}:$PATH\"");
        findings.push(Finding::new(Code::ProgramNotOnPath, sentence).mended_by(mend));
    }
    let exposed = [Some(program.as_path()), program.parent()].into_iter().flatten();
    for path in exposed.filter(|path| others_can_write(path)) {
        let shown = path.display();
        let sentence = format!("others can write to `{shown}`, and so replace the gate");
        let mend = format!("chmod go-w {}", shell_word(path));
        findings.push(Finding::new(Code::ProgramExposed, sentence).mended_by(mend));
    }
    findings
}

/// A path as a shell reads it.
pub(super) fn shell_word(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// Where a program is that is named without a folder.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// A folder like `/tmp`, where only owners may replace what is theirs, is as good as one that others cannot write to.
#[cfg(unix)]
fn others_can_write(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const OTHERS: u32 = 0o002;
    const GROUP: u32 = 0o020;
    const STICKY: u32 = 0o1000;
    let Ok(found) = std::fs::metadata(path) else { return false };
    let is_ours = [0, rustix::process::getuid().as_raw()].contains(&found.uid());
    // Many systems give each user a group of the same number, with nobody else in it.
    let is_own_group = found.gid() == found.uid();
    let is_open = found.mode() & OTHERS != 0 || found.mode() & GROUP != 0 && !is_own_group;
    let is_sticky = found.is_dir() && found.mode() & STICKY != 0;
    !is_ours || is_open && !is_sticky
}

#[cfg(not(unix))]
fn others_can_write(_path: &Path) -> bool {
    false
}
