//! The place of a schema in its entry, as a chain of steps that is only written out for a finding.

use std::borrow::Cow;
use std::rc::Rc;

/// Longer member names are truncated in a pointer: a name can be as long as its entry, and every
/// finding carries its pointer.
const STEP_CHARACTERS: usize = 200;

#[derive(Debug, Clone)]
pub(super) struct Path<'a>(Option<Rc<Step<'a>>>);

#[derive(Debug)]
struct Step<'a> {
    parent: Path<'a>,
    name: Cow<'a, str>,
}

impl<'a> Path<'a> {
    pub(super) fn root(start: &'a str) -> Path<'a> {
        let root = Path(None);
        start.split('/').skip(1).fold(root, |path, step| path.step(step))
    }

    pub(super) fn step(&self, name: impl Into<Cow<'a, str>>) -> Path<'a> {
        Path(Some(Rc::new(Step { parent: self.clone(), name: name.into() })))
    }

    pub(super) fn item(&self, index: usize) -> Path<'a> {
        self.step(index.to_string())
    }

    /// The last step.
    pub(super) fn last(&self) -> Option<String> {
        self.0.as_ref().map(|step| step.name.clone().into_owned())
    }

    /// Whether the last step is `name`.
    pub(super) fn ends_with(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|step| step.name == name)
    }

    /// The JSON Pointer (RFC 6901).
    pub(super) fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut at = self;
        while let Some(step) = &at.0 {
            steps.push(&step.name);
            at = &step.parent;
        }
        let mut pointer = String::new();
        for step in steps.into_iter().rev() {
            pointer.push('/');
            pointer.push_str(&pointer_step(step));
        }
        pointer
    }
}

/// One step of a JSON Pointer, escaped, and truncated if the name is very long.
pub(crate) fn pointer_step(name: &str) -> String {
    let cut = match name.char_indices().nth(STEP_CHARACTERS) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or("")),
        None => name.to_owned(),
    };
    cut.replace('~', "~0").replace('/', "~1")
}
