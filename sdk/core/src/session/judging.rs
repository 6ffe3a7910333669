//! Judging what the server says of itself, and keeping pins.

use super::Session;
use crate::actions::{Action, Fault, text_of};
use crate::pins::{self, Kept, PinsError};
use contract::surface::{EntryType, ListKind, Surface, SurfaceReader};
use envelope::listing::is_offered;
use envelope::{Envelope, members};
use gate::first_use::first_use;
use gate::pins::{Basis, Pin, PinBook};
use gate::server::ServerStatus;
use gate::time::Timestamp;
use gate::unseen::{Repinning, TakenIn, take_in};
use gate::view::{DriftScope, Materials, View, handshake_surface, shaped_handshake, with_member};
use gate::words::Reviewer;

/// Who acts where no person was asked.
const NOBODY: &str = "holdpoint";

/// What is known of the handshake.
#[derive(Debug)]
pub(super) enum Greeting {
    Unknown,
    /// What a client library still knows of it: members may be missing, so that its identity is not judged.
    Partial(Box<str>),
    /// The answer as it came.
    Whole(Box<str>),
}

impl Greeting {
    fn text(&self) -> Option<&str> {
        match self {
            Greeting::Unknown => None,
            Greeting::Partial(text) | Greeting::Whole(text) => Some(text),
        }
    }

    pub(super) fn offers(&self, list: ListKind) -> bool {
        is_offered(self.text().unwrap_or("{}"), list)
    }

    /// Whether entries of a type can be judged by it.
    fn tells_of(&self, entry_type: EntryType) -> bool {
        match (self, entry_type) {
            (Greeting::Unknown, EntryType::Identity | EntryType::Instructions)
            | (Greeting::Partial(_), EntryType::Identity) => false,
            (Greeting::Unknown | Greeting::Partial(_) | Greeting::Whole(_), _) => true,
        }
    }
}

impl Session {
    /// What a client that is connected already knows of the server. Returns whether it can be read in one way.
    pub fn greet(&mut self, handshake: &str) -> bool {
        let is_read = handshake_surface(handshake).is_some();
        if is_read {
            self.greeting = Greeting::Partial(handshake.into());
        }
        is_read
    }

    /// The instructions that were accepted, for an application that has the server's own already.
    pub fn instructions(&self) -> Option<String> {
        if self.judgement.is_some() {
            return self.view.instructions().map(str::to_owned);
        }
        let text = self.greeting.text()?;
        let shaped = self.shaped(text.as_bytes(), &handshake_surface(text)?);
        let (_, instructions) = members(&shaped).find(|(name, _)| name == "instructions")?;
        serde_json::from_slice(instructions).ok()
    }

    /// As much of a handshake as was accepted.
    fn shaped(&self, result: &[u8], surface: &Surface) -> Vec<u8> {
        let trusted = self.kept.book.is_empty().then(|| {
            let mut book = PinBook::default();
            first_use(surface).pin_in(&mut book, Timestamp::default(), NOBODY);
            book
        });
        let book = trusted.as_ref().unwrap_or(&self.kept.book);
        shaped_handshake(result, book, surface, &self.settings, self.mode)
    }

    /// Shows the client as much of a handshake as was accepted.
    pub(super) fn show_handshake(
        &mut self,
        envelope: &Envelope<'_>,
        result: &[u8],
        out: &mut Vec<Action>,
    ) {
        let text = String::from_utf8_lossy(result);
        let Some(surface) = handshake_surface(&text) else {
            let error = r#"{"code":-32011,"message":"○ holdpoint — the server's handshake is invalid or ambiguous"}"#;
            let message = with_member(envelope.raw, "result", None);
            let message = with_member(&message, "error", Some(error.as_bytes()));
            out.push(Action::ToClient(message.into()));
            return;
        };
        let shaped = self.shaped(result, &surface);
        let is_same = self.greeting.text() == Some(&*text);
        self.greeting = Greeting::Whole(text.into());
        self.is_unjudged |= !is_same;
        let message = match shaped == result {
            true => envelope.raw.to_vec(),
            false => with_member(envelope.raw, "result", Some(&shaped)),
        };
        out.push(Action::ToClient(message.into()));
    }

    fn surface(&mut self) -> Surface {
        let mut reader = SurfaceReader::default();
        if let Some(handshake) = self.greeting.text() {
            // What cannot be read was not taken over.
            let _ = reader.handshake(handshake);
        }
        self.lists.read_into(&mut reader);
        reader.finish()
    }

    /// Judges what was fetched, if it is news. Pins have to be written before anything goes on.
    pub(super) fn take_in(&mut self, now: i64, out: &mut Vec<Action>) {
        if self.is_unjudged || self.judgement.is_none() {
            self.judge(now, out);
        }
        if self.unsaved.is_none() {
            self.release(now, out);
        }
    }

    pub(super) fn judge(&mut self, now: i64, out: &mut Vec<Action>) {
        let at = Timestamp(now);
        let mut surface = self.surface();
        let auto_pins = self.kept.auto_pins_today(at);
        // What this session cannot see is neither changed nor gone.
        let is_seen = |entry_type| self.greeting.tells_of(entry_type);
        for hidden in [EntryType::Identity, EntryType::Instructions] {
            if !is_seen(hidden) {
                surface.remove(hidden);
            }
        }
        let mut whole = self.unsaved.take().unwrap_or_else(|| self.kept.book.clone());
        // A list that cannot be read now is not one without entries: what it has would pass for added later. So nothing is
        // pinned then, not even what the server says of itself as a whole.
        let is_first = whole.is_empty();
        let can_pin = !is_first || surface.unreadable().is_empty();
        if is_first && can_pin {
            let seen = first_use(&surface);
            self.compared.note(&seen);
            seen.pin_in(&mut whole, at, NOBODY);
        }
        let mut book = whole.clone();
        book.retain(|id| is_seen(id.entry_type));
        let TakenIn { judgement, repinned, .. } = take_in(
            ServerStatus::Verified,
            &mut book,
            &surface,
            &self.settings,
            auto_pins,
            &mut self.compared,
            can_pin.then_some(Repinning { at, by: NOBODY }),
        );
        for entry in repinned {
            whole.push(Pin { entry, basis: Basis::Auto, at, by: NOBODY.to_owned() });
        }
        self.view = View::of(&Materials {
            reviewer: Reviewer::Application,
            status: ServerStatus::Verified,
            book: &book,
            surface: &surface,
            judgement: &judgement,
            settings: &self.settings,
            mode: self.mode,
            scope: DriftScope::Tool,
            is_offered: &|_| true,
            checks_input: false,
            pages: &self.lists.pages(),
            call_rules: &self.call_rules,
        });
        self.judgement = Some(judgement);
        self.is_unjudged = false;
        if whole != self.kept.book {
            out.push(Action::Save);
            self.unsaved = Some(whole);
        }
    }

    /// The pins that are to be written, as a document. Nothing goes on before [`Session::saved`] says that they are.
    pub fn pins(&self, now: i64) -> Option<String> {
        let revision = self.kept.revision.saturating_add(1);
        let book = self.unsaved.as_ref()?;
        Some(pins::document(book, revision, &self.server, Timestamp(now)))
    }

    /// The pins were written: what waited for that goes on.
    pub fn saved(&mut self, now: i64) -> Option<String> {
        let mut out = Vec::new();
        if let Some(book) = self.unsaved.take() {
            self.kept = Kept { book, revision: self.kept.revision.saturating_add(1) };
        }
        if self.judgement.is_some() && !self.lists.is_asking() {
            self.release(now, &mut out);
        }
        text_of(&out)
    }

    /// The pins could not be written. What rests on them is not used: what waits is refused, and the lists are judged again.
    pub fn unsaved(&mut self) -> Option<String> {
        let mut out = Vec::new();
        self.end_listings(Fault::Unsaved, "the pins could not be written", &mut out);
        self.judgement = None;
        self.unsaved = None;
        text_of(&out)
    }

    /// The store has other pins: another process wrote them. What this one made and did not write is forgotten.
    pub fn load(&mut self, pins: &str, now: i64) -> Result<Option<String>, PinsError> {
        self.kept = Kept::read(pins, &self.server)?;
        self.unsaved = None;
        let mut out = Vec::new();
        if self.judgement.take().is_some() && !self.lists.is_asking() {
            self.take_in(now, &mut out);
        }
        Ok(text_of(&out))
    }
}
