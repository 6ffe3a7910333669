//! The ids of tasks on one link: the server's, and those given to the caller. Server messages about
//! a task get the caller's id, and messages about unknown tasks are dropped.

use crate::frame::{Edits, member, quoted};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The member of `_meta` that links a message to a task.
pub(crate) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The extension for tasks in the stateless era.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The most tasks per link whose messages are passed on. The oldest is forgotten first; it can
/// still be queried.
const MAX_NAMED_TASKS: usize = 1_000;

/// The message names a task that is not the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForeignTask;

/// One task under both of its ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskName {
    /// The server's id.
    pub(crate) own: String,
    /// The sealed id given to the caller.
    pub(crate) given: String,
}

/// The tasks created on a link.
#[derive(Debug, Default)]
pub(crate) struct TaskNames(Mutex<VecDeque<TaskName>>);

impl TaskNames {
    pub(crate) fn add(&self, name: TaskName) {
        let mut names = self.names();
        names.retain(|known| known.own != name.own);
        if names.len() >= MAX_NAMED_TASKS {
            names.pop_front();
        }
        names.push_back(name);
    }

    /// A server's message with the caller's task ids.
    pub(crate) fn told<'m>(&self, message: &'m [u8]) -> Result<Cow<'m, [u8]>, ForeignTask> {
        let parts = [member(message, "params"), member(message, "result")];
        self.replaced(message, parts, |name| (&name.own, &name.given))
    }

    /// A caller's message with the server's task ids.
    pub(crate) fn asked<'m>(&self, message: &'m [u8]) -> Result<Cow<'m, [u8]>, ForeignTask> {
        let parts = [member(message, "params"), member(message, "result")];
        self.replaced(message, parts, |name| (&name.given, &name.own))
    }

    fn replaced<'m>(
        &self,
        message: &'m [u8],
        parts: [Option<&'m [u8]>; 2],
        direction: impl Fn(&TaskName) -> (&str, &str),
    ) -> Result<Cow<'m, [u8]>, ForeignTask> {
        let places: Vec<&[u8]> = parts.into_iter().flatten().flat_map(places).collect();
        if places.is_empty() {
            return Ok(Cow::Borrowed(message));
        }
        let names = self.names();
        let mut edits = Edits::of(message);
        for place in places {
            let text: String = serde_json::from_slice(place).map_err(|_| ForeignTask)?;
            let found = names.iter().find(|name| direction(name).0 == text).ok_or(ForeignTask)?;
            edits.replace(place, quoted(direction(found).1));
        }
        Ok(Cow::Owned(edits.finish()))
    }

    fn names(&self) -> MutexGuard<'_, VecDeque<TaskName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The raw task ids in parameters or a result: the object's own, and the one it belongs to.
fn places(object: &[u8]) -> Vec<&[u8]> {
    let inner = member(object, "result").and_then(related_task);
    [member(object, "taskId"), related_task(object), inner].into_iter().flatten().collect()
}

/// The raw id of the task that an object belongs to.
pub(crate) fn related_task(object: &[u8]) -> Option<&[u8]> {
    related_task_in(member(object, "_meta")?)
}

/// Like [`related_task`], within `_meta`.
pub(crate) fn related_task_in(meta: &[u8]) -> Option<&[u8]> {
    member(member(meta, RELATED_TASK)?, "taskId")
}

/// A result about one task, with the caller's id for it. Fails if the result names another task.
pub(crate) fn renamed(result: &[u8], name: &TaskName) -> Result<Vec<u8>, ForeignTask> {
    let mut edits = Edits::of(result);
    for place in places(result) {
        let text: String = serde_json::from_slice(place).map_err(|_| ForeignTask)?;
        if text != name.own {
            return Err(ForeignTask);
        }
        edits.replace(place, quoted(&name.given));
    }
    Ok(edits.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> TaskName {
        TaskName { own: format!("own-{number}"), given: format!("given-{number}") }
    }

    #[test]
    fn messages_name_the_tasks_of_the_caller_and_no_other() {
        let names = TaskNames::default();
        names.add(name(1));
        let plain =
            br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"taskI":"own-1"}}"#;
        assert!(matches!(names.told(plain), Ok(Cow::Borrowed(_))));
        for (message, expected) in [
            (
                r#"{"params":{"taskId":"own-1","x":1.0}}"#,
                r#"{"params":{"taskId":"given-1","x":1.0}}"#,
            ),
            (
                r#"{"params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"own-1"}}}}"#,
                r#"{"params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"given-1"}}}}"#,
            ),
        ] {
            let told = names.told(message.as_bytes()).unwrap().into_owned();
            assert_eq!(String::from_utf8(told.clone()).unwrap(), expected);
            assert_eq!(names.asked(&told).unwrap().as_ref(), message.as_bytes());
            assert_eq!(names.asked(message.as_bytes()), Err(ForeignTask), "{message}");
        }
        let foreign = br#"{"params":{"taskId":"own-2"}}"#;
        assert_eq!(names.told(foreign), Err(ForeignTask));
        assert_eq!(names.told(br#"{"params":{"taskId":7}}"#), Err(ForeignTask));
    }

    #[test]
    fn a_result_about_another_task_is_not_renamed() {
        let related = r#""_meta":{"io.modelcontextprotocol/related-task":{"taskId":"own-1"}}"#;
        let result = format!(r#"{{"taskId":"own-1","result":{{{related}}}}}"#);
        let renamed_result = renamed(result.as_bytes(), &name(1)).unwrap();
        let expected = result.replace("own-1", "given-1");
        assert_eq!(String::from_utf8(renamed_result).unwrap(), expected);
        assert_eq!(renamed(result.as_bytes(), &name(2)), Err(ForeignTask));
    }

    #[test]
    fn the_oldest_names_are_forgotten_past_the_limit() {
        let names = TaskNames::default();
        (0..=MAX_NAMED_TASKS).for_each(|number| names.add(name(number)));
        let message = |number| format!(r#"{{"params":{{"taskId":"own-{number}"}}}}"#);
        assert_eq!(names.told(message(0).as_bytes()), Err(ForeignTask));
        assert!(names.told(message(1).as_bytes()).is_ok());
        assert!(names.told(message(MAX_NAMED_TASKS).as_bytes()).is_ok());
    }
}
