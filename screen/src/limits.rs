//! The limits of what a verdict means. Every response lists them as codes and as sentences.

use crate::dimension::{Dimension, DimensionResult, Outcome};
use crate::state::GRADUATED;
use crate::word::closed_words;

closed_words! {
    HonestLimit ("limit") {
        Advisory => "advisory",
        DescriptionGranularity => "description_granularity",
        DefinitionNotRuntime => "definition_not_runtime",
        WordsNotIntent => "words_not_intent",
        IntentNotRun => "intent_not_run",
        ConformanceNotRun => "conformance_not_run",
        NotCalibrated => "not_calibrated",
        NotGraduated => "not_graduated",
        NoVerdict => "no_verdict",
        Expired => "expired",
        DefinitionChanged => "definition_changed",
    }
}

impl HonestLimit {
    pub const fn sentence(self) -> &'static str {
        match self {
            HonestLimit::Advisory => {
                "Advice before a server is used; it stops no call. The gate decides on calls."
            }
            HonestLimit::DescriptionGranularity => "Only the description was read.",
            HonestLimit::DefinitionNotRuntime => {
                "It is about the definition that was read, not about what the tool does when it is called."
            }
            HonestLimit::WordsNotIntent => {
                "Rules read words and schemas. They miss attacks in other words, and some honest texts trip them."
            }
            HonestLimit::IntentNotRun => "No model judged the intent.",
            HonestLimit::ConformanceNotRun => "The tool's behavior was not tried.",
            HonestLimit::NotCalibrated => "How often a finding is right has not been calibrated.",
            HonestLimit::NotGraduated => {
                "ALLOW and DENY are not given yet; both are shown as REVIEW until enough labelled verdicts exist."
            }
            HonestLimit::NoVerdict => "No verdict is on file. Do not infer trust.",
            HonestLimit::Expired => "The verdict is older than its grade allows.",
            HonestLimit::DefinitionChanged => "The definition is not the one that was screened.",
        }
    }

    /// The limits of a verdict with these dimensions.
    pub fn of(dimensions: &[DimensionResult]) -> Vec<HonestLimit> {
        let is_missing = |dimension: Dimension| {
            dimensions
                .iter()
                .all(|result| result.dimension != dimension || result.outcome == Outcome::NotRun)
        };
        let all = [
            (true, HonestLimit::Advisory),
            (is_missing(Dimension::Conformance), HonestLimit::DefinitionNotRuntime),
            (true, HonestLimit::WordsNotIntent),
            (is_missing(Dimension::Intent), HonestLimit::IntentNotRun),
            (is_missing(Dimension::Conformance), HonestLimit::ConformanceNotRun),
            (true, HonestLimit::NotCalibrated),
            (!GRADUATED, HonestLimit::NotGraduated),
        ];
        all.into_iter().filter(|(applies, _)| *applies).map(|(_, limit)| limit).collect()
    }
}
