//! What the processes of a server say that they run. Only Linux shows it as files.

use std::io;
use std::path::PathBuf;

/// The most processes that a server may have to be looked through.
pub(super) const MAX_MEMBERS: usize = 256;
/// How much of a process's command line is read: its file is among the first words.
#[cfg(target_os = "linux")]
const MAX_COMMAND_LINE_BYTES: u64 = 64 * 1024;

/// The files that the processes of a group run, as far as they say: an interpreter's script, else the program itself.
#[cfg(target_os = "linux")]
pub(super) fn files_run_by(leader: u32, max_members: usize) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut members = 0;
    for entry in std::fs::read_dir("/proc")? {
        let folder = entry?.path();
        let is_number = folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
        // A process may end while it is looked at.
        if is_number.is_none() || group_of(&folder) != Some(leader) {
            continue;
        }
        members += 1;
        if members > max_members {
            return Err(io::Error::other(format!("there are more than {max_members}")));
        }
        files.extend(file_run_by(&folder));
    }
    Ok(files)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn files_run_by(_: u32, _: usize) -> io::Result<Vec<PathBuf>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The group that a process is in.
#[cfg(target_os = "linux")]
fn group_of(folder: &std::path::Path) -> Option<u32> {
    let stat = std::fs::read(folder.join("stat")).ok()?;
    group_in(&stat)
}

/// The group in a line of `/proc/N/stat`. The program's name in it may have any character, also `)` and spaces.
#[cfg(target_os = "linux")]
fn group_in(stat: &[u8]) -> Option<u32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    // State, parent, group.
    rest.split_ascii_whitespace().nth(2)?.parse().ok()
}

#[cfg(target_os = "linux")]
fn file_run_by(folder: &std::path::Path) -> Option<PathBuf> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let command = std::fs::File::open(folder.join("cmdline")).ok()?;
    command.take(MAX_COMMAND_LINE_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut words = text.split('\0').map(str::to_owned);
    let program = words.next()?;
    let words: Vec<String> = words.collect();
    match super::command::script_of(&program, &words) {
        Ok(Some(script)) => Some(std::fs::read_link(folder.join("cwd")).ok()?.join(script)),
        Ok(None) => std::fs::read_link(folder.join("exe")).ok(),
        Err(_) => None,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_read_whatever_the_program_is_called() {
        assert_eq!(group_in(b"12 (node) S 11 10 10 0 -1"), Some(10));
        assert_eq!(group_in(b"12 (a) S 1 2 (b) R 11 10 9"), Some(10));
        for stat in [&b""[..], b"12 (node", b"12 (node) S 11", b"12 (node) S 11 x 1"] {
            assert_eq!(group_in(stat), None);
        }
    }

    #[test]
    fn the_files_of_a_group_are_those_of_its_processes_and_of_no_others() {
        use std::os::unix::process::CommandExt;
        use std::process::{Command, Stdio};
        // More than is read of it: the file is among the first words.
        let long = "x".repeat(usize::try_from(MAX_COMMAND_LINE_BYTES).unwrap());
        let mut child = Command::new("sh")
            .arg0("node")
            .args(["/dev/stdin", &long])
            .process_group(0)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        assert_eq!(files_run_by(child.id(), 1).unwrap(), [PathBuf::from("/dev/stdin")]);
        assert!(files_run_by(child.id(), 0).is_err());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(files_run_by(child.id(), 0).unwrap().is_empty());
    }
}
