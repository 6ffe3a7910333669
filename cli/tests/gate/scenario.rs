//! The scenario's server in tests: one file switches its surface, another records its input.

use crate::bench::*;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

pub(crate) struct Scenario {
    case: String,
    state: PathBuf,
    record: PathBuf,
}

impl Scenario {
    pub(crate) fn new(bench: &Bench, case: &str) -> Scenario {
        let path = |name: &str| bench.path(&format!("{case}.{name}"));
        Scenario { case: case.to_owned(), state: path("state"), record: path("record") }
    }

    pub(crate) fn launch(&self, options: &[&str]) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            vec![env!("CARGO_BIN_EXE_holdpoint").into(), "scenario".into(), (&self.case).into()];
        words.extend(["--state".into(), self.state.clone().into_os_string()]);
        words.extend(["--record".into(), self.record.clone().into_os_string()]);
        words.extend(options.iter().map(OsString::from));
        words
    }

    pub(crate) fn change(&self) {
        fs::write(&self.state, "after").unwrap();
    }

    pub(crate) fn revert(&self) {
        fs::write(&self.state, "before").unwrap();
    }

    /// Every byte that the server read.
    pub(crate) fn record(&self) -> String {
        String::from_utf8(fs::read(&self.record).unwrap_or_default()).unwrap()
    }
}
