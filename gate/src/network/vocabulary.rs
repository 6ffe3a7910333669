//! The closed lists of words. A word outside its list goes no further than the parser that read it.

use contract::time::Timestamp;
use std::fmt;

macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($(#[$word_meta:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$word_meta])* $word,)*
        }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$word,)*];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$word => $text,)*
                }
            }

            /// The word with exactly this spelling.
            pub fn of(text: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use vocabulary;

vocabulary! {
    /// What a finding is about, in one word.
    ReasonClass {
        HiddenInstructions = "hidden-instructions",
        Exfiltration = "exfiltration",
        Injection = "injection",
        Overclaim = "overclaim",
        Shadowing = "shadowing",
        SecretAccess = "secret-access",
        DestructiveFlip = "destructive-flip",
        Conformance = "conformance",
        ReviewedBenign = "reviewed-benign",
        /// No class was given, or one that is not on this list.
        Unstated = "",
    }
}

impl ReasonClass {
    /// Parses leniently: an unknown word becomes the empty one.
    pub fn or_unstated(text: &str) -> ReasonClass {
        ReasonClass::of(text).unwrap_or(ReasonClass::Unstated)
    }
}

vocabulary! {
    /// The corpus's verdict on a definition.
    CorpusVerdict {
        Cleared = "cleared",
        Dangerous = "dangerous",
    }
}

vocabulary! {
    /// What a later finding says about a definition.
    AdvisoryKind {
        /// The definition was found dangerous.
        Dangerous = "dangerous",
        /// An earlier row about the definition no longer counts.
        Withdrawn = "withdrawn",
    }
}

/// A time rounded down to the hour in UTC: `2026-11-18T06`. Finer times would help to link two
/// messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hour(Timestamp);

const HOUR_MILLISECONDS: i64 = 3_600_000;

impl Hour {
    pub const fn of(moment: Timestamp) -> Hour {
        Hour(Timestamp(moment.0 - moment.0.rem_euclid(HOUR_MILLISECONDS)))
    }

    /// Parses exactly the output of `Display`.
    pub fn parse(text: &str) -> Option<Hour> {
        let is_long_enough = text.len() == "2026-11-18T06".len();
        is_long_enough.then(|| Timestamp::parse(&format!("{text}:00:00Z")))?.map(Hour)
    }

    /// The start of the hour.
    pub const fn start(self) -> Timestamp {
        self.0
    }
}

impl fmt::Display for Hour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        formatter.write_str(text.strip_suffix(":00:00Z").unwrap_or(&text))
    }
}

impl serde::Serialize for Hour {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
