//! Anchors a server's identity to a signer. A different attested id or signer is then a different
//! identity.

use contract::surface::{Anchor, Entry, EntryId, EntryType, Surface};
use gate::pins::PinBook;

/// Anchors the identity in a surface to the signer that vouches for the server. Without one it
/// keeps the pinned anchor: whether that is sufficient is decided by admission, not by the drift
/// check.
pub(crate) fn anchor(surface: &mut Surface, vouched: Option<Anchor>, book: &PinBook) {
    let pinned = || pinned_identity(book).and_then(Anchor::of);
    if let Some(anchor) = vouched.or_else(pinned) {
        // The identity was parsed from text before, so parsing it again succeeds.
        let _ = surface.anchor_to(&anchor);
    }
}

/// If the pinned identity has no anchor, the current identity anchored to the signer that vouches
/// for the server now. Gaining a first anchor does not count as a change; the rest of the identity
/// is judged as usual.
pub(crate) fn newly_anchored(book: &PinBook, surface: &Surface) -> Option<Entry> {
    let anchor = surface.anchor()?;
    let pinned = pinned_identity(book)?;
    if Anchor::of(pinned).is_some() {
        return None;
    }
    let mut anchored = Surface::default();
    anchored.insert(pinned.clone());
    anchored.anchor_to(&anchor).ok()?;
    anchored.entry(pinned.id()).cloned()
}

fn pinned_identity(book: &PinBook) -> Option<&Entry> {
    let id = EntryId::only(EntryType::Identity);
    let is_trusted = book.lost.is_none() && !book.tampered.contains_key(&id);
    let pins = book.get(&id).filter(|_| is_trusted)?;
    pins.accepted().map(|pin| &pin.entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::surface::read_capture;
    use gate::pins::{Basis, Pin};
    use gate::time::Timestamp;

    fn signer(signer: &str) -> Anchor {
        Anchor { attested_id: "mcp.mail".to_owned(), signer: signer.to_owned() }
    }

    fn seen() -> Surface {
        read_capture(br#"{"serverInfo":{"name":"mail","version":"1"}}"#).unwrap()
    }

    fn pinned(anchor: Option<&str>) -> PinBook {
        let mut surface = seen();
        if let Some(anchor) = anchor {
            surface.anchor_to(&signer(anchor)).unwrap();
        }
        let mut book = PinBook::default();
        for entry in surface.entries().cloned() {
            let (basis, at, by) = (Basis::Person, Timestamp(0), "ada".to_owned());
            book.push(Pin { entry, basis, at, by });
        }
        book
    }

    #[test]
    fn who_vouches_now_goes_before_the_pinned_signer() {
        for (vouched, pin, expected) in [
            (None, None, None),
            (None, Some("a"), Some("a")),
            (Some("b"), None, Some("b")),
            (Some("b"), Some("a"), Some("b")),
        ] {
            let mut surface = seen();
            anchor(&mut surface, vouched.map(signer), &pinned(pin));
            assert_eq!(surface.anchor(), expected.map(signer), "{vouched:?} {pin:?}");
        }
    }

    #[test]
    fn pins_that_cannot_be_trusted_anchor_nothing() {
        let mut surface = seen();
        let mut lost = pinned(Some("a"));
        lost.lost = Some("older copy".to_owned());
        anchor(&mut surface, None, &lost);
        assert_eq!(surface.anchor(), None);
    }

    #[test]
    fn only_an_identity_without_an_anchor_gains_one() {
        let mut surface = seen();
        assert_eq!(newly_anchored(&pinned(None), &surface), None);
        surface.anchor_to(&signer("b")).unwrap();
        let gained = newly_anchored(&pinned(None), &surface);
        assert_eq!(gained.as_ref().and_then(Anchor::of), Some(signer("b")));
        assert_eq!(newly_anchored(&pinned(Some("a")), &surface), None);
    }
}
