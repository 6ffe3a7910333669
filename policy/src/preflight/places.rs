//! Selects the arguments that a rule applies to: a parameter by name, or nested values by a JSON
//! Pointer in which `*` stands for every member or element.

use contract::json::{Kind, Node};
use contract::pointer::Pointer;
use std::fmt;
use std::str::FromStr;

/// The most steps in a pointer.
const MAX_STEPS: usize = 16;

/// Why a text does not select any argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPlace {
    #[error(
        "is empty: write a parameter's name, such as `path`, or a pointer, such as `/edits/*/path`"
    )]
    Empty,
    #[error("has more than {MAX_STEPS} steps")]
    TooDeep,
}

/// Receives each text, or `None` for a value that is not a text.
pub type CheckText<'c, E> = dyn FnMut(&Pointer<'_>, Option<&str>) -> Result<(), E> + 'c;

/// A selector of one or more arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentPlace(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Each,
    Name(String),
}

impl FromStr for ArgumentPlace {
    type Err = BadPlace;

    fn from_str(text: &str) -> Result<ArgumentPlace, BadPlace> {
        let Some(pointer) = text.strip_prefix('/') else {
            return match text {
                "" => Err(BadPlace::Empty),
                name => Ok(ArgumentPlace(vec![Step::Name(name.to_owned())])),
            };
        };
        let steps: Vec<Step> = pointer
            .split('/')
            .map(|step| match step {
                "*" => Step::Each,
                name => Step::Name(name.replace("~1", "/").replace("~0", "~")),
            })
            .collect();
        if steps.len() > MAX_STEPS { Err(BadPlace::TooDeep) } else { Ok(ArgumentPlace(steps)) }
    }
}

impl fmt::Display for ArgumentPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| match step {
            Step::Each => formatter.write_str("/*"),
            Step::Name(name) => {
                write!(formatter, "/{}", name.replace('~', "~0").replace('/', "~1"))
            }
        })
    }
}

impl ArgumentPlace {
    /// Calls `check` with each text at this place. For a list, that is each of its texts; null is
    /// skipped. For any other value `check` receives `None`.
    ///
    /// Names are compared case-insensitively, because some servers accept `Path` for `path`.
    pub fn each<E>(&self, arguments: Node<'_>, check: &mut CheckText<'_, E>) -> Result<(), E> {
        each(&self.0, arguments, &Pointer::Root, check)
    }
}

fn each<E>(
    steps: &[Step],
    value: Node<'_>,
    at: &Pointer<'_>,
    check: &mut CheckText<'_, E>,
) -> Result<(), E> {
    let Some((step, rest)) = steps.split_first() else { return texts(value, at, check) };
    for (name, member) in value.members() {
        let name = name.as_str().unwrap_or_default();
        let is_meant = match step {
            Step::Each => true,
            Step::Name(wanted) => name.to_lowercase() == wanted.to_lowercase(),
        };
        if is_meant {
            each(rest, member, &Pointer::Member(at, &name), check)?;
        }
    }
    if *step == Step::Each {
        for (n, item) in value.items().enumerate() {
            each(rest, item, &Pointer::Item(at, n), check)?;
        }
    }
    Ok(())
}

fn texts<E>(value: Node<'_>, at: &Pointer<'_>, check: &mut CheckText<'_, E>) -> Result<(), E> {
    match value.kind() {
        Kind::Null => Ok(()),
        Kind::String => check(at, value.as_str().as_deref()),
        Kind::Array => {
            let mut all = value.items().enumerate();
            all.try_for_each(|(n, item)| {
                let at = Pointer::Item(at, n);
                check(&at, item.as_str().as_deref())
            })
        }
        Kind::False | Kind::True | Kind::Number | Kind::Object => check(at, None),
    }
}
