//! What a verified attestation adds to a server's identity: the id it is vouched for under, and by whom. Nothing that a
//! server says of itself can put it there.

use super::{Entry, EntryId, EntryType, Surface};
use crate::json::{Document, ReadError, escape_into};

const ATTESTED_ID: &str = "attestedId";
const SIGNER: &str = "signer";
/// The member of a recorded surface that has the anchor.
pub(super) const RECORDED: &str = "attested";

/// The identity of a server according to its attestation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    pub attested_id: String,
    /// The signer's name and key.
    pub signer: String,
}

impl Anchor {
    /// The anchor in an identity, where it has one.
    pub fn of(identity: &Entry) -> Option<Anchor> {
        let document = Document::parse(identity.raw()).ok()?;
        let text = |member| Some(document.root().get(member)?.as_str()?.into_owned());
        Some(Anchor { attested_id: text(ATTESTED_ID)?, signer: text(SIGNER)? })
    }
}

impl Surface {
    /// A recorded surface as text: a capture, and the anchor, which a capture does not have.
    pub fn to_record(&self) -> String {
        let capture = self.to_capture();
        let (Some(anchor), Some(rest)) = (self.anchor(), capture.strip_suffix("\n}\n")) else {
            return capture;
        };
        let mut out = rest.to_owned().into_bytes();
        super::member_name(RECORDED, &mut out);
        let mut only = Surface::default();
        let id = EntryId::only(EntryType::Identity);
        if only.anchor_to(&anchor).is_err() {
            return capture;
        }
        out.extend(
            only.entry(&id).map(|entry| entry.raw().as_bytes().to_vec()).unwrap_or_default(),
        );
        out.extend_from_slice(b"\n}\n");
        String::from_utf8(out).unwrap_or(capture)
    }

    /// The anchor of a text that [`Surface::to_record`] made.
    pub fn recorded_anchor(record: &Document<'_>) -> Option<Anchor> {
        let anchor = record.root().get(RECORDED)?;
        Anchor::of(&Entry::from_raw(EntryId::only(EntryType::Identity), anchor.raw()).ok()?)
    }

    /// The anchor of the identity, where it has one.
    pub fn anchor(&self) -> Option<Anchor> {
        self.entry(&EntryId::only(EntryType::Identity)).and_then(Anchor::of)
    }

    /// Anchors the identity; what it says otherwise stays.
    pub fn anchor_to(&mut self, anchor: &Anchor) -> Result<(), ReadError> {
        let id = EntryId::only(EntryType::Identity);
        let mut raw = Vec::from(*b"{");
        for (member, text) in [(ATTESTED_ID, &anchor.attested_id), (SIGNER, &anchor.signer)] {
            escape_into(member, &mut raw);
            raw.push(b':');
            escape_into(text, &mut raw);
            raw.push(b',');
        }
        if let Some(identity) = self.entry(&id) {
            let document = Document::parse(identity.raw())?;
            for (name, value) in document.root().members() {
                if !name.is_text(ATTESTED_ID) && !name.is_text(SIGNER) {
                    raw.extend_from_slice(name.raw().as_bytes());
                    raw.push(b':');
                    raw.extend_from_slice(value.raw().as_bytes());
                    raw.push(b',');
                }
            }
        }
        raw.pop();
        raw.push(b'}');
        self.insert(Entry::from_raw(id, &String::from_utf8_lossy(&raw))?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::ChangeKind;
    use crate::surface::read_capture;

    fn anchor(id: &str, signer: &str) -> Anchor {
        Anchor { attested_id: id.to_owned(), signer: signer.to_owned() }
    }

    fn surface(handshake: &str) -> Surface {
        read_capture(handshake.as_bytes()).unwrap()
    }

    fn kinds(before: &Surface, after: &Surface) -> Vec<ChangeKind> {
        let id = EntryId::only(EntryType::Identity);
        let changed = crate::diff::diff_entry(before.entry(&id), after.entry(&id));
        let findings = changed.into_iter().flat_map(|changed| changed.findings);
        findings.map(|finding| finding.kind).collect()
    }

    #[test]
    fn another_id_or_signer_is_another_identity() {
        let bare = surface(r#"{"serverInfo":{"name":"mail"},"capabilities":{"tools":{}}}"#);
        let anchored = |id: &str, signer: &str| {
            let mut surface = bare.clone();
            surface.anchor_to(&anchor(id, signer)).unwrap();
            assert_eq!(surface.anchor(), Some(anchor(id, signer)));
            surface
        };
        let ours = anchored("mcp.mail", "acme 1");
        assert_eq!(kinds(&ours, &anchored("mcp.mail", "acme 1")), []);
        assert_eq!(kinds(&ours, &anchored("mcp.male", "acme 1")), [ChangeKind::IdentityChanged]);
        assert_eq!(kinds(&ours, &anchored("mcp.mail", "acme 2")), [ChangeKind::IdentityChanged]);
        assert_eq!(bare.anchor(), None);
    }

    #[test]
    fn a_recorded_surface_keeps_its_anchor() {
        for text in [r#"{"serverInfo":{"name":"mail"},"capabilities":{}}"#, "{}"] {
            let mut surface = surface(text);
            assert_eq!(surface.to_record(), surface.to_capture());
            surface.anchor_to(&anchor("mcp.mail", "acme 1")).unwrap();
            let record = surface.to_record();
            let document = Document::parse(&record).unwrap();
            assert_eq!(Surface::recorded_anchor(&document), surface.anchor());
            let mut again = read_capture(record.as_bytes()).unwrap();
            assert_eq!(again.anchor(), None);
            again.anchor_to(&anchor("mcp.mail", "acme 1")).unwrap();
            assert_eq!(again.surface_hash(), surface.surface_hash());
        }
    }

    #[test]
    fn a_server_cannot_anchor_itself() {
        let said = r#"{"serverInfo":{"name":"mail","attestedId":"mcp.mail","signer":"acme"},"capabilities":{},"attestedId":"mcp.mail","signer":"acme","attested":{"attestedId":"mcp.mail","signer":"acme"}}"#;
        assert_eq!(surface(said).anchor(), None);
    }

    #[test]
    fn a_server_that_says_nothing_of_itself_is_anchored_too() {
        let mut surface = Surface::default();
        surface.anchor_to(&anchor("a\"b", "c")).unwrap();
        assert_eq!(surface.anchor(), Some(anchor("a\"b", "c")));
    }
}
