//! A terminal for tests.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

/// Both ends of a terminal: the user's, and the program's.
pub(crate) struct Terminal {
    pub(crate) person: File,
    pub(crate) program: File,
}

impl Terminal {
    pub(crate) fn open() -> Terminal {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let no_control = i32::try_from(OpenptFlags::NOCTTY.bits()).unwrap();
        let program = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(no_control)
            .open(OsStr::from_bytes(name.as_bytes()))
            .unwrap();
        Terminal { person: File::from(person), program }
    }
}

/// Reads all output on a terminal until the last program has closed it.
pub(crate) fn read_terminal(mut person: File) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    // When the other end is closed, reading fails instead of returning the end of the file.
    while let Ok(count @ 1..) = person.read(&mut piece) {
        bytes.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(bytes).unwrap()
}
