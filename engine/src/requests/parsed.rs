//! A client's request as scanned: either spans of its message, or an owned copy that outlives the
//! message. The copy keeps the spans, so a waiting request is not scanned again.

use crate::call::{Call, Method, RequestContext, Subject, Target, task_of};
use crate::outlet::Outgoing;
use contract::surface::EntryId;
use std::ops::Range;
use std::time::Instant;
use wire::envelope::{Envelope, Id, OwnedId};

/// A request as spans of its message.
#[derive(Debug, Clone, Copy)]
pub struct ParsedRequest<'a> {
    pub id: &'a Id<'a>,
    pub call: Call<'a>,
    /// The bytes that are forwarded.
    pub frame: &'a [u8],
    pub params: Option<&'a [u8]>,
    /// The cursor of a list request.
    pub cursor: Option<&'a [u8]>,
    /// The protocol version in the request itself, as in stateless requests.
    pub protocol_version: Option<&'a str>,
    /// The trace that it belongs to.
    pub trace_id: Option<&'a str>,
    /// The subject, if its own parameters do not contain it.
    pub subject: Option<Subject<'a>>,
}

impl<'a> ParsedRequest<'a> {
    /// The request in a message. `id` and `method` are those of the message.
    pub fn of(
        envelope: &'a Envelope<'_>,
        id: &'a Id<'a>,
        method: &'a str,
        protocol_version: Option<&'a str>,
    ) -> ParsedRequest<'a> {
        let kind = Method::of(method);
        let params = envelope.params.as_ref();
        let call = Call {
            method,
            kind,
            target: kind.target(params),
            subject: Subject::of(method, params.map(|params| params.raw)),
            arguments: params.and_then(|params| params.arguments),
            bytes: envelope.raw.len(),
            depth: envelope.depth,
            session: None,
        };
        ParsedRequest {
            id,
            call,
            frame: envelope.raw,
            params: params.map(|params| params.raw),
            cursor: params.and_then(|params| params.cursor),
            protocol_version,
            trace_id: None,
            subject: None,
        }
    }

    /// Adds what is known about the request apart from its message.
    #[must_use]
    pub fn in_context(mut self, context: RequestContext<'a>) -> ParsedRequest<'a> {
        self.trace_id = context.trace_id;
        self.call.session = context.session;
        if let Some(subject) = context.subject {
            self.call.subject = subject;
            self.subject = Some(subject);
        }
        self
    }

    /// The message to the server.
    pub fn outgoing(&self) -> Outgoing<'a> {
        let target = self.call.target.map(|target| target.key);
        Outgoing {
            frame: self.frame,
            method: Some(self.call.method),
            id: Some(self.id.raw()),
            name: target.or_else(|| task_of(self.call.method, self.params)),
            protocol_version: self.protocol_version,
            ..Outgoing::default()
        }
    }
}

/// A request that outlives its message.
#[derive(Debug)]
pub struct OwnedRequest {
    id: OwnedId,
    kind: Method,
    method: Box<str>,
    target: Option<EntryId>,
    frame: Box<[u8]>,
    params: Option<Range<usize>>,
    arguments: Option<Range<usize>>,
    cursor: Option<Range<usize>>,
    depth: usize,
    protocol_version: Option<Box<str>>,
    trace_id: Option<Box<str>>,
    subject: Option<OwnedSubject>,
    session: Option<u64>,
    begun: Instant,
}

/// A subject that outlives its message.
#[derive(Debug)]
enum OwnedSubject {
    Server,
    Entry(EntryId),
    Task { tool: Box<str>, arguments: Option<Box<[u8]>> },
    Unclear,
}

impl OwnedSubject {
    fn of(subject: Subject<'_>) -> OwnedSubject {
        match subject {
            Subject::Server => OwnedSubject::Server,
            Subject::Entry(Target { entry_type, key }) => {
                OwnedSubject::Entry(EntryId::new(entry_type, key))
            }
            Subject::Task { tool, arguments } => {
                OwnedSubject::Task { tool: tool.into(), arguments: arguments.map(Into::into) }
            }
            Subject::Unclear => OwnedSubject::Unclear,
        }
    }

    fn as_subject(&self) -> Subject<'_> {
        match self {
            OwnedSubject::Server => Subject::Server,
            OwnedSubject::Entry(entry) => Subject::Entry(target_of(entry)),
            OwnedSubject::Task { tool, arguments } => {
                Subject::Task { tool, arguments: arguments.as_deref() }
            }
            OwnedSubject::Unclear => Subject::Unclear,
        }
    }
}

impl OwnedRequest {
    /// Copies a request that was read at `begun`. Returns `None` if one of its spans is not part of
    /// its frame.
    pub fn of(request: &ParsedRequest<'_>, begun: Instant) -> Option<OwnedRequest> {
        let range = |part: Option<&[u8]>| {
            part.map(|part| range_in(request.frame, part).ok_or(())).transpose().ok()
        };
        let call = &request.call;
        Some(OwnedRequest {
            id: request.id.to_owned(),
            kind: call.kind,
            method: call.method.into(),
            target: call.target.map(|target| EntryId::new(target.entry_type, target.key)),
            frame: request.frame.into(),
            params: range(request.params)?,
            arguments: range(call.arguments)?,
            cursor: range(request.cursor)?,
            depth: call.depth,
            protocol_version: request.protocol_version.map(Into::into),
            trace_id: request.trace_id.map(Into::into),
            subject: request.subject.map(OwnedSubject::of),
            session: call.session,
            begun,
        })
    }

    pub fn id(&self) -> &OwnedId {
        &self.id
    }

    pub fn kind(&self) -> Method {
        self.kind
    }

    pub fn method(&self) -> &str {
        &self.method
    }

    /// The length of its message.
    pub fn bytes(&self) -> usize {
        self.frame.len()
    }

    /// When its message was read.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    pub fn call(&self) -> Call<'_> {
        Call {
            method: &self.method,
            kind: self.kind,
            target: self.target.as_ref().map(target_of),
            subject: match &self.subject {
                Some(subject) => subject.as_subject(),
                None => Subject::of(&self.method, self.part(self.params.as_ref())),
            },
            arguments: self.part(self.arguments.as_ref()),
            bytes: self.frame.len(),
            depth: self.depth,
            session: self.session,
        }
    }

    /// The request as it was parsed. `id` is this request's id, which the caller holds.
    pub fn parsed<'a>(&'a self, id: &'a Id<'a>) -> ParsedRequest<'a> {
        ParsedRequest {
            id,
            call: self.call(),
            frame: &self.frame,
            params: self.part(self.params.as_ref()),
            cursor: self.part(self.cursor.as_ref()),
            protocol_version: self.protocol_version.as_deref(),
            trace_id: self.trace_id.as_deref(),
            subject: self.subject.as_ref().map(OwnedSubject::as_subject),
        }
    }

    fn part(&self, range: Option<&Range<usize>>) -> Option<&[u8]> {
        self.frame.get(range?.clone())
    }
}

fn target_of(entry: &EntryId) -> Target<'_> {
    Target { entry_type: entry.entry_type, key: &entry.key }
}

/// The position of a part within the whole.
fn range_in(whole: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len()).filter(|end| *end <= whole.len())?;
    Some(start..end)
}
