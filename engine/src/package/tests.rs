use super::*;
use crate::process::Pipes;
use attest::Digest;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A folder with an installed package, as npm leaves it.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new(version: &str) -> Project {
        let project = Project { folder: tempfile::tempdir().unwrap() };
        project.write("node_modules/@s/mail/dist/index.js", "read line");
        project.install(version);
        // A program that has the name of an interpreter, and reads the package's files.
        fs::copy("/bin/sh", project.path("node")).unwrap();
        project
    }

    fn node(&self) -> String {
        self.path("node").to_str().unwrap().to_owned()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn install(&self, version: &str) {
        self.write(
            "node_modules/@s/mail/package.json",
            &format!(r#"{{"name":"@s/mail","version":"{version}"}}"#),
        );
        let integrity = Digest::sha256(version.as_bytes());
        self.write(
            "node_modules/.package-lock.json",
            &format!(
                r#"{{"packages":{{"node_modules/@s/mail":{{"version":"{version}","integrity":"{integrity}"}}}}}}"#
            ),
        );
    }

    fn script(&self) -> PathBuf {
        self.path("node_modules/@s/mail/dist/index.js")
    }

    fn finder(&self) -> PackageFinder {
        finder(&[&self.node(), self.script().to_str().unwrap(), "--port", "1"], None)
    }

    /// Starts a process that is called `node` and runs the package.
    fn start(&self) -> Running {
        self.start_with(|_| {})
    }

    fn start_with(&self, prepare: impl FnOnce(&mut Command)) -> Running {
        let mut command = Command::new(self.node());
        command.arg(self.script());
        prepare(&mut command);
        Running::start(&mut command)
    }
}

struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Running {
        let command = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        Running(command.spawn().unwrap())
    }

    fn pipes(&self) -> Pipes {
        Pipes::of(self.0.stdin.as_ref().unwrap(), self.0.stdout.as_ref().unwrap()).unwrap()
    }

    fn group(&self) -> ServerGroup {
        ServerGroup::of(self.0.id(), Some(self.pipes()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn finder(words: &[&str], group: Option<ServerGroup>) -> PackageFinder {
    let launch = StdioLaunch {
        program: words[0].into(),
        arguments: words[1..].iter().map(Into::into).collect(),
        environment: Vec::new(),
        directory: None,
        confinement: None,
    };
    PackageFinder::new(Path::new(words[0]), &launch, group)
}

fn known(version: &str) -> PackageSighting {
    let (name, version) = ("@s/mail".to_owned(), version.to_owned());
    let integrity = Digest::sha256(version.as_bytes());
    PackageSighting::Known(Package { name, version, integrity })
}

#[track_caller]
fn is_unknown(mut finder: PackageFinder, why: &str) {
    match finder.look() {
        PackageSighting::Unknown(told) => assert!(told.contains(why), "{told}"),
        PackageSighting::Known(package) => panic!("known: {package}"),
    }
}

#[test]
fn the_file_that_a_command_names_is_of_its_package() {
    let project = Project::new("1.2.3");
    assert_eq!(project.finder().look(), known("1.2.3"));
    fs::create_dir(project.path("node_modules/.bin")).unwrap();
    let link = project.path("node_modules/.bin/mail");
    symlink("../@s/mail/dist/index.js", &link).unwrap();
    let second = project.path("launch");
    symlink("node_modules/.bin/mail", &second).unwrap();
    for words in [&[link.to_str().unwrap()][..], &[second.to_str().unwrap(), "x"]] {
        assert_eq!(finder(words, None).look(), known("1.2.3"), "{words:?}");
    }
    let launch = StdioLaunch {
        program: "node".into(),
        arguments: vec!["launch".into()],
        environment: Vec::new(),
        directory: Some(project.folder.path().to_owned()),
        confinement: None,
    };
    let node = project.path("node");
    assert_eq!(PackageFinder::new(&node, &launch, None).look(), known("1.2.3"));
    is_unknown(finder(&["node", "--import", "x", second.to_str().unwrap()], None), "`--import`");
    let environment = vec![("NODE_OPTIONS".into(), "--require x".into())];
    let launch = StdioLaunch { environment, ..launch };
    is_unknown(PackageFinder::new(&node, &launch, None), "`NODE_OPTIONS`");
    is_unknown(PackageFinder::new(&link, &launch, None), "`NODE_OPTIONS`");
}

#[test]
fn what_only_has_the_name_of_an_interpreter_is_none() {
    let project = Project::new("1.2.3");
    let script = project.script();
    let words = [&project.node(), script.to_str().unwrap()];
    assert_eq!(finder(&words, None).look(), known("1.2.3"));
    let launch = |program: &str| StdioLaunch {
        program: program.into(),
        arguments: vec![script.clone().into()],
        environment: Vec::new(),
        directory: None,
        confinement: None,
    };
    let of_folder = PackageFinder::new(&project.path("node"), &launch("tools/node"), None);
    is_unknown(of_folder, "may be something else");
    let node = project.path("node");
    fs::remove_file(&node).unwrap();
    symlink("/bin/sh", &node).unwrap();
    is_unknown(finder(&words, None), "may be something else");
    fs::remove_file(&node).unwrap();
    fs::write(&node, "#!/bin/sh\nexec other\n").unwrap();
    is_unknown(finder(&words, None), "may be something else");
}

#[test]
fn bun_is_not_followed_where_settings_may_load_something_first() {
    let project = Project::new("1.2.3");
    fs::rename(project.path("node"), project.path("bun")).unwrap();
    let launch = StdioLaunch {
        program: "bun".into(),
        arguments: vec![project.script().into()],
        environment: vec![("HOME".into(), project.path("home").into())],
        directory: Some(project.folder.path().to_owned()),
        confinement: None,
    };
    let finder = || PackageFinder::new(&project.path("bun"), &launch, None);
    assert_eq!(finder().look(), known("1.2.3"));
    project.write("home/.bunfig.toml", "preload = []");
    is_unknown(finder(), "bunfig.toml");
    fs::remove_file(project.path("home/.bunfig.toml")).unwrap();
    project.write("bunfig.toml", "preload = []");
    is_unknown(finder(), "bunfig.toml");
}

#[test]
fn what_is_put_in_its_place_later_is_not_what_runs() {
    let project = Project::new("1.2.3");
    let mut finder = project.finder();
    finder.begin();
    project.install("1.2.4");
    let PackageSighting::Unknown(told) = finder.look() else { panic!("known") };
    assert!(told.contains("`1.2.3`") && told.contains("`1.2.4`"), "{told}");
    project.install("1.2.3");
    assert_eq!(finder.look(), known("1.2.3"));
}

#[test]
fn a_record_that_appears_beside_a_running_server_does_not_count() {
    let project = Project::new("1.2.3");
    let record = project.path("node_modules/.package-lock.json");
    fs::remove_file(&record).unwrap();
    let mut early = project.finder();
    early.begin();
    project.install("1.2.3");
    is_unknown(early, "no installer left a record");
    assert_eq!(project.finder().look(), known("1.2.3"));
}

#[test]
fn what_is_no_clear_answer_is_none() {
    let project = Project::new("1.2.3");
    let record = project.path("node_modules/.package-lock.json");
    let check = |why: &str| is_unknown(project.finder(), why);
    project.write("package-lock.json", r#"{"packages":{}}"#);
    check("`package-lock.json`: it does not have the package");
    fs::remove_file(project.path("package-lock.json")).unwrap();
    // A sparse file, larger than anything that is read.
    fs::File::options().write(true).open(&record).unwrap().set_len(1 << 40).unwrap();
    check("more than");
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    check("not a file");
    fs::remove_dir(&record).unwrap();
    assert!(Command::new("mkfifo").arg(&record).status().unwrap().success());
    check("not a file");
    fs::remove_file(&record).unwrap();
    symlink(".package-lock.json", &record).unwrap();
    check(".package-lock.json`: ");
    fs::remove_file(&record).unwrap();
    project.install("1.2.3");
    assert_eq!(project.finder().look(), known("1.2.3"));
    let script = project.script();
    fs::remove_file(&script).unwrap();
    symlink("index.js", &script).unwrap();
    check("index.js`: ");
    fs::remove_file(&script).unwrap();
    fs::create_dir(&script).unwrap();
    check("not a file");
    fs::remove_dir(&script).unwrap();
    project.write("server.js", "");
    symlink(project.path("server.js"), &script).unwrap();
    check("lies in no `node_modules`");
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_launcher_started_is_found_among_the_processes() {
    let (project, other) = (Project::new("1.2.3"), Project::new("1.2.3"));
    let running = project.start();
    let launched = |word: &str| finder(&["npx", "-y", word], Some(running.group()));
    for word in ["@s/mail", "@s/mail@1.2.3", "@s/mail@^1", "@s/mail@latest"] {
        assert_eq!(launched(word).look(), known("1.2.3"), "{word}");
    }
    is_unknown(launched("@s/mail@1.2.4"), "`1.2.4` was asked for");
    is_unknown(launched("@s/male"), "none of the server's processes");
    is_unknown(finder(&["npx", "@s/mail"], None), "only while `holdpoint run` runs it");
    let elsewhere = other.start();
    is_unknown(finder(&["npx", "mail"], Some(elsewhere.group())), "none of the server's processes");
    let mut finder = launched("@s/mail");
    assert_eq!(finder.look(), known("1.2.3"));
    // The package found first is kept, and its record is read again.
    drop(running);
    assert_eq!(finder.look(), known("1.2.3"));
    project.install("1.2.4");
    is_unknown(finder, "restart the server");
}

#[test]
#[cfg(target_os = "linux")]
fn two_copies_that_run_are_no_clear_answer() {
    let project = Project::new("1.2.3");
    project.write("node_modules/a/node_modules/@s/mail/x.js", "read line");
    let copy = project.path("node_modules/a/node_modules/@s/mail/x.js");
    let (node, copy, script) = (project.node(), copy.display(), project.script());
    // A shell gives no standard input to background processes.
    let run = format!("exec 3<&0; {node} {copy} <&3 & exec {node} {}", script.display());
    let running = Running::start(Command::new("sh").args(["-c", &run]));
    testing::wait_until("the processes", || files_of(&running).len() == 2);
    is_unknown(finder(&["npx", "@s/mail"], Some(running.group())), "several copies");
}

#[cfg(target_os = "linux")]
fn files_of(running: &Running) -> Vec<PathBuf> {
    let members =
        processes::members_of(running.0.id(), running.pipes(), processes::MAX_MEMBERS).unwrap();
    let files = members.iter().filter_map(|member| member.file(Path::new("/")));
    files.filter(|file| file.extension().is_some_and(|end| end == "js")).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_without_the_servers_pipes_is_not_the_server() {
    let project = Project::new("1.2.3");
    let (node, script) = (project.node(), project.script());
    let fifo = project.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // The package runs next to a process that could act in its place.
    let run = format!(
        "exec 3<>{}; {node} {} <&3 >/dev/null & exec sh -c 'read line; kill 0' </dev/stdin 3<&-",
        fifo.display(),
        script.display()
    );
    let running = Running::start(Command::new("sh").args(["-c", &run]));
    testing::wait_until("the processes", || files_of(&running).len() == 1);
    let launched = finder(&["npx", "@s/mail"], Some(running.group()));
    is_unknown(launched, "none of the server's processes");
}

#[test]
#[cfg(target_os = "linux")]
fn whoever_holds_the_pipes_beside_the_package_is_noticed() {
    let project = Project::new("1.2.3");
    let (node, script) = (project.node(), project.script());
    let run = format!("exec 3<&0; {node} {} <&3 & exec cat", script.display());
    let running = Running::start(Command::new("sh").args(["-c", "sh -c \"$0\"; :", &run]));
    testing::wait_until("the processes", || files_of(&running).len() == 1);
    let launched = finder(&["npx", "@s/mail"], Some(running.group()));
    is_unknown(launched, "holds the server's pipes");
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_was_told_to_load_something_else_is_not_the_package() {
    let project = Project::new("1.2.3");
    let running = project.start_with(|command| {
        command.env("NODE_OPTIONS", "--require /x.js");
    });
    testing::wait_until("the processes", || files_of(&running).len() == 1);
    is_unknown(finder(&["npx", "@s/mail"], Some(running.group())), "`NODE_OPTIONS`");
}

#[test]
#[cfg(target_os = "linux")]
fn a_relative_script_is_one_of_the_folder_that_the_server_was_started_in() {
    let (project, other) = (Project::new("1.2.3"), Project::new("1.2.3"));
    let script = "node_modules/@s/mail/dist/index.js";
    let mut command = Command::new(project.node());
    let running = Running::start(command.arg(script).current_dir(project.folder.path()));
    let launched = |folder: &Project| {
        let launch = StdioLaunch {
            program: "npx".into(),
            arguments: vec!["@s/mail".into()],
            environment: Vec::new(),
            directory: Some(folder.folder.path().to_owned()),
            confinement: None,
        };
        PackageFinder::new(Path::new("npx"), &launch, Some(running.group()))
    };
    assert_eq!(launched(&project).look(), known("1.2.3"));
    is_unknown(launched(&other), "none of the server's processes");
}

#[test]
fn only_a_whole_version_is_exact() {
    for version in ["1.2.3", "2026.8.31", "1.2.3-beta.1", "1.2.3+x"] {
        assert!(is_exact(version), "{version}");
    }
    for version in ["", "1", "1.2", "^1.2.3", "latest", "1.2.x", "1.2.", "1.2.3.4", "v1.2.3"] {
        assert!(!is_exact(version), "{version}");
    }
}
