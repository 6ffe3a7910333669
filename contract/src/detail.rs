//! What exactly changed at one place of a schema, for a sentence that names it. Excerpts may be cut, and cannot tell
//! whether a keyword speaks of every value or only of one alternative; a detail is exact, and is there only where it does.

use crate::change::Finding;

/// The exact change that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    Limit(LimitChange),
    Values(ValueChange),
    Types(TypeChange),
    /// The keyword that the finding's pointer ends with, of which before and after are the values.
    Keyword,
    /// It is about a tool that was not there before, so no call can depend on it.
    NewTool,
    /// What an output schema allows differently, what matters most first; and how much more there is than is listed.
    Results(Vec<Finding>, usize),
}

/// What a limit is of.
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

/// A limit before and after. Where only integers are admitted it is the first integer that is, whatever the keyword.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitChange {
    pub of: Limited,
    pub before: Option<LimitValue>,
    pub after: Option<LimitValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitValue {
    /// The number in its canonical form, not cut.
    pub number: String,
    pub is_exclusive: bool,
}

/// The values that `enum` and `const` allow, where either is said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueChange {
    pub was_listed: bool,
    pub is_listed: bool,
    /// Listed before and not now.
    pub removed: Listed,
    /// Listed now and not before.
    pub added: Listed,
}

/// Some values as canonical JSON, none of them cut.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    pub values: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

impl Listed {
    /// The most values that are listed, and the longest one.
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

/// The types of values that are accepted. Both lists in one order; all of them where any type is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TypeChange {
    pub before: Vec<&'static str>,
    pub after: Vec<&'static str>,
}

impl TypeChange {
    /// Every type, as [`TypeChange`] lists them.
    pub const ALL: [&'static str; 6] = ["string", "number", "boolean", "object", "array", "null"];
}
