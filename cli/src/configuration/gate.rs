//! What a running gate reads: how a server is judged, how fresh its view is, and the limits.

use super::Configuration;
use crate::failure::Failure;
use engine::decide::PreflightLimits;
use engine::judge::{FirstUsePolicy, Rules};
use engine::session::SessionSettings;
use engine::situation::{DriftScope, ServerProfile};
use gate::posture::Posture;
use gate::server::ServerId;
use gate::shown::ListMode;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long a server may take to say its first word.
const START_SECONDS: RangeInclusive<u64> = 1..=3600;
/// How long a server may take to end by itself.
const USUAL_GRACE_SECONDS: usize = 5;

impl Configuration {
    /// How a server is judged.
    pub(crate) fn rules(
        &self,
        server: &ServerId,
        posture: Option<Posture>,
    ) -> Result<Rules, Failure> {
        let settings = self.settings(Some(server), posture)?;
        let choice =
            |key, options| self.choice(Some(server.as_str()), key, options).map_err(Failure::usage);
        Ok(Rules {
            server: server.clone(),
            settings,
            first_use: match choice("first_use", ["trust", "approve"])? {
                false => FirstUsePolicy::Trust,
                true => FirstUsePolicy::Approve,
            },
            scope: match choice("drift_scope", ["tool", "server"])? {
                false => DriftScope::Tool,
                true => DriftScope::Server,
            },
            mode: match choice("list", ["accepted", "observed"])? {
                false => ListMode::Accepted,
                true => ListMode::Observed,
            },
            // A command line may name some, too.
            allowed: None,
            // Whoever reaches it over HTTP says so.
            mirrors_parameters: false,
            profile: ServerProfile::default(),
        })
    }

    /// How a session with a server behaves.
    pub(crate) fn session(&self, server: &ServerId) -> Result<SessionSettings, Failure> {
        let usual = SessionSettings::default();
        let usual_age = usize::try_from(usual.relist_max_age.as_secs()).unwrap_or(usize::MAX);
        let max_age = self.whole(server, "relist.max_age", usual_age)?;
        let timeout = self.whole(server, "limits.call_timeout_seconds", 0)?;
        Ok(SessionSettings {
            relist_max_age: seconds(max_age),
            call_timeout: (timeout > 0).then(|| seconds(timeout)),
            start_timeout: self.start_timeout(server, None)?,
            cancelled_patience: usual.cancelled_patience,
            asks_in_client: self.truth("approve.in_client").map_err(Failure::usage)?,
            frame_bytes: self.whole(server, "limits.frame_bytes", usual.frame_bytes)?,
            // Whoever finds that an attestation is asked for says so.
            admission_max_age: None,
            greets_before_check: false,
        })
    }

    /// How long a server may take to answer its first request; what a command line names goes before.
    pub(crate) fn start_timeout(
        &self,
        server: &ServerId,
        named: Option<u64>,
    ) -> Result<Duration, Failure> {
        const KEY: &str = "limits.start_timeout_seconds";
        if let Some(named) = named {
            return Ok(Duration::from_secs(named));
        }
        let usual = SessionSettings::default().start_timeout;
        let usual_seconds = usize::try_from(usual.as_secs()).unwrap_or(usize::MAX);
        let count = self.whole(server, KEY, usual_seconds)? as u64;
        if !START_SECONDS.contains(&count) {
            let (least, most) = (START_SECONDS.start(), START_SECONDS.end());
            return Err(Failure::usage(format!("`{KEY}` is a number from {least} to {most}")));
        }
        Ok(Duration::from_secs(count))
    }

    /// What a call may be at most.
    pub(crate) fn preflight(&self, server: &ServerId) -> Result<PreflightLimits, Failure> {
        let usual = PreflightLimits::default();
        Ok(PreflightLimits {
            arguments_bytes: self.whole(server, "limits.arguments_bytes", usual.arguments_bytes)?,
            depth: self.whole(server, "limits.depth", usual.depth)?,
        })
    }

    /// How long a server may take to end by itself.
    pub(crate) fn grace(&self, server: &ServerId) -> Result<Duration, Failure> {
        self.whole(server, "limits.shutdown_grace_seconds", USUAL_GRACE_SECONDS).map(seconds)
    }

    fn whole(&self, server: &ServerId, key: &str, usual: usize) -> Result<usize, Failure> {
        self.count(Some(server.as_str()), key, usual).map_err(Failure::usage)
    }
}

fn seconds(count: usize) -> Duration {
    Duration::from_secs(count as u64)
}
