//! How an application wants its session to be judged.

use gate::posture::{Posture, Settings};
use gate::server::ServerId;
use gate::shown::ListMode;
use serde::Deserialize;

/// How old a list may be on which a call is decided, in seconds.
const RELIST_MAX_AGE: f64 = 30.0;
/// Longer ages are a mistake in the unit.
const MAX_AGE: f64 = 86_400.0;

/// The options as the application gives them. A member that is not one of these is an error.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Options {
    pub(crate) server: ServerId,
    #[serde(default)]
    posture: Posture,
    relist_max_age: Option<f64>,
    #[serde(default)]
    pub(crate) list: ListMode,
    #[serde(default)]
    guard: GuardOptions,
    #[serde(default)]
    shield: ShieldOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GuardOptions {
    inert_string_max: Option<usize>,
    inert_entry_max: Option<usize>,
    #[serde(default)]
    new_tools: NewTools,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NewTools {
    #[default]
    Defer,
    Accept,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShieldOptions {
    #[serde(default)]
    parameter_text: ParameterText,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ParameterText {
    #[default]
    Hold,
    Defer,
}

/// Why options are refused.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error("the options cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("`relistMaxAge` is a number of seconds from 0 to {MAX_AGE}")]
    MaxAge,
}

impl Options {
    pub(crate) fn read(text: &str) -> Result<Options, OptionsError> {
        let options: Options = serde_json::from_str(text)?;
        let max_age = options.relist_max_age.unwrap_or_default();
        if (0.0..=MAX_AGE).contains(&max_age) { Ok(options) } else { Err(OptionsError::MaxAge) }
    }

    #[expect(clippy::cast_possible_truncation, reason = "it is at most a day of milliseconds")]
    pub(crate) fn relist_max_age_milliseconds(&self) -> i64 {
        (self.relist_max_age.unwrap_or(RELIST_MAX_AGE) * 1_000.0) as i64
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::with_posture(self.posture);
        let GuardOptions { inert_string_max, inert_entry_max, new_tools } = &self.guard;
        settings.inert.string_max = inert_string_max.unwrap_or(settings.inert.string_max);
        settings.inert.entry_max = inert_entry_max.unwrap_or(settings.inert.entry_max);
        settings.accept_new_tools = *new_tools == NewTools::Accept;
        settings.defer_parameter_text = self.shield.parameter_text == ParameterText::Defer;
        settings
    }
}
