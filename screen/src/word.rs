//! Closed vocabularies: enums whose members have one word each, in JSON and in the database.

/// The word is not in the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not a {what}: use one of {known}")]
pub struct UnknownWord {
    pub what: &'static str,
    pub word: String,
    pub known: String,
}

/// Defines an enum with `ALL`, `as_str`, `Display`, `FromStr` and `Serialize` from its words.
macro_rules! closed_words {
    ($(#[$meta:meta])* $name:ident ($what:literal) { $($(#[$doc:meta])* $member:ident => $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $member,)+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$member,)+];

            pub const fn as_str(self) -> &'static str {
                match self { $($name::$member => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::word::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                $name::ALL.iter().copied().find(|member| member.as_str() == word).ok_or_else(|| {
                    let known: Vec<&str> = $name::ALL.iter().map(|member| member.as_str()).collect();
                    let word = word.to_owned();
                    $crate::word::UnknownWord { what: $what, word, known: known.join(", ") }
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use closed_words;
