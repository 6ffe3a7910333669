//! A folder with a workspace, a home, packages and secrets, and a user who runs confined programs
//! in it.
#![allow(dead_code, reason = "two tests use it, each a part")]

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const UNPRIVILEGED: u32 = 65534;

pub(crate) struct Stage {
    folder: TempDir,
    /// The user that root switches to before confining; `None` keeps the user that runs the test.
    user: Option<u32>,
}

/// A program's output, and the sandbox's events.
pub(crate) struct Run {
    pub(crate) text: String,
}

impl Run {
    pub(crate) fn is_done(&self) -> bool {
        self.text.lines().any(|line| line.starts_with("done"))
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.text.lines().any(|line| line.starts_with("refused"))
    }
}

/// Runs a test as the current user and, under root, also as an unprivileged one.
pub(crate) fn each_user(test: impl Fn(&Stage)) {
    test(&Stage::new(None));
    if rustix::process::geteuid().is_root() {
        test(&Stage::new(Some(UNPRIVILEGED)));
    }
}

impl Stage {
    fn new(user: Option<u32>) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let stage = Stage { folder, user };
        for path in
            ["workspace/inner", "outside", "homes/own", "homes/other", "packages", "user/.ssh"]
        {
            fs::create_dir_all(stage.path(path)).unwrap();
        }
        for (path, text) in [
            ("workspace/file", "workspace"),
            ("outside/secret", "secret"),
            ("homes/own/own", "own"),
            ("homes/other/token", "token"),
            ("packages/index.js", "package"),
            ("user/.ssh/id_ed25519", "key"),
        ] {
            fs::write(stage.path(path), text).unwrap();
        }
        fs::copy(env!("CARGO_BIN_EXE_sandbox-probe"), stage.path("probe")).unwrap();
        stage.own(&stage.path(""));
        stage
    }

    pub(crate) fn path(&self, path: &str) -> String {
        self.folder.path().join(path).to_str().unwrap().trim_end_matches('/').to_owned()
    }

    pub(crate) fn user(&self) -> u32 {
        self.user.unwrap_or(0)
    }

    /// Makes the user the owner of a file, or of a folder and its contents.
    pub(crate) fn own(&self, path: &str) {
        let Some(user) = self.user else { return };
        chown(path, Some(user), Some(user)).unwrap();
        if Path::new(path).is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                self.own(entry.unwrap().path().to_str().unwrap());
            }
        }
    }

    pub(crate) fn run(&self, act: &[&str]) -> Run {
        self.run_asking(json!({}), act)
    }

    /// Runs an act with changes to the default profile.
    pub(crate) fn run_with(&self, profile: &Value, act: &[&str]) -> Run {
        self.run_asking(json!({ "profile": profile }), act)
    }

    pub(crate) fn run_asking(&self, asked: Value, act: &[&str]) -> Run {
        let words: Vec<&str> = std::iter::once("probe").chain(act.iter().copied()).collect();
        self.drive(asked, &words)
    }

    pub(crate) fn run_program(&self, program: &str, arguments: &[&str]) -> Run {
        let words: Vec<&str> = std::iter::once(program).chain(arguments.iter().copied()).collect();
        self.drive(json!({}), &words)
    }

    fn drive(&self, mut asked: Value, words: &[&str]) -> Run {
        let mut profile = json!({
            "workspace": self.path("workspace"),
            "home": self.path("homes/own"),
            "read": [self.path("packages")],
        });
        if let Some(Value::Object(changes)) = asked.get("profile") {
            profile.as_object_mut().unwrap().extend(changes.clone());
        }
        asked["profile"] = profile;
        let mut command = Command::new(self.path("probe"));
        command.arg("drive").arg(asked.to_string()).args(words);
        command.env("HOLDPOINT_TEST_SECRET", "secret").stdin(Stdio::null());
        self.become_user(&mut command);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.is_empty(), "{words:?}: {errors}");
        Run { text }
    }

    /// Runs an act on a separate terminal, confined or not.
    pub(crate) fn run_on_terminal(&self, is_confined: bool, act: &str) -> Run {
        let script = match is_confined {
            true => r#""$PROBE" drive '{"profile":{}}' probe "$ACT""#,
            false => r#""$PROBE" "$ACT""#,
        };
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", script, "/dev/null"]);
        command.env("PROBE", self.path("probe")).env("ACT", act).stdin(Stdio::null());
        self.become_user(&mut command);
        Run { text: String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned() }
    }

    fn become_user(&self, command: &mut Command) {
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
    }

    pub(crate) fn refused(&self, act: &[&str]) {
        let run = self.run(act);
        assert!(run.is_refused(), "{act:?} as {:?}: {}", self.user, run.text);
    }

    pub(crate) fn done(&self, act: &[&str]) {
        let run = self.run(act);
        assert!(run.is_done(), "{act:?} as {:?}: {}", self.user, run.text);
    }
}
