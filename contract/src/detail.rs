//! The exact change behind a finding, for a sentence that states it. A finding's excerpts may be
//! truncated and do not say whether a keyword applies to every value or only in one alternative. A
//! detail is exact, and exists only where the keyword applies to every value.

use crate::change::Finding;

/// The exact change behind a finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    Limit(LimitChange),
    Values(ValueChange),
    Types(TypeChange),
    /// A changed keyword: the last step of the finding's pointer. `before` and `after` are its
    /// values.
    Keyword,
    /// The finding is about a new tool, so no existing call can depend on it.
    NewTool,
    /// Changes in what an output schema allows, most important first, and how many more are not
    /// listed.
    Results(Vec<Finding>, usize),
}

/// What a limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limited {
    Minimum,
    Maximum,
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
}

/// A limit before and after. If only integers are admitted, this is the first integer admitted,
/// whichever keyword sets it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitChange {
    pub of: Limited,
    pub before: Option<LimitValue>,
    pub after: Option<LimitValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitValue {
    /// The number in canonical form, never truncated.
    pub number: String,
    pub is_exclusive: bool,
}

/// The values that `enum` and `const` allow, if either is present.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueChange {
    pub was_listed: bool,
    pub is_listed: bool,
    /// Listed before but not now.
    pub removed: Listed,
    /// Listed now but not before.
    pub added: Listed,
}

/// Some values as canonical JSON, none of them truncated.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    pub values: Vec<String>,
    /// How many more values there are.
    pub more: usize,
}

impl Listed {
    /// The most values that are listed, and the length of the longest value listed.
    const MOST: usize = 4;
    const LONGEST: usize = 60;

    pub(crate) fn of<'v>(values: impl Iterator<Item = &'v Vec<u8>>) -> Listed {
        let mut listed = Listed::default();
        for value in values {
            match std::str::from_utf8(value) {
                Ok(text) if text.len() <= Self::LONGEST && listed.values.len() < Self::MOST => {
                    listed.values.push(text.to_owned());
                }
                Ok(_) | Err(_) => listed.more += 1,
            }
        }
        listed
    }
}

/// The types of values that are accepted, both lists in the same order. If any type is accepted,
/// all are listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeChange {
    pub before: Vec<&'static str>,
    pub after: Vec<&'static str>,
}

impl TypeChange {
    /// Every type, as [`TypeChange`] lists them.
    pub const ALL: [&'static str; 6] = ["string", "number", "boolean", "object", "array", "null"];
}
