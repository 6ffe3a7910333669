//! The Python binding of the SDKs' core: exchanges texts, and contains no rules, which are all in
//! `sdk-core`. The module is private; the package `holdpoint` wraps it.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use sdk_core::checks;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard};

fn wrong(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The gate around one session. A panic leaves it unusable: every later call raises.
#[pyclass(frozen, module = "holdpoint._core")]
#[derive(Debug)]
struct Session {
    session: Mutex<sdk_core::Session>,
}

impl Session {
    fn lock(&self) -> PyResult<MutexGuard<'_, sdk_core::Session>> {
        let broken = "the gate of this session failed before, so nothing goes on";
        self.session.lock().map_err(|_| PyRuntimeError::new_err(broken))
    }
}

#[pymethods]
impl Session {
    #[new]
    fn open(options: &str, pins: Option<&str>, seed: &str) -> PyResult<Session> {
        let session = sdk_core::Session::open(options, pins, seed).map_err(wrong)?;
        Ok(Session { session: Mutex::new(session) })
    }

    fn greet(&self, handshake: &str) -> PyResult<bool> {
        Ok(self.lock()?.greet(handshake))
    }

    fn client(&self, ticket: u32, message: &str, now: i64) -> PyResult<Option<String>> {
        Ok(self.lock()?.client(ticket, message, now))
    }

    fn server(&self, message: &str, now: i64) -> PyResult<Option<String>> {
        Ok(self.lock()?.server(message, now))
    }

    fn pins(&self, now: i64) -> PyResult<Option<String>> {
        Ok(self.lock()?.pins(now))
    }

    fn saved(&self, now: i64) -> PyResult<Option<String>> {
        Ok(self.lock()?.saved(now))
    }

    fn unsaved(&self) -> PyResult<Option<String>> {
        Ok(self.lock()?.unsaved())
    }

    fn load(&self, pins: &str, now: i64) -> PyResult<Option<String>> {
        self.lock()?.load(pins, now).map_err(wrong)
    }

    fn tick(&self, now: i64) -> PyResult<Option<String>> {
        Ok(self.lock()?.tick(now))
    }

    fn lost(&self) -> PyResult<Option<String>> {
        Ok(self.lock()?.lost())
    }

    fn review(&self, entry_type: &str, key: &str) -> PyResult<Option<String>> {
        Ok(self.lock()?.review(entry_type, key))
    }

    fn waiting(&self) -> PyResult<String> {
        Ok(self.lock()?.waiting())
    }

    fn repin(
        &self,
        entry_type: &str,
        key: &str,
        hash: &str,
        by: &str,
        now: i64,
    ) -> PyResult<Option<String>> {
        self.lock()?.repin(entry_type, key, hash, by, now).map_err(wrong)
    }

    fn instructions(&self) -> PyResult<Option<String>> {
        Ok(self.lock()?.instructions())
    }
}

/// The revision of a pins document; `None` if it is not one.
#[pyfunction]
fn revision(pins: &str) -> Option<u64> {
    sdk_core::revision_of(pins)
}

#[pyfunction]
fn hash(capture: &str) -> PyResult<String> {
    checks::hash(capture).map_err(wrong)
}

#[pyfunction]
fn diff(old: &str, new: &str, posture: &str) -> PyResult<String> {
    checks::diff(old, new, posture).map_err(wrong)
}

#[pyfunction]
fn canonical(text: &str, position: &str) -> PyResult<String> {
    checks::canonical(text, position).map_err(wrong)
}

#[pyfunction]
fn markers(entry: &str, tools: &str) -> PyResult<String> {
    checks::markers(entry, tools).map_err(wrong)
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::{Session, canonical, diff, hash, markers, revision};
}
