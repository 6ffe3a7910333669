//! The pure part of tier 2 of the ladder: the question to a model, and the strict parser of its
//! answer.
//!
//! The model is asked for an opinion on a server's text, which is treated as hostile. The text goes
//! into the question as one JSON string between delimiters that the server cannot guess. The
//! model's answer can at most make a hold firmer; its rationale is untrusted text for people.

mod answer;
mod question;

pub use answer::{
    Answer, MAX_CONTENT_BYTES, MAX_RATIONALE_CHARACTERS, ModelOpinion, ModelSeverity, Unusable,
};
pub use question::{Delimiter, MAX_PROMPT_CHARACTERS, Question};

use crate::network::vocabulary::vocabulary;

vocabulary! {
    /// The chat API that a model is served by.
    ChatApi {
        OpenAi = "openai",
        Anthropic = "anthropic",
    }
}

/// Whether a benign opinion may turn a hold into a proceed. It must not.
pub const BENIGN_DOWNGRADE: bool = false;

#[cfg(test)]
mod tests;
