//! What a server's processes report that they run, and which of them hold its pipes. Only Linux
//! exposes this as files.

use super::NotObserved;
use crate::process::Pipes;
use std::io;
use std::path::{Path, PathBuf};

/// The most processes of a server that are examined.
pub(super) const MAX_MEMBERS: usize = 256;
/// The most open files of one process that are examined.
#[cfg(target_os = "linux")]
const MAX_OPEN_FILES: usize = 16 * 1024;
/// How much of a process's command line is read. Its file is among the first words.
#[cfg(target_os = "linux")]
const MAX_COMMAND_LINE_BYTES: usize = 64 * 1024;
/// How much of a process's environment is read. A larger one is refused, because it cannot be
/// examined completely.
#[cfg(target_os = "linux")]
const MAX_ENVIRONMENT_BYTES: usize = 4 * 1024 * 1024;
/// Programs with which a launcher runs a package's program.
const SHELLS: [&str; 5] = ["ash", "bash", "busybox", "dash", "sh"];

/// One process of a server.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "processes are seen on Linux only"))]
#[derive(Debug)]
pub(super) struct Member {
    pub(super) id: u32,
    parent: u32,
    folder: PathBuf,
    /// Whether it uses the server's pipes for input and output.
    pub(super) has_pipes: bool,
    /// Whether it has at least one of the server's pipes, so that it could act in the server's
    /// place.
    can_speak: bool,
    /// As reported by the process itself.
    command: Vec<String>,
    program: Option<PathBuf>,
}

impl Member {
    /// The file that it runs, as far as it reports that: an interpreter's script, otherwise the
    /// program itself. A relative path to a script is resolved against the folder that the server
    /// was started in; the process may have changed its folder since.
    pub(super) fn file(&self, directory: &Path) -> Option<PathBuf> {
        let program = self.program.as_ref()?;
        let (first, words) = self.command.split_first()?;
        match super::command::script_of(first, words) {
            Ok(Some(script)) if Path::new(script).is_absolute() => {
                super::command::is_interpreter(program).then(|| PathBuf::from(script))
            }
            Ok(Some(script)) => {
                let now = std::fs::read_link(self.folder.join("cwd")).ok()?.join(script);
                let then = directory.join(script).canonicalize().ok()?;
                let is_same = super::command::is_interpreter(program)
                    && now.canonicalize().is_ok_and(|now| now == then);
                is_same.then_some(then)
            }
            Ok(None) => Some(program.clone()),
            Err(_) => None,
        }
    }

    /// Refuses a process that was started with options that make it load something else.
    pub(super) fn refuse_loading(&self) -> Result<(), NotObserved> {
        use super::surroundings::{SetBy, Surroundings, refuse_loading};
        let variables = environment_of(&self.folder).map_err(NotObserved::Processes)?;
        let pairs = variables.iter().map(|(name, value)| (name.as_ref(), value.as_ref()));
        refuse_loading(pairs, SetBy::Anybody)?;
        if self.program.as_ref().is_some_and(|program| program.ends_with("bun")) {
            let directory = std::fs::read_link(self.folder.join("cwd"));
            let directory = directory.map_err(NotObserved::Processes)?;
            Surroundings::in_folder(directory, &variables).refuse_bun_settings()?;
        }
        Ok(())
    }

    /// Whether it is a shell that was given a command, which is how launchers run a package's
    /// program.
    fn is_launchers_shell(&self) -> bool {
        let is_shell = self.program.as_ref().and_then(|program| program.file_name());
        let is_shell = is_shell.is_some_and(|name| SHELLS.iter().any(|shell| name == *shell));
        let mut words = self.command.iter().map(String::as_str);
        // The first word tells `busybox` which of its programs to run.
        is_shell && words.nth(1) == Some("-c")
    }
}

/// A process that could act in the server's place: it has the server's pipes, but it neither runs
/// the package nor descends from a process that does, and is neither the launcher nor the
/// launcher's shell.
pub(super) fn other_speaker(members: &[Member], leader: u32, running: &[u32]) -> Option<u32> {
    let parent_of = |id: u32| members.iter().find(|member| member.id == id).map(|m| m.parent);
    // A process cannot be its own ancestor, but process ids may be reused while they are read.
    let line_of = |id: u32| std::iter::successors(Some(id), |id| parent_of(*id)).take(MAX_MEMBERS);
    let is_of_package = |id: u32| line_of(id).any(|above| running.contains(&above));
    let is_above_package = |id: u32| running.iter().any(|below| line_of(*below).any(|up| up == id));
    let is_launcher = |member: &Member| {
        member.id == leader || (is_above_package(member.id) && member.is_launchers_shell())
    };
    let mut speaking = members.iter().filter(|member| member.can_speak);
    speaking.find(|member| !is_of_package(member.id) && !is_launcher(member)).map(|other| other.id)
}

/// The processes of a group.
#[cfg(target_os = "linux")]
pub(super) fn members_of(leader: u32, pipes: Pipes, max_members: usize) -> io::Result<Vec<Member>> {
    let mut members = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir("/proc")? {
        let folder = entry?.path();
        let id = folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
        // A process may end while it is examined, and one that has ended reveals nothing.
        let Some((id, standing)) = id.and_then(|id| Some((id, standing_of(&folder)?))) else {
            continue;
        };
        if standing.group != leader || standing.has_ended {
            continue;
        }
        count += 1;
        if count > max_members {
            return Err(io::Error::other(format!("there are more than {max_members}")));
        }
        match member(id, standing.parent, folder, pipes) {
            Ok(member) => members.push(member),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(members)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn members_of(_: u32, _: Pipes, _: usize) -> io::Result<Vec<Member>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn is_gone(error: &io::Error) -> bool {
    let no_such_process = rustix::io::Errno::SRCH.raw_os_error();
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(no_such_process)
}

#[cfg(target_os = "linux")]
fn member(id: u32, parent: u32, folder: PathBuf, pipes: Pipes) -> io::Result<Member> {
    let links = [pipes.input, pipes.output].map(|number| format!("pipe:[{number}]"));
    let [input, output] = links.each_ref().map(|link| Path::new(link.as_str()));
    let files = folder.join("fd");
    let points_to = |name: &str, link: &Path| {
        std::fs::read_link(files.join(name)).is_ok_and(|target| target == link)
    };
    let has_pipes = points_to("0", input) && points_to("1", output);
    let mut can_speak = has_pipes;
    for (count, file) in std::fs::read_dir(&files)?.enumerate() {
        if count >= MAX_OPEN_FILES {
            return Err(io::Error::other("one of them has too many open files"));
        }
        let target = std::fs::read_link(file?.path());
        can_speak = can_speak || target.is_ok_and(|target| target == input || target == output);
    }
    let command = read_some(&folder.join("cmdline"), MAX_COMMAND_LINE_BYTES)?;
    let command = String::from_utf8_lossy(&command).split('\0').map(str::to_owned).collect();
    let program = std::fs::read_link(folder.join("exe")).ok();
    Ok(Member { id, parent, folder, has_pipes, can_speak, command, program })
}

#[cfg(target_os = "linux")]
fn read_some(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The environment that a process was started with.
#[cfg(target_os = "linux")]
fn environment_of(folder: &Path) -> io::Result<Vec<(std::ffi::OsString, std::ffi::OsString)>> {
    use std::os::unix::ffi::OsStringExt;
    let bytes = read_some(&folder.join("environ"), MAX_ENVIRONMENT_BYTES + 1)?;
    if bytes.len() > MAX_ENVIRONMENT_BYTES {
        return Err(io::Error::other("the environment of one of them is too large"));
    }
    let text = |bytes: &[u8]| std::ffi::OsString::from_vec(bytes.to_vec());
    let pairs = bytes.split(|byte| *byte == 0).filter_map(|word| {
        let at = word.iter().position(|byte| *byte == b'=')?;
        Some((text(word.get(..at)?), text(word.get(at + 1..)?)))
    });
    Ok(pairs.collect())
}

#[cfg(not(target_os = "linux"))]
fn environment_of(_: &Path) -> io::Result<Vec<(std::ffi::OsString, std::ffi::OsString)>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The state of a process, and its parent and group.
#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq, Eq)]
struct Standing {
    has_ended: bool,
    parent: u32,
    group: u32,
}

#[cfg(target_os = "linux")]
fn standing_of(folder: &Path) -> Option<Standing> {
    standing_in(&std::fs::read(folder.join("stat")).ok()?)
}

/// Parses a line of `/proc/N/stat`. The program's name in it may contain any character, including
/// `)` and spaces.
#[cfg(target_os = "linux")]
fn standing_in(stat: &[u8]) -> Option<Standing> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut words = rest.split_ascii_whitespace();
    let has_ended = matches!(words.next()?, "Z" | "X");
    Some(Standing {
        has_ended,
        parent: words.next()?.parse().ok()?,
        group: words.next()?.parse().ok()?,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_read_whatever_the_program_is_called() {
        let group = |stat: &[u8]| standing_in(stat).map(|standing| standing.group);
        assert_eq!(group(b"12 (node) S 11 10 10 0 -1"), Some(10));
        assert_eq!(group(b"12 (a) S 1 2 (b) R 11 10 9"), Some(10));
        for stat in [&b""[..], b"12 (node", b"12 (node) S 11", b"12 (node) S 11 x 1"] {
            assert_eq!(group(stat), None);
        }
        assert_eq!(standing_in(b"1 (x) Z 3 2").map(|standing| standing.has_ended), Some(true));
    }

    #[test]
    fn the_processes_of_a_group_are_counted_and_no_others() {
        use std::os::unix::process::CommandExt;
        use std::process::{Command, Stdio};
        // Longer than the part that is read: the file is among the first words.
        let long = "x".repeat(MAX_COMMAND_LINE_BYTES);
        let mut child = Command::new("sh")
            .arg0("node")
            .args(["/dev/stdin", &long])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pipes = Pipes::of(child.stdin.as_ref().unwrap(), child.stdout.as_ref().unwrap());
        let pipes = pipes.unwrap();
        let members = members_of(child.id(), pipes, 1).unwrap();
        assert_eq!(members.len(), 1);
        assert_eq!(members[0].command[1], "/dev/stdin");
        assert!(members[0].has_pipes && members[0].can_speak);
        // It reports that it is `node`, but is another program.
        assert_eq!(members[0].file(Path::new("/")), None);
        let others = Pipes { input: pipes.output, output: pipes.input };
        let members = members_of(child.id(), others, 1).unwrap();
        assert!(!members[0].has_pipes && members[0].can_speak);
        assert!(members_of(child.id(), pipes, 0).is_err());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(members_of(child.id(), pipes, 0).unwrap().is_empty());
    }

    #[test]
    fn what_a_process_has_is_looked_through_up_to_the_limits_and_not_past_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let environment = |bytes: usize| {
            std::fs::write(path("environ"), format!("A={}", "x".repeat(bytes - 2))).unwrap();
            environment_of(folder.path()).map(|variables| variables.len())
        };
        assert_eq!(environment(MAX_ENVIRONMENT_BYTES).unwrap(), 1);
        assert!(environment(MAX_ENVIRONMENT_BYTES + 1).is_err());
        std::fs::create_dir(path("fd")).unwrap();
        std::fs::write(path("cmdline"), "").unwrap();
        let open = |number: usize| std::fs::write(path("fd").join(number.to_string()), "").unwrap();
        let look = || member(1, 0, folder.path().to_owned(), Pipes { input: 1, output: 2 });
        (0..MAX_OPEN_FILES).for_each(open);
        assert!(!look().unwrap().can_speak);
        open(MAX_OPEN_FILES);
        assert!(look().is_err());
    }

    #[test]
    fn whoever_else_holds_the_pipes_can_speak_in_the_servers_place() {
        let member = |id: u32, parent: u32, can_speak: bool, command: &str| Member {
            id,
            parent,
            folder: PathBuf::new(),
            has_pipes: can_speak,
            can_speak,
            command: command.split(' ').map(str::to_owned).collect(),
            program: Some(PathBuf::from(command.split(' ').next().unwrap())),
        };
        let launched = |more: Vec<Member>| {
            let mut members = vec![
                member(1, 0, true, "/usr/bin/npm exec"),
                member(2, 1, true, "/bin/sh -c mail"),
                member(3, 2, true, "/usr/bin/node /p/mail.js"),
                member(4, 3, true, "/usr/bin/git status"),
            ];
            members.extend(more);
            other_speaker(&members, 1, &[3])
        };
        assert_eq!(launched(vec![]), None);
        assert_eq!(launched(vec![member(5, 1, false, "/bin/other")]), None);
        assert_eq!(launched(vec![member(5, 1, true, "/bin/other")]), Some(5));
        assert_eq!(launched(vec![member(5, 1, true, "/bin/sh -c other")]), Some(5));
        // A shell may be between the launcher and the package, but only one that was given a
        // command.
        for command in ["/bin/sh /x.sh", "/usr/bin/python3 -c x", "/x -c mail"] {
            let members = [
                member(1, 0, true, "/usr/bin/npm exec"),
                member(2, 1, true, command),
                member(3, 2, true, "/usr/bin/node /p/mail.js"),
            ];
            assert_eq!(other_speaker(&members, 1, &[3]), Some(2), "{command}");
        }
    }
}
