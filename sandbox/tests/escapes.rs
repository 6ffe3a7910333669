//! Hostile programs, each refused, next to a harmless counterpart that works. Under root, each runs
//! twice: as root and as an unprivileged user.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "all of this file is a test, also the functions that are not marked as one"
)]

#[path = "support/stage.rs"]
mod stage;

use serde_json::json;
use stage::{Stage, each_user};
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;

#[test]
fn files_outside_are_not_there_and_those_inside_are() {
    each_user(|stage| {
        let (outside, inside) = (stage.path("outside/secret"), stage.path("workspace/file"));
        let other = stage.path("homes/other/token");
        let key = stage.path("user/.ssh/id_ed25519");
        for path in [&outside, &other, &key, "/etc/shadow", "/proc/self/root/../etc/shadow"] {
            stage.refused(&["read", path]);
        }
        stage.refused(&["read", &format!("/proc/self/root{outside}")]);
        stage.refused(&["read", &format!("/proc/1/root{outside}")]);
        stage.refused(&["read", &format!("{}/../outside/secret", stage.path("workspace"))]);
        stage.done(&["read", &inside]);
        stage.done(&["read", "/home/server/own"]);
        stage.done(&["read", "/etc/passwd"]);
        stage.done(&["read", &stage.path("packages/index.js")]);
    });
}

#[test]
fn nothing_outside_is_written_by_any_path() {
    each_user(|stage| {
        let at = |path: &str| stage.path(path);
        let secret = at("outside/secret");
        stage.refused(&["write", &at("outside/new")]);
        stage.refused(&["append", &secret]);
        stage.refused(&["truncate", &secret]);
        stage.refused(&["write-through-link", &at("workspace/link"), &secret]);
        stage.done(&["write-through-link", &at("workspace/inner-link"), &at("workspace/file")]);
        stage.refused(&["hard-link", &secret, &at("workspace/hard")]);
        stage.done(&["hard-link", &at("workspace/file"), &at("workspace/hard")]);
        stage.refused(&["rename", &at("workspace/file"), &at("outside/file")]);
        stage.refused(&["rename", &secret, &at("workspace/taken")]);
        stage.done(&["rename", &at("workspace/hard"), &at("workspace/renamed")]);
        stage.refused(&["write", &format!("/proc/self/root{}", at("outside/new"))]);
        stage.done(&["write", &format!("/proc/self/root{}", at("workspace/new"))]);
        // A package that other programs use too.
        stage.refused(&["write", &at("packages/index.js")]);
        stage.refused(&["write", &at("packages/new.js")]);
        stage.refused(&["write", "/usr/bin/new"]);
        stage.refused(&["write", "/etc/passwd"]);
        stage.refused(&["write", "/new"]);
        stage.done(&["write", "/tmp/new"]);
        stage.done(&["write", "/home/server/new"]);
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
        assert!(!std::path::Path::new(&at("outside/new")).exists());
    });
}

#[test]
fn a_workspace_that_is_read_only_is_not_written() {
    each_user(|stage| {
        let read_only = json!({ "files": "read_only" });
        let file = stage.path("workspace/file");
        assert!(stage.run_with(&read_only, &["write", &file]).is_refused());
        assert!(stage.run_with(&read_only, &["read", &file]).is_done());
        assert!(stage.run_with(&read_only, &["write", "/tmp/new"]).is_done());
    });
}

#[test]
fn what_other_programs_run_from_a_workspace_stays_as_it_is() {
    each_user(|stage| {
        let at = |path: &str| stage.path(&format!("workspace/{path}"));
        fs::create_dir_all(at(".git/hooks")).unwrap();
        fs::write(at(".git/config"), "[core]").unwrap();
        fs::write(at(".mcp.json"), "{}").unwrap();
        stage.own(&at(".git"));
        stage.refused(&["write", &at(".git/hooks/post-commit")]);
        stage.refused(&["write", &at(".git/config")]);
        stage.refused(&["rename", &at(".git/config"), &at(".git/config.old")]);
        stage.refused(&["rename", &at(".git"), &at("git")]);
        stage.refused(&["write", &at(".mcp.json")]);
        // Missing folders cannot be created, and do not exist afterwards.
        stage.refused(&["make-folder", &at(".vscode")]);
        stage.refused(&["write", &at(".vscode/tasks.json")]);
        assert!(!fs::exists(at(".vscode")).unwrap());
        // Either of these would make the user's next `git status` run a program.
        stage.refused(&["write", &at(".git/commondir")]);
        stage.refused(&["write", &at(".git/index")]);
        stage.done(&["list", &at(".git")]);
        stage.done(&["make-folder", &at("vscode")]);
        // Files that configure what hosts start in a project.
        for path in [".gemini/settings.json", ".github/mcp.json", "opencode.json"] {
            fs::create_dir_all(Path::new(&at(path)).parent().unwrap()).unwrap();
            fs::write(at(path), "{}").unwrap();
        }
        stage.own(&at(""));
        for path in [".gemini/settings.json", ".github/mcp.json", "opencode.json"] {
            stage.refused(&["write", &at(path)]);
        }
        stage.refused(&["rename", &at(".github"), &at("moved")]);
        stage.done(&["write", &at(".github/new")]);
        stage.refused(&["set-uid", &at("shell")]);
        stage.done(&["set-mode", &at("shell")]);
    });
}

#[test]
fn a_repository_is_written_only_by_a_program_that_is_given_it() {
    each_user(|stage| {
        let at = |path: &str| stage.path(&format!("workspace/{path}"));
        for folder in [".git/hooks", "module", "empty"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at(".git/config"), "[core]").unwrap();
        fs::write(at(".git/HEAD"), "ref: refs/heads/main").unwrap();
        fs::write(at(".gitmodules"), "[submodule \"a\"]\n\tpath = module\n\tpath = empty\n")
            .unwrap();
        fs::write(at("module/.git"), "gitdir: ../.git/modules/a").unwrap();
        stage.own(&at(""));
        let given = json!({ "write": [at(".git")] });
        assert!(stage.run_with(&given, &["write", &at(".git/ORIG_HEAD")]).is_done());
        for path in [".git/hooks/post-commit", ".git/config"] {
            let run = stage.run_with(&given, &["write", &at(path)]);
            assert!(run.is_refused(), "{path}: {}", run.text);
        }
        assert!(stage.run_with(&given, &["rename", &at(".git"), &at("git")]).is_refused());
        stage.refused(&["write", &at(".git/index")]);
        // Git enters submodules by itself.
        stage.refused(&["write", &at("module/.git")]);
        stage.refused(&["rename", &at("module/.git"), &at("module/git")]);
        stage.refused(&["make-folder", &at("empty/.git")]);
        stage.done(&["write", &at("module/file")]);
    });
}

#[test]
fn what_git_enters_or_runs_cannot_be_moved_away_with_the_folder_around_it() {
    each_user(|stage| {
        let at = |path: &str| stage.path(&format!("workspace/{path}"));
        for folder in [".git", "libs/module", "libs/empty", "tools/hooks", "other"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let files = [
            (".git/HEAD", "ref: refs/heads/main"),
            (
                ".git/config",
                "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../own.gitconfig",
            ),
            (
                ".gitmodules",
                "[submodule \"a\"]\npath = libs/module\n[submodule \"b\"]\npath = libs/empty\n[submodule \"c\"]\npath = gone/c\n",
            ),
            ("libs/module/.git", "gitdir: ../../.git/modules/a"),
            ("libs/module/file", ""),
            ("own.gitconfig", ""),
        ];
        for (path, text) in files {
            fs::write(at(path), text).unwrap();
        }
        stage.own(&at(""));
        // With another folder in its place, the user's next `git status` would run what the program
        // put there.
        stage.refused(&["rename", &at("libs"), &at("moved")]);
        stage.refused(&["rename", &at("libs/module"), &at("libs/moved")]);
        stage.refused(&["rename", &at("tools"), &at("moved")]);
        stage.refused(&["rename", &at("tools/hooks"), &at("tools/moved")]);
        stage.refused(&["make-folder", &at("libs/empty/.git")]);
        stage.refused(&["make-folder", &at("gone/c")]);
        stage.refused(&["write", &at("tools/hooks/pre-commit")]);
        stage.refused(&["write", &at("own.gitconfig")]);
        stage.done(&["rename", &at("other"), &at("moved")]);
        stage.done(&["rename", &at("libs/module/file"), &at("libs/module/renamed")]);
        stage.done(&["write", &at("libs/new")]);
        stage.done(&["write", &at("tools/new")]);
        assert!(!fs::exists(at("gone")).unwrap());
        // A link on the way could be replaced by a folder.
        fs::rename(at("libs"), at("real")).unwrap();
        symlink(at("real"), at("libs")).unwrap();
        let run = stage.run(&["own-id"]);
        assert!(run.text.contains("is a symbolic link"), "{}", run.text);
    });
}

/// Git treats a folder with these three as a repository, and runs what its `config` names. A shell
/// prompt is enough to trigger it.
#[test]
fn a_workspace_cannot_be_made_a_repository() {
    each_user(|stage| {
        let at = |path: &str| stage.path(&format!("workspace/{path}"));
        stage.done(&["make-folder", &at("objects")]);
        stage.done(&["make-folder", &at("refs")]);
        stage.refused(&["write", &at("HEAD")]);
        assert!(!fs::exists(at("HEAD")).unwrap());
        // In a repository, the parts that git runs are protected.
        fs::write(at("HEAD"), "ref: refs/heads/main").unwrap();
        fs::write(at("config"), "[core]").unwrap();
        stage.own(&at(""));
        stage.refused(&["write", &at("config")]);
        stage.refused(&["make-folder", &at("hooks/x")]);
        stage.done(&["write", &at("objects/new")]);
    });
}

#[test]
fn a_part_of_a_repository_is_protected_like_the_whole() {
    each_user(|stage| {
        let at = |path: &str| stage.path(&format!("workspace/{path}"));
        for folder in [".git", "part/module"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at(".git/HEAD"), "ref: refs/heads/main").unwrap();
        fs::write(at(".gitmodules"), "[submodule \"a\"]\n\tpath = part/module\n").unwrap();
        fs::write(at("part/module/.git"), "gitdir: ../../.git/modules/a").unwrap();
        stage.own(&at(""));
        let part = json!({ "workspace": at("part") });
        let run = |act: &[&str]| stage.run_with(&part, act);
        assert!(run(&["write", &at("part/module/.git")]).is_refused());
        assert!(run(&["rename", &at("part/module"), &at("part/moved")]).is_refused());
        assert!(run(&["write", &at("part/module/file")]).is_done());
    });
}

/// A program in a folder that a confined program may have written cannot choose what is shown.
#[test]
fn a_program_in_a_workspace_shows_nothing_else_of_the_user() {
    each_user(|stage| {
        let (secret, tool) = (stage.path("user/.ssh/id_ed25519"), stage.path("workspace/bin/tool"));
        fs::create_dir_all(stage.path("workspace/bin")).unwrap();
        fs::write(&tool, format!("#!/bin/sh\ncat {secret}; echo ended\n")).unwrap();
        fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let lead = format!("home = {}/bin\n", stage.path("user/.ssh"));
        fs::write(stage.path("workspace/pyvenv.cfg"), lead).unwrap();
        stage.own(&stage.path("workspace"));
        let run = stage.run_program(&tool, &[]);
        assert!(run.text.contains("ended") && !run.text.contains("key"), "{}", run.text);
    });
}

#[test]
fn a_folder_that_was_swapped_or_shows_too_much_is_refused() {
    each_user(|stage| {
        let (workspace, outside) = (stage.path("workspace"), stage.path("outside"));
        let not_started = |asked: serde_json::Value| {
            let run = stage.run_asking(asked, &["own-id"]);
            assert!(run.text.contains("not started"), "{}", run.text);
        };
        not_started(json!({ "profile": { "workspace": "/" } }));
        not_started(json!({ "profile": { "workspace": "/etc" } }));
        not_started(json!({ "profile": { "workspace": "/usr/lib" } }));
        not_started(json!({ "profile": { "workspace": stage.path("nowhere") } }));
        not_started(
            json!({ "profile": { "workspace": workspace }, "never_visible": [stage.path("workspace/inner")] }),
        );
        not_started(
            json!({ "profile": { "workspace": stage.path("workspace/inner") }, "never_visible": [&workspace] }),
        );
        let home = std::env::var("HOME").unwrap();
        not_started(json!({ "profile": { "workspace": home } }));
        symlink(&outside, stage.path("workspace/.claude")).unwrap();
        not_started(json!({ "profile": { "workspace": workspace } }));
        fs::remove_file(stage.path("workspace/.claude")).unwrap();
        stage.done(&["own-id"]);
        not_started(
            json!({ "profile": { "workspace": workspace }, "swap": [&workspace, &outside] }),
        );
    });
}

#[test]
fn holdpoints_home_is_hidden_where_files_are_not_confined() {
    each_user(|stage| {
        let asked = |hidden: &str| json!({ "profile": { "files": "none" }, "never_visible": [stage.path(hidden)] });
        let secret = stage.path("outside/secret");
        assert!(stage.run_asking(asked("outside"), &["read", &secret]).is_refused());
        assert!(stage.run_asking(asked("homes"), &["read", &secret]).is_done());
    });
}

#[test]
fn the_kernel_refuses_what_no_server_needs() {
    each_user(|stage| {
        for act in [
            "mount",
            "unmount",
            "remount",
            "fsopen",
            "open-tree",
            "move-mount",
            "mount-setattr",
            "pivot-root",
            "chroot",
            "name-to-handle",
            "open-by-handle",
            "setns",
            "unshare",
            "clone-user",
            "ptrace",
            "process-vm-read",
            "process-vm-write",
            "pidfd-getfd",
            "kcmp",
            "memfd",
            "memfd-secret",
            "io-uring",
            "userfaultfd",
            "bpf",
            "perf",
            "add-key",
            "keyctl",
            "shared-memory",
            "personality",
            "kernel-log",
            "type-into-terminal",
            "module",
        ] {
            let run = stage.run(&[act]);
            assert!(run.text.contains("Operation not permitted"), "{act}: {}", run.text);
        }
        for act in ["clone3", "x32"] {
            let run = stage.run(&[act]);
            assert!(run.text.contains("Function not implemented"), "{act}: {}", run.text);
        }
        // The kernel ends a program that makes system calls of another architecture.
        let old = stage.run(&["old-architecture"]);
        assert!(!old.is_done(), "{}", old.text);
        for act in ["own-id", "map-memory", "thread", "fork-and-kill", "pidfd", "terminal-size"] {
            stage.done(&[act]);
        }
    });
}

#[test]
fn a_browser_may_have_memory_files() {
    each_user(|stage| {
        let browser = json!({ "browser": true });
        assert!(stage.run_with(&browser, &["memfd"]).is_done());
        assert!(stage.run_with(&browser, &["io-uring"]).is_refused());
    });
}

#[test]
fn the_helper_and_other_processes_cannot_be_read_or_signalled() {
    each_user(|stage| {
        for file in ["environ", "mem", "maps", "root/etc/passwd", "cwd", "fd/4"] {
            stage.refused(&["read", &format!("/proc/1/{file}")]);
        }
        stage.refused(&["list", "/proc/1/fd"]);
        stage.done(&["list", "/proc/self/fd"]);
        stage.done(&["read", "/proc/self/environ"]);
        for act in [
            "limit-process",
            "pin-process",
            "idle-process",
            "slow-process",
            "slow-group",
            "slow-user",
        ] {
            let run = stage.run(&[act, "1"]);
            assert!(run.text.contains("Operation not permitted"), "{act}: {}", run.text);
        }
        stage.done(&["limit-itself"]);
        stage.done(&["slow-itself"]);
        let outsider = std::process::id().to_string();
        stage.refused(&["kill", "1"]);
        stage.refused(&["kill", &outsider]);
        stage.refused(&["kill-everything"]);
        stage.refused(&["read", &format!("/proc/{outsider}/environ")]);
        for hidden in [
            "/proc/kcore",
            "/proc/kallsyms",
            "/proc/sysrq-trigger",
            "/proc/keys",
            "/proc/timer_list",
        ] {
            stage.refused(&["read", hidden]);
        }
        stage.refused(&["write", "/proc/sys/kernel/hostname"]);
        stage.done(&["read", "/proc/cpuinfo"]);
    });
}

#[test]
fn descriptors_and_variables_are_not_inherited() {
    each_user(|stage| {
        let inherited = fs::File::open(stage.path("outside/secret")).unwrap();
        rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
        stage.refused(&["descriptors"]);
        stage.refused(&["environment", "HOLDPOINT_TEST_SECRET"]);
        let named = json!({ "environment": [["NAMED", "value"], ["HOME", "/root"]] });
        assert!(stage.run_asking(named.clone(), &["environment", "NAMED"]).text.contains("value"));
        assert!(stage.run_asking(named, &["environment", "HOME"]).text.contains("/home/server"));
    });
}

#[test]
fn the_log_of_the_host_is_not_handed_over() {
    each_user(|stage| {
        let log = stage.path("outside/log");
        fs::write(&log, "before").unwrap();
        stage.own(&log);
        let run = stage.run_asking(json!({ "stderr": log }), &["own-log"]);
        assert!(run.text.contains("not started"), "{}", run.text);
        stage.refused(&["own-log"]);
    });
}

#[test]
fn a_program_has_no_terminal_where_the_one_that_confines_it_has_one() {
    each_user(|stage| {
        assert!(stage.run_on_terminal(false, "terminal").is_done());
        let confined = stage.run_on_terminal(true, "terminal");
        assert!(confined.is_refused(), "{}", confined.text);
    });
}

#[test]
fn sockets_of_the_host_cannot_be_reached() {
    each_user(|stage| {
        let name = format!("holdpoint-escape-{}-{}", std::process::id(), stage.user());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _abstract = UnixListener::bind_addr(&address).unwrap();
        let path = stage.path("outside/docker.sock");
        let _docker = UnixListener::bind(&path).unwrap();
        stage.own(&path);
        assert!(std::os::unix::net::UnixStream::connect_addr(&address).is_ok());
        stage.refused(&["abstract", &name]);
        stage.done(&["own-abstract"]);
        for path in
            [&path, "/var/run/docker.sock", "/run/dbus/system_bus_socket", "/run/user/1000/bus"]
        {
            stage.refused(&["unix", path]);
        }
        // Virtual machine sockets, packet sockets, raw Internet and ICMP sockets, kernel events,
        // Bluetooth, key management.
        for (family, kind, protocol) in [
            (40, 1, 0),
            (17, 3, 768),
            (2, 3, 1),
            (10, 3, 58),
            (16, 3, 15),
            (31, 3, 1),
            (15, 3, 2),
            (38, 5, 0),
        ] {
            let number = |number: i32| number.to_string();
            stage.refused(&["socket", &number(family), &number(kind), &number(protocol)]);
        }
        for (family, kind) in [("1", "1"), ("2", "1"), ("10", "1"), ("2", "2"), ("16", "3")] {
            stage.done(&["socket", family, kind, "0"]);
        }
        stage.done(&["socket-pair"]);
    });
}

#[test]
fn processes_memory_and_files_are_bounded() {
    each_user(|stage| {
        let few = json!({ "limits": { "processes": 32 } });
        assert!(stage.run_with(&few, &["fork", "64"]).is_refused());
        assert!(stage.run_with(&few, &["fork", "8"]).is_done());
        let small = json!({ "limits": { "memory_bytes": 256 << 20 } });
        assert!(stage.run_with(&small, &["memory", "1073741824"]).is_refused());
        assert!(stage.run_with(&small, &["memory", "67108864"]).is_done());
        // Each process is below the limit, but their total is not, so the helper ends them.
        let many = stage.run_with(&small, &["memory-together", "4", "104857600"]);
        assert!(many.text.contains("exit 137"), "{}", many.text);
        let tight = json!({ "limits": { "temporary_bytes": 8 << 20, "file_bytes": 16 << 20 } });
        assert!(stage.run_with(&tight, &["fill", "/tmp/much", "16777216"]).is_refused());
        assert!(stage.run_with(&tight, &["fill", "/tmp/little", "4194304"]).is_done());
        let home = stage.run_with(&tight, &["fill", "/home/server/much", "33554432"]);
        assert!(!home.is_done(), "{}", home.text);
    });
}

#[test]
fn a_program_ends_as_it_would_outside() {
    each_user(|stage: &Stage| {
        let run = stage.run_program("no-such-program", &[]);
        assert!(run.text.contains("`no-such-program` was not found"), "{}", run.text);
        let run = stage.run_program("/bin/sh", &["-c", "exit 7"]);
        assert!(run.text.contains("exit 7"), "{}", run.text);
        let run = stage.run_program("/bin/sh", &["-c", "kill -TERM $$"]);
        assert!(run.text.contains("exit 143"), "{}", run.text);
    });
}
