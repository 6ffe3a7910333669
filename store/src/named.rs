//! Names that Holdpoint itself assigns: to keys and to approvals.

/// The longest such name, in bytes.
pub const MAX_ID_BYTES: usize = 64;

/// The text is not a name of Holdpoint's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an id: letters, digits, `-` and `_`, at most {MAX_ID_BYTES}")]
pub struct BadId(pub String);

pub(crate) fn checked(text: &str) -> Result<String, BadId> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=MAX_ID_BYTES).contains(&text.len()) && text.bytes().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err(BadId(text.chars().take(MAX_ID_BYTES + 1).collect()))
    }
}

/// Defines a newtype for such names.
macro_rules! id_type {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::named::BadId;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::named::checked(text).map($name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}
pub(crate) use id_type;

#[cfg(test)]
mod tests {
    use super::{MAX_ID_BYTES, checked};

    #[test]
    fn ids_are_plain_and_bounded() {
        for text in ["a", "Key_1-b", &"x".repeat(MAX_ID_BYTES)] {
            assert_eq!(checked(text).as_deref(), Ok(text));
        }
        for text in ["", "a b", "ä", "a/b", "a\0", &"x".repeat(MAX_ID_BYTES + 1)] {
            assert!(checked(text).is_err(), "{text}");
        }
    }
}
