//! Real MCP servers installed by `scripts/install-test-tools`, one of which can be run over HTTP.

use crate::{PATIENCE, not_run};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

/// The folder with the packages listed in `scripts/test-servers.txt`, as `<package>/<version>`.
pub fn servers_folder() -> PathBuf {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/servers");
    let folder = std::env::var_os("HOLDPOINT_TEST_SERVERS").map_or(usual, PathBuf::from);
    folder.canonicalize().unwrap_or(folder)
}

/// The folders of a package's releases, oldest first, if all of them are installed. Each is started
/// through its `launch`.
#[track_caller]
pub fn releases(name: &str) -> Option<Vec<PathBuf>> {
    let list = include_str!("../../scripts/test-servers.txt");
    let versions = list.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let package = words.next()?;
        (package.rsplit('/').next() == Some(name)).then(|| words.next())?
    });
    let folder = servers_folder();
    let found: Vec<PathBuf> = versions.map(|version| folder.join(name).join(version)).collect();
    assert!(!found.is_empty(), "{name} is not in scripts/test-servers.txt");
    if found.iter().all(|release| release.join("launch").exists()) {
        return Some(found);
    }
    not_run(&format!("{name} is not in `{}`: run ./scripts/install-test-tools", folder.display()));
    None
}

/// The folder of the newest release of a package.
#[track_caller]
pub fn newest_release(name: &str) -> Option<PathBuf> {
    releases(name)?.pop()
}

/// A server that listens on a loopback port, and is stopped at the end of the test.
#[derive(Debug)]
pub struct ListeningServer {
    child: Child,
    pub port: u16,
}

impl ListeningServer {
    /// Starts a release of `server-everything`, and waits until it listens.
    #[track_caller]
    pub fn start(release: &Path) -> ListeningServer {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.unwrap().port();
        let mut command = Command::new(release.join("launch"));
        command.arg("streamableHttp").env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let server = ListeningServer { child, port };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if line.contains("listening") {
                    let _ = sender.send(());
                }
            }
        });
        receiver.recv_timeout(PATIENCE).unwrap();
        server
    }
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
