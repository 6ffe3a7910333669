//! Parses a model's answer strictly. Anything but exactly the expected object is no opinion.

use super::ChatApi;
use crate::network::ReasonClass;
use crate::network::vocabulary::vocabulary;
use crate::tiers::Opinion;
use serde::Deserialize;

/// The longest rationale, in characters.
pub const MAX_RATIONALE_CHARACTERS: usize = 400;
/// The largest chat API response that is read.
pub const MAX_CONTENT_BYTES: usize = 64 * 1024;

vocabulary! {
    ModelOpinion {
        LikelyHostile = "LIKELY_HOSTILE",
        LikelyBenign = "LIKELY_BENIGN",
        Abstain = "ABSTAIN",
    }
}

vocabulary! {
    ModelSeverity {
        None = "none",
        Low = "low",
        Medium = "medium",
        High = "high",
    }
}

impl ModelOpinion {
    /// The opinion as the ladder counts it.
    pub const fn to_tier(self) -> Opinion {
        match self {
            ModelOpinion::LikelyHostile => Opinion::Suspicious,
            ModelOpinion::LikelyBenign => Opinion::LikelyBenign,
            ModelOpinion::Abstain => Opinion::Abstained,
        }
    }
}

/// A model's answer. The rationale is untrusted and only for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub opinion: ModelOpinion,
    pub severity: ModelSeverity,
    pub reason_class: ReasonClass,
    pub rationale: String,
}

/// Why an answer does not have exactly the requested form. It counts as an abstention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("the answer has more than {MAX_CONTENT_BYTES} bytes")]
    TooLarge,
    #[error("the answer of the chat API has no single text")]
    NoText,
    #[error("the model's text is not exactly the requested object")]
    NotExpected,
    #[error("the model's text has a word that is not on its list")]
    OffVocabulary,
    #[error("the rationale has more than {MAX_RATIONALE_CHARACTERS} characters")]
    LongRationale,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAnswer {
    opinion: String,
    severity: String,
    reason_class: String,
    rationale: String,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    choices: Vec<OpenAiChoice>,
}

#[derive(Deserialize)]
struct OpenAiChoice {
    message: OpenAiMessage,
}

#[derive(Deserialize)]
struct OpenAiMessage {
    content: Option<String>,
}

#[derive(Deserialize)]
struct AnthropicAnswer {
    content: Vec<AnthropicBlock>,
}

#[derive(Deserialize)]
struct AnthropicBlock {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

impl Answer {
    /// The answer that counts if a model could not be asked or did not follow the instructions.
    pub fn abstention() -> Answer {
        Answer {
            opinion: ModelOpinion::Abstain,
            severity: ModelSeverity::None,
            reason_class: ReasonClass::Unstated,
            rationale: String::new(),
        }
    }

    /// Parses the response of a chat API.
    pub fn of_chat(api: ChatApi, bytes: &[u8]) -> Result<Answer, Unusable> {
        if bytes.len() > MAX_CONTENT_BYTES {
            return Err(Unusable::TooLarge);
        }
        let text = match api {
            ChatApi::OpenAi => {
                let answer: OpenAiAnswer =
                    serde_json::from_slice(bytes).map_err(|_| Unusable::NoText)?;
                let mut choices = answer.choices.into_iter();
                match (choices.next(), choices.next()) {
                    (Some(OpenAiChoice { message }), None) => message.content,
                    _ => None,
                }
            }
            ChatApi::Anthropic => {
                let answer: AnthropicAnswer =
                    serde_json::from_slice(bytes).map_err(|_| Unusable::NoText)?;
                let mut blocks = answer.content.into_iter();
                match (blocks.next(), blocks.next()) {
                    (Some(AnthropicBlock { kind, text }), None) if kind == "text" => text,
                    _ => None,
                }
            }
        };
        Answer::of_text(&text.ok_or(Unusable::NoText)?)
    }

    /// Parses the text that a model wrote: one JSON object with exactly four members.
    pub fn of_text(text: &str) -> Result<Answer, Unusable> {
        let raw: RawAnswer = serde_json::from_str(text).map_err(|_| Unusable::NotExpected)?;
        if raw.rationale.chars().count() > MAX_RATIONALE_CHARACTERS {
            return Err(Unusable::LongRationale);
        }
        let read = || {
            Some(Answer {
                opinion: ModelOpinion::of(&raw.opinion)?,
                severity: ModelSeverity::of(&raw.severity)?,
                reason_class: ReasonClass::of(&raw.reason_class)?,
                rationale: raw.rationale.clone(),
            })
        };
        read().ok_or(Unusable::OffVocabulary)
    }
}
