//! A client's request, as far as the checks examine it. It refers to the original bytes; nothing is
//! copied.

pub use gate::method::{Method, Target};

use contract::surface::EntryType;
use wire::envelope::members;

/// One request of a client.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub method: &'a str,
    /// How the gate treats the method.
    pub kind: Method,
    pub target: Option<Target<'a>>,
    /// The subject of a method that is not gated by an entry, which policies examine.
    pub subject: Subject<'a>,
    /// The bytes of `arguments`, as forwarded.
    pub arguments: Option<&'a [u8]>,
    /// The size of the whole message.
    pub bytes: usize,
    /// The deepest nesting in the message.
    pub depth: usize,
    /// The gateway session that it belongs to, if any.
    pub session: Option<u64>,
}

impl<'a> Call<'a> {
    /// The tool that it uses, or that created the task it is about.
    pub fn tool(&self) -> Option<&'a str> {
        match (self.target, self.subject) {
            (Some(target), _) if target.entry_type == EntryType::Tool => Some(target.key),
            (None, Subject::Task { tool, .. }) => Some(tool),
            (Some(_), _) | (None, Subject::Server | Subject::Entry(_) | Subject::Unclear) => None,
        }
    }

    /// A request about a subject, of which nothing else is known.
    pub fn about(subject: Subject<'a>) -> Call<'a> {
        Call {
            method: "",
            kind: Method::Other,
            target: None,
            subject,
            arguments: None,
            bytes: 0,
            depth: 0,
            session: None,
        }
    }
}

/// The subject of a method that is not gated by an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Subject<'a> {
    /// Nothing in particular.
    #[default]
    Server,
    Entry(Target<'a>),
    /// A task created by a call of this tool with these arguments. Whoever may make the call may
    /// access the task.
    Task {
        tool: &'a str,
        arguments: Option<&'a [u8]>,
    },
    /// An entry that cannot be read unambiguously.
    Unclear,
}

/// What is known about a request apart from its message.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestContext<'a> {
    /// The trace that it belongs to.
    pub trace_id: Option<&'a str>,
    /// The subject, if its own parameters do not contain it.
    pub subject: Option<Subject<'a>>,
    /// The gateway session that it belongs to.
    pub session: Option<u64>,
}

impl<'a> Subject<'a> {
    /// Reads the subject from the raw parameters. Completing an argument of a prompt reveals the
    /// prompt, and subscribing to a resource reveals the resource.
    pub fn of(method: &str, params: Option<&'a [u8]>) -> Subject<'a> {
        let params = params.unwrap_or_default();
        let found = match method {
            "completion/complete" => only_member(params, "ref").and_then(completed),
            "resources/subscribe" | "resources/unsubscribe" => {
                only_member(params, "uri").and_then(plain_text).map(resource)
            }
            _ => return Subject::Server,
        };
        found.map_or(Subject::Unclear, Subject::Entry)
    }
}

/// The entry that a reference in `completion/complete` names. A reference that names two counts as
/// none.
fn completed(reference: &[u8]) -> Option<Target<'_>> {
    let kind = only_member(reference, "type").and_then(plain_text)?;
    let has = |name: &str| members(reference).any(|(known, _)| known.eq_ignore_ascii_case(name));
    match kind {
        "ref/prompt" if !has("uri") => {
            let key = only_member(reference, "name").and_then(plain_text)?;
            Some(Target { entry_type: EntryType::Prompt, key })
        }
        "ref/resource" if !has("name") => {
            only_member(reference, "uri").and_then(plain_text).map(resource)
        }
        _ => None,
    }
}

fn resource(key: &str) -> Target<'_> {
    Target { entry_type: EntryType::Resource, key }
}

/// The task that a request of the tasks extension names.
pub fn task_of<'a>(method: &str, params: Option<&'a [u8]>) -> Option<&'a str> {
    method.strip_prefix("tasks/")?;
    only_member(params?, "taskId").and_then(plain_text)
}

/// The raw value of a member, if exactly one member could be taken for it.
fn only_member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut alike = members(object).filter(|(known, _)| known.eq_ignore_ascii_case(name));
    let (known, value) = alike.next()?;
    (known == name && alike.next().is_none()).then_some(value)
}

/// The text of a raw string without escapes, which every reader interprets the same way.
fn plain_text(raw: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(raw).ok()?.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains('\\')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_read_only_where_it_can_be_read_in_one_way() {
        let prompt = |key| Subject::Entry(Target { entry_type: EntryType::Prompt, key });
        let of = |params: &'static str| Subject::of("completion/complete", Some(params.as_bytes()));
        assert_eq!(of(r#"{"ref":{"type":"ref/prompt","name":"a","title":"A"}}"#), prompt("a"));
        assert_eq!(
            of(r#"{"ref":{"type":"ref/resource","uri":"a:{b}"}}"#),
            Subject::Entry(resource("a:{b}"))
        );
        for unclear in [
            "{}",
            r#"{"ref":{"type":"ref/prompt","name":"a","name":"b"}}"#,
            r#"{"ref":{"type":"ref/prompt","name":"a","Name":"b"}}"#,
            r#"{"ref":{"type":"ref/prompt","name":"a","uri":"b:c"}}"#,
            r#"{"ref":{"type":"ref/resource","name":"a","uri":"b:c"}}"#,
            r#"{"ref":{"type":"ref/prompt","name":"\u0061"}}"#,
            r#"{"ref":{"type":"ref/tool","name":"a"}}"#,
            r#"{"ref":{"name":"a"}}"#,
        ] {
            assert_eq!(of(unclear), Subject::Unclear, "{unclear}");
        }
        let subscribed = Subject::of("resources/subscribe", Some(br#"{"uri":"a:b"}"#));
        assert_eq!(subscribed, Subject::Entry(resource("a:b")));
        assert_eq!(Subject::of("resources/subscribe", None), Subject::Unclear);
        assert_eq!(Subject::of("tasks/get", Some(br#"{"ref":{}}"#)), Subject::Server);
    }
}
