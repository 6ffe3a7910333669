//! Pins as a document that the application keeps. Only this module writes or reads it.

use contract::json::escape_into;
use contract::surface::{Entry, EntryId, EntryType};
use gate::pins::{Basis, Pin, PinBook};
use gate::server::ServerId;
use gate::time::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// What the document says that it is.
const KIND: &str = "pins";
/// The version of the document. One of another version is refused: it was written by another release.
const VERSION: u64 = 1;
/// The largest document, in bytes: every list of a server at its limit, escaped.
pub(crate) const MAX_PINS_BYTES: usize = 256 * 1024 * 1024;
/// How long an automatic pin is kept that another pin of its entry followed: as long as it counts for the limit of a day.
const AUTO_PIN_MILLISECONDS: i64 = 24 * 60 * 60 * 1_000;

/// Why kept pins cannot be used. Nothing is called without a baseline that can be read.
#[derive(Debug, thiserror::Error)]
pub enum PinsError {
    #[error("the pins are not a document of Holdpoint: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the pins are not a document of Holdpoint")]
    NotPins,
    #[error(
        "the pins were written by another version of Holdpoint (version {found} of the document, this one reads {VERSION})"
    )]
    OtherVersion { found: u64 },
    #[error("the pins belong to the server `{found}`, not to `{server}`")]
    OtherServer { found: String, server: ServerId },
    #[error("the pins are larger than {MAX_PINS_BYTES} bytes")]
    TooLarge,
    #[error("the pin of the {0} `{1}` cannot be read")]
    BadPin(String, String),
}

/// Read first: what the rest means depends on it.
#[derive(Deserialize)]
struct Heading {
    holdpoint: Option<String>,
    version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    /// These two were read with the [`Heading`].
    #[serde(rename = "holdpoint")]
    _kind: IgnoredAny,
    #[serde(rename = "version")]
    _version: IgnoredAny,
    server: Cow<'a, str>,
    revision: u64,
    entries: Vec<PinnedEntry<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedEntry<'a> {
    #[serde(rename = "type")]
    entry_type: Cow<'a, str>,
    key: Cow<'a, str>,
    pins: Vec<PinDocument<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PinDocument<'a> {
    basis: Cow<'a, str>,
    at: i64,
    by: Cow<'a, str>,
    /// The JSON of the entry byte for byte, as a text. `None`: a person accepted that the entry is gone.
    definition: Option<Cow<'a, str>>,
}

/// Pins, and which version of them this is.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) book: PinBook,
    pub(crate) revision: u64,
}

impl Kept {
    pub(crate) fn read(text: &str, server: &ServerId) -> Result<Kept, PinsError> {
        if text.len() > MAX_PINS_BYTES {
            return Err(PinsError::TooLarge);
        }
        let heading: Heading = serde_json::from_str(text)?;
        match (heading.holdpoint.as_deref(), heading.version) {
            (Some(KIND), Some(VERSION)) => {}
            (Some(KIND), Some(found)) => return Err(PinsError::OtherVersion { found }),
            _ => return Err(PinsError::NotPins),
        }
        let document: Document<'_> = serde_json::from_str(text)?;
        if document.server != server.as_str() {
            let found = document.server.into_owned();
            return Err(PinsError::OtherServer { found, server: server.clone() });
        }
        let mut book = PinBook::default();
        for entry in document.entries {
            for pin in entry.pins {
                let bad = || PinsError::BadPin(entry.entry_type.to_string(), entry.key.to_string());
                let entry_type: EntryType = entry.entry_type.parse().map_err(|_| bad())?;
                let id = EntryId::new(entry_type, &*entry.key);
                book.push(pin.read(id).ok_or_else(bad)?);
            }
        }
        Ok(Kept { book, revision: document.revision })
    }

    /// How many entries were pinned during the last day without asking.
    pub(crate) fn auto_pins_today(&self, now: Timestamp) -> usize {
        let pins = self.book.iter().flat_map(|(_, pins)| pins.iter());
        let is_recent = |pin: &&Pin| now.0.saturating_sub(pin.at.0) < AUTO_PIN_MILLISECONDS;
        pins.filter(|pin| pin.basis == Basis::Auto).filter(is_recent).count()
    }
}

/// The revision of a document of pins; `None` if it is none.
pub fn revision_of(text: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Revision {
        revision: u64,
    }
    serde_json::from_str(text).ok().map(|Revision { revision }| revision)
}

/// The document of some pins, written as it is read above: a list is megabytes, which go straight into their place.
/// Automatic pins that were followed by others are left out once they count for nothing.
pub(crate) fn document(book: &PinBook, revision: u64, server: &ServerId, now: Timestamp) -> String {
    let definitions =
        book.iter().flat_map(|(_, pins)| pins.iter().map(|pin| pin.entry.raw().len()));
    let (count, bytes) = definitions.fold((0, 0), |(count, all), bytes| (count + 1, all + bytes));
    // Room for all of it at once, quotation marks escaped.
    let mut out = Vec::with_capacity(bytes + bytes / 4 + count * 128 + 128);
    out.extend_from_slice(br#"{"holdpoint":"#);
    escape_into(KIND, &mut out);
    out.extend_from_slice(format!(r#","version":{VERSION},"server":"#).as_bytes());
    escape_into(server.as_str(), &mut out);
    out.extend_from_slice(format!(r#","revision":{revision},"entries":["#).as_bytes());
    for (number, (id, pins)) in book.iter().enumerate() {
        out.extend_from_slice(if number > 0 { br#",{"type":"# } else { br#"{"type":"# });
        escape_into(id.entry_type.as_str(), &mut out);
        out.extend_from_slice(br#","key":"#);
        escape_into(&id.key, &mut out);
        out.extend_from_slice(br#","pins":["#);
        let last = pins.iter().count().saturating_sub(1);
        let is_kept = |(at, pin): &(usize, &Pin)| {
            let is_recent = now.0.saturating_sub(pin.at.0) < AUTO_PIN_MILLISECONDS;
            pin.basis.is_approved() || is_recent || *at == last
        };
        let kept = pins.iter().enumerate().filter(is_kept);
        for (number, (_, pin)) in kept.enumerate() {
            out.extend_from_slice(if number > 0 { b"," } else { b"" });
            write_pin(pin, &mut out);
        }
        out.extend_from_slice(b"]}");
    }
    out.extend_from_slice(b"]}");
    // It is made of texts and of ASCII.
    String::from_utf8(out).unwrap_or_default()
}

fn write_pin(pin: &Pin, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"basis":"#);
    escape_into(pin.basis.as_str(), out);
    out.extend_from_slice(format!(r#","at":{},"by":"#, pin.at.0).as_bytes());
    escape_into(&pin.by, out);
    out.extend_from_slice(br#","definition":"#);
    match pin.entry.is_gone() {
        true => out.extend_from_slice(b"null"),
        false => escape_into(pin.entry.raw(), out),
    }
    out.push(b'}');
}

impl PinDocument<'_> {
    fn read(self, id: EntryId) -> Option<Pin> {
        let basis = Basis::ALL.into_iter().find(|basis| basis.as_str() == self.basis)?;
        let entry = match &self.definition {
            Some(raw) => Entry::from_raw(id, raw).ok()?,
            None => Entry::gone(id),
        };
        Some(Pin { entry, basis, at: Timestamp(self.at), by: self.by.into_owned() })
    }
}

#[cfg(test)]
mod tests;
