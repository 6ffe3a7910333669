//! Collects a message's members and, once the whole frame is known to be JSON, decides which kind
//! of message they form.

use super::cursor::{Cursor, Fault};
use super::id::{Id, MAX_ID_BYTES};
use super::names::Names;
use super::text::{Text, folded_member};
use super::{Ambiguity, ENVELOPE, Envelope, Kind, Outcome, PARAMETERS, Params};
use super::{ScanError, ScanErrorKind};
use std::borrow::Cow;

/// A value and, if it is a string, its text.
#[derive(Debug, Clone, Copy)]
struct Value<'a> {
    raw: &'a [u8],
    text: Option<Text<'a>>,
}

impl<'a> Value<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let start = cursor.place();
        let text = match cursor.peek() {
            Some(b'"') => Some(cursor.string()?),
            _ => {
                cursor.value()?;
                None
            }
        };
        Ok(Value { raw: cursor.since(start), text })
    }
}

/// The members found in a message.
#[derive(Debug, Default)]
pub(super) struct Found<'a> {
    raw: &'a [u8],
    version: Option<Value<'a>>,
    id: Option<Value<'a>>,
    method: Option<Value<'a>>,
    params: Option<Params<'a>>,
    result: Option<&'a [u8]>,
    error: Option<&'a [u8]>,
    /// `params` is present but not of an allowed type.
    has_bad_params: bool,
    /// `id` is repeated, or another member may be read as `id`.
    has_other_id: bool,
    /// Another member may be read as `jsonrpc`.
    has_other_version: bool,
    depth: usize,
    /// The first problem found. It is reported only if the frame turns out to be valid JSON, since
    /// invalid JSON is worse.
    complaint: Option<ScanErrorKind>,
}

impl<'a> Found<'a> {
    /// Reads the object that starts here, in place: moving the struct costs as much as reading it.
    pub(super) fn read(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        let start = cursor.place();
        let around = cursor.open();
        cursor.forget_deepest();
        self.members(cursor, Ambiguity::RepeatedMember, Found::member)?;
        self.raw = cursor.since(start);
        self.depth = cursor.deepest() - around;
        Ok(())
    }

    /// Reads the members of an object, passing each value to `take`.
    fn members(
        &mut self,
        cursor: &mut Cursor<'a>,
        repeated: Ambiguity,
        mut take: impl FnMut(&mut Self, &[u8], &mut Cursor<'a>) -> Result<Option<u8>, Fault>,
    ) -> Result<(), Fault> {
        cursor.enter()?;
        let mut names = Names::default();
        let mut is_first = true;
        while let Some(name) = cursor.member(is_first)? {
            is_first = false;
            match name.decode_bytes() {
                Some(name) => match take(self, &name, cursor)? {
                    Some(place) => names.add_known(place),
                    None => names.add(name),
                },
                None => {
                    self.complain(Ambiguity::LoneSurrogate);
                    cursor.value()?;
                }
            }
        }
        if names.are_too_many() {
            self.complaint = Some(ScanErrorKind::TooManyMembers);
        } else if names.has_repeated() {
            self.complain(repeated);
        }
        Ok(())
    }

    /// Reads a member's value. Returns the member's index if it is one that this module reads.
    fn member(&mut self, name: &[u8], cursor: &mut Cursor<'a>) -> Result<Option<u8>, Fault> {
        let place = match name {
            b"jsonrpc" => {
                self.version = Some(Value::read(cursor)?);
                0
            }
            b"id" => {
                self.has_other_id |= self.id.is_some();
                self.id = Some(Value::read(cursor)?);
                1
            }
            b"method" => {
                self.method = Some(Value::read(cursor)?);
                2
            }
            b"params" => {
                self.params(cursor)?;
                3
            }
            b"result" => {
                self.result = Some(cursor.value()?);
                4
            }
            b"error" => {
                self.error = Some(cursor.value()?);
                5
            }
            _ => {
                if let Some(member) = folded_member(name, &ENVELOPE) {
                    self.has_other_id |= member == "id";
                    self.has_other_version |= member == "jsonrpc";
                    self.complain(Ambiguity::FoldedMember(member));
                }
                cursor.value()?;
                return Ok(None);
            }
        };
        Ok(Some(place))
    }

    fn params(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        let start = cursor.place();
        let mut params = Params::default();
        match cursor.peek() {
            Some(b'{') => {
                params.is_object = true;
                self.members(cursor, Ambiguity::RepeatedParameter, |found, name, cursor| {
                    found.parameter(name, &mut params, cursor)
                })?;
            }
            // `null` is not valid JSON-RPC, but all readers treat it as absent parameters.
            Some(b'[' | b'n') => {
                cursor.value()?;
            }
            _ => {
                self.has_bad_params = true;
                cursor.value()?;
            }
        }
        params.raw = cursor.since(start);
        self.params = Some(params);
        Ok(())
    }

    /// Reads the value of a member of `params`. Returns the member's index if it is one that this
    /// module reads.
    fn parameter(
        &mut self,
        name: &[u8],
        params: &mut Params<'a>,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<u8>, Fault> {
        let text = match name {
            b"name" => Some((0, &mut params.name)),
            b"uri" => Some((1, &mut params.uri)),
            b"level" => Some((2, &mut params.level)),
            b"protocolVersion" => Some((3, &mut params.protocol_version)),
            _ => None,
        };
        if let Some((place, text)) = text {
            *text = self.parameter_text(&mut params.is_odd, cursor)?;
            return Ok(Some(place));
        }
        let raw = match name {
            b"cursor" => Some((4, &mut params.cursor)),
            b"arguments" => Some((5, &mut params.arguments)),
            b"_meta" => Some((6, &mut params.meta)),
            b"requestId" => Some((7, &mut params.request_id)),
            b"requestState" => Some((8, &mut params.request_state)),
            b"task" => Some((9, &mut params.task)),
            _ => None,
        };
        let value = cursor.value()?;
        if let Some((place, raw)) = raw {
            *raw = Some(value);
            return Ok(Some(place));
        }
        if let Some(member) = folded_member(name, &PARAMETERS) {
            self.complain(Ambiguity::FoldedParameter(member));
        }
        Ok(None)
    }

    fn parameter_text(
        &mut self,
        is_odd: &mut bool,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<Cow<'a, str>>, Fault> {
        let Some(text) = Value::read(cursor)?.text else {
            *is_odd = true;
            return Ok(None);
        };
        let text = text.decode();
        if text.is_none() {
            self.complain(Ambiguity::LoneSurrogate);
        }
        Ok(text)
    }

    fn complain(&mut self, ambiguity: Ambiguity) {
        self.complaint.get_or_insert(ScanErrorKind::Ambiguous(ambiguity));
    }

    /// Decides which kind of message the members form.
    pub(super) fn judge(&mut self, has_line_break: bool) -> Result<Envelope<'a>, ScanError> {
        let id = self.id.map(read_id).transpose();
        let kind = match &id {
            _ if has_line_break => Err(ScanErrorKind::Ambiguous(Ambiguity::LineBreak)),
            Ok(id) => self.kind(id.as_ref()),
            Err(kind) => Err(self.complaint.unwrap_or(*kind)),
        };
        match kind {
            Ok(kind) => {
                Ok(Envelope { raw: self.raw, kind, params: self.params.take(), depth: self.depth })
            }
            Err(kind) => {
                let id = id.ok().flatten().and_then(ReadId::known);
                let id = id.filter(|_| !self.has_other_id).map(|id| id.to_owned());
                let has_id = self.id.is_some() || self.has_other_id;
                let is_request =
                    self.method.is_some() && self.result.is_none() && self.error.is_none();
                let is_unnamed_request = is_request && has_id && id.is_none();
                Err(ScanError { id, is_unnamed_request, ..kind.into() })
            }
        }
    }

    fn kind(&self, id: Option<&ReadId<'a>>) -> Result<Kind<'a>, ScanErrorKind> {
        // Without `jsonrpc`, no reader takes it for a message, whatever its members look like. It
        // may be a log line.
        if self.version.is_none() && !self.has_other_version {
            return Err(ScanErrorKind::NotAMessage);
        }
        if let Some(kind) = self.complaint {
            return Err(kind);
        }
        let version = self.version.and_then(|version| version.text).and_then(Text::decode);
        if version.as_deref() != Some("2.0") || self.has_bad_params {
            return Err(ScanErrorKind::NotAMessage);
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => request(method, id),
            (Some(_), ..) => Err(ScanErrorKind::Ambiguous(Ambiguity::MethodAndOutcome)),
            (None, Some(_), Some(_)) => Err(ScanErrorKind::Ambiguous(Ambiguity::BothOutcomes)),
            (None, Some(result), None) => Ok(response(id, Outcome::Result(result))),
            (None, None, Some(error)) => Ok(response(id, Outcome::Error(error))),
            (None, None, None) => Err(ScanErrorKind::NotAMessage),
        }
    }
}

fn request<'a>(method: Value<'a>, id: Option<&ReadId<'a>>) -> Result<Kind<'a>, ScanErrorKind> {
    let method = method.text.ok_or(ScanErrorKind::NotAMessage)?;
    let method = method.decode().ok_or(ScanErrorKind::Ambiguous(Ambiguity::LoneSurrogate))?;
    if let Some(meant) = contract::names::method_reads_as(&method) {
        return Err(ScanErrorKind::Ambiguous(Ambiguity::FoldedMethod(meant)));
    }
    match id {
        Some(ReadId::Known(id)) => Ok(Kind::Request { id: id.clone(), method }),
        Some(ReadId::Null) => Err(ScanErrorKind::Ambiguous(Ambiguity::NullId)),
        None => Ok(Kind::Notification { method }),
    }
}

fn response<'a>(id: Option<&ReadId<'a>>, outcome: Outcome<'a>) -> Kind<'a> {
    Kind::Response { id: id.cloned().and_then(ReadId::known), outcome }
}

#[derive(Debug, Clone)]
enum ReadId<'a> {
    Null,
    Known(Id<'a>),
}

impl<'a> ReadId<'a> {
    fn known(self) -> Option<Id<'a>> {
        match self {
            ReadId::Known(id) => Some(id),
            ReadId::Null => None,
        }
    }
}

fn read_id(value: Value<'_>) -> Result<ReadId<'_>, ScanErrorKind> {
    if value.raw.len() > MAX_ID_BYTES
        && matches!(value.raw.first(), Some(b'"' | b'-' | b'0'..=b'9'))
    {
        return Err(ScanErrorKind::IdTooLong);
    }
    match (value.text, value.raw.first()) {
        (Some(text), _) => Id::string(value.raw, text)
            .map(ReadId::Known)
            .ok_or(ScanErrorKind::Ambiguous(Ambiguity::LoneSurrogate)),
        (None, Some(b'-' | b'0'..=b'9')) => Ok(ReadId::Known(Id::number(value.raw))),
        (None, Some(b'n')) => Ok(ReadId::Null),
        _ => Err(ScanErrorKind::NotAMessage),
    }
}
