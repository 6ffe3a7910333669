//! `gateway.pid` in the home: the process id of the gateway, and the result of its last reload. The
//! process holds a lock on the file while it runs, so that the id of a dead process is never
//! signalled.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "gateway.pid";
/// The largest size that is read.
const MAX_BYTES: u64 = 1024 * 1024;

const POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLLS: u32 = 200;

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GatewayProcess {
    pub(super) pid: i32,
    pub(super) config: PathBuf,
    /// The number of reloads so far.
    pub(super) reloads: u64,
    /// Whether the last reload succeeded, and its message.
    pub(super) last: Option<(bool, String)>,
}

/// The file of the gateway in this process.
#[derive(Debug)]
pub(super) struct ProcessFile {
    file: File,
    path: PathBuf,
    process: GatewayProcess,
}

impl ProcessFile {
    /// Returns `None` if another gateway holds the lock.
    pub(super) fn create(home: &Path, config: &Path) -> Result<Option<ProcessFile>, Failure> {
        let path = home.join(NAME);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let pid = i32::try_from(std::process::id()).unwrap_or_default();
        let process = GatewayProcess { pid, config: config.to_owned(), reloads: 0, last: None };
        let mut created = ProcessFile { file, path, process };
        created.write()?;
        Ok(Some(created))
    }

    pub(super) fn note_reload(&mut self, is_done: bool, sentence: &str) {
        self.process.reloads += 1;
        self.process.last = Some((is_done, sentence.to_owned()));
        // A failed write only affects the command that waits for the reload.
        let _ = self.write();
    }

    fn write(&mut self) -> std::io::Result<()> {
        let text = serde_json::to_string(&self.process)?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for ProcessFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The gateway that runs from a home, if any.
pub(super) fn find(home: &Path) -> Result<Option<GatewayProcess>, Failure> {
    let path = home.join(NAME);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::usage(format!("`{}`: {error}", path.display()))),
    };
    // A running gateway holds the lock. If it is free, the process is gone.
    if file.try_lock_shared().is_ok() {
        return Ok(None);
    }
    let mut looks = 0;
    loop {
        let mut text = String::new();
        (&file).rewind()?;
        (&file).take(MAX_BYTES).read_to_string(&mut text)?;
        match serde_json::from_str(&text) {
            Ok(process) => return Ok(Some(process)),
            // The gateway may be writing the file right now.
            Err(_) if looks < MAX_POLLS => std::thread::sleep(POLL_INTERVAL),
            Err(_) => {
                let problem = "is locked and says nothing that can be read";
                return Err(Failure::internal(format!("`{}` {problem}", path.display())));
            }
        }
        looks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_is_found_for_as_long_as_it_runs() {
        let home = tempfile::tempdir().unwrap();
        let config = Path::new("/etc/gateway.toml");
        assert_eq!(find(home.path()).unwrap(), None);
        let mut file = ProcessFile::create(home.path(), config).unwrap().unwrap();
        let found = find(home.path()).unwrap().unwrap();
        assert_eq!((found.reloads, found.config.as_path()), (0, config));
        assert!(ProcessFile::create(home.path(), config).unwrap().is_none());
        file.note_reload(false, "no");
        let found = find(home.path()).unwrap().unwrap();
        assert_eq!((found.reloads, found.last), (1, Some((false, "no".to_owned()))));
        drop(file);
        assert_eq!(find(home.path()).unwrap(), None);
    }

    #[test]
    fn the_file_of_a_process_that_is_gone_is_not_believed() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(NAME), r#"{"pid":1,"config":"c","reloads":0,"last":null}"#)
            .unwrap();
        assert_eq!(find(home.path()).unwrap(), None);
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let _file = ProcessFile::create(home.path(), Path::new("c")).unwrap().unwrap();
        let mode = std::fs::metadata(home.path().join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
