//! Attestation of servers at the gateway: the check of calls, and the check before a program is
//! started.
//!
//! INVARIANT: under the flavor `enclaved` a program that is not admitted is not started with the operator's variables.

use attest::Flavor;
use engine::admission::{AdmissionRules, Checker, RulesError, Stage, Started, checker_of};
use settings::gateway::ServerSettings;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::Upstream;
use wire::attestation::Greeting;

/// How long a program may take to present its attestation.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The parts that admission of one server needs.
#[derive(Debug)]
pub(crate) struct Vouching {
    pub(crate) checker: Checker,
    pub(crate) max_age: Duration,
    pub(crate) start: Option<StartCheck>,
}

impl Vouching {
    /// Returns `None` if no attestation is required. `file` is the program's file.
    pub(crate) fn of(
        settings: &ServerSettings,
        upstream: &Upstream,
        file: Option<&PathBuf>,
    ) -> Result<Option<Vouching>, RulesError> {
        // All paths in the settings are already absolute.
        let rules = || AdmissionRules::of(&settings.admission, Path::new(""));
        let Some(first) = rules()? else { return Ok(None) };
        let (flavor, max_age) = (first.terms.flavor(), first.max_age);
        let started = |file: &PathBuf| {
            let stage = match flavor {
                Flavor::Enclaved => Stage::Elsewhere { start_timeout: START_TIMEOUT },
                Flavor::Open => Stage::Running(None),
            };
            Started { file: file.clone(), stage }
        };
        let checker = checker_of(first, upstream, file.map(started))?;
        let start = match (file, flavor, rules()?) {
            (Some(file), Flavor::Enclaved, Some(rules)) => {
                let checker = checker_of(rules, upstream, Some(started(file)))?;
                Some(StartCheck {
                    inner: Arc::new(Mutex::new(Inner { checker, last: None })),
                    max_age,
                })
            }
            _ => None,
        };
        Ok(Some(Vouching { checker, max_age, start }))
    }
}

/// Checks whether a program may be started.
#[derive(Debug, Clone)]
pub(crate) struct StartCheck {
    inner: Arc<Mutex<Inner>>,
    max_age: Duration,
}

#[derive(Debug)]
struct Inner {
    checker: Checker,
    last: Option<(Instant, bool)>,
}

impl StartCheck {
    /// Whether the program is admitted. Checks again if the last check is too old, with the program
    /// in a clean environment.
    pub(crate) async fn is_admitted(&self) -> bool {
        let (inner, max_age) = (self.inner.clone(), self.max_age);
        let checking = tokio::task::spawn_blocking(move || {
            let mut inner = inner.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, is_admitted)) = inner.last.filter(|(at, _)| at.elapsed() < max_age) {
                return is_admitted;
            }
            let begun = Instant::now();
            let checked = inner.checker.check(None, Greeting::Initialize);
            let is_admitted = checked.admitted.denied().is_none();
            inner.last = Some((begun, is_admitted));
            is_admitted
        });
        checking.await.unwrap_or(false)
    }
}
