//! Reads npm's records: `packages`, keyed by the folder of each package.

use super::place::Place;
use super::{RecordError, Recorded, integrity, is_plain};
use contract::json::{Document, Node};

pub(super) fn read(bytes: &[u8], place: &Place) -> Result<Recorded, RecordError> {
    let document = Document::parse_bytes(bytes)?;
    let packages = document.root().get("packages").filter(|packages| packages.is_object());
    let packages = packages.ok_or(RecordError::UnknownForm)?;
    let entry = packages.get(place.folder()).ok_or(RecordError::NotThere)?;
    // The entry has a name different from the folder's: the package is installed under an alias.
    let name = entry.get("name").and_then(Node::as_str);
    if let Some(name) = name.filter(|name| name != place.name()) {
        return Err(RecordError::OtherName { recorded: name.into_owned() });
    }
    if entry.get("link").is_some() {
        return Err(RecordError::UnknownEntry);
    }
    let text = |member| entry.get(member).and_then(Node::as_str);
    let version = text("version").filter(|version| is_plain(version));
    let version = version.ok_or(RecordError::UnknownEntry)?.into_owned();
    let integrity = integrity(&text("integrity").ok_or(RecordError::NoIntegrity)?)?;
    Ok(Recorded { version, integrity })
}
