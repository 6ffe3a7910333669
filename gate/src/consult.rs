//! Tier 2 of the ladder, as far as it is pure: the question to a model, and the strict reader of its answer.
//!
//! The model is asked for an opinion on words of a server, which are hostile until shown otherwise. They go into the
//! question as one JSON string between delimiters that the server cannot guess. Whatever the model answers can at most make
//! a hold firmer; its rationale is untrusted text for persons.

mod answer;
mod question;

pub use answer::{
    Answer, MAX_CONTENT_BYTES, MAX_RATIONALE_CHARACTERS, ModelOpinion, ModelSeverity, Unusable,
};
pub use question::{Delimiter, MAX_PROMPT_CHARACTERS, Question};

use crate::network::vocabulary::vocabulary;

vocabulary! {
    /// Which chat API a model speaks.
    ChatApi {
        OpenAi = "openai",
        Anthropic = "anthropic",
    }
}

/// Whether a benign opinion may turn a hold into a proceed. It may not.
pub const BENIGN_DOWNGRADE: bool = false;

#[cfg(test)]
mod tests;
