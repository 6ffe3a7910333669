//! Reads bun's text lockfile: `"name": ["name@version", "registry", {…}, "sha512-…"]`, keyed by the
//! packages around each one.

use super::place::{Keeper, Place};
use super::{Manifest, RecordError, Recorded, integrity, split_version};
use contract::json::{Document, Node};

pub(super) fn read(
    bytes: &[u8],
    place: &Place,
    manifest: &Manifest,
) -> Result<Recorded, RecordError> {
    let plain = without_trailing_commas(bytes);
    let document = Document::parse_bytes(&plain)?;
    let packages = document.root().get("packages").filter(|packages| packages.is_object());
    let packages = packages.ok_or(RecordError::UnknownForm)?;
    if let Some(patched) = document.root().get("patchedDependencies") {
        if !patched.is_object() {
            return Err(RecordError::UnknownForm);
        }
        let is_patch_of = |key: &str| {
            let rest = key.strip_prefix(manifest.name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
        };
        if patched.members().filter_map(|(key, _)| key.as_str()).any(|key| is_patch_of(&key)) {
            return Err(RecordError::Patched);
        }
    }
    match place.stored() {
        None => {
            let entry = packages.get(&place.names().join("/")).ok_or(RecordError::NotThere)?;
            entry_of(entry, place)
        }
        Some(stored) => {
            let is_named = stored.by == Keeper::Bun
                && place.names().len() == 1
                && stored.is_of(&manifest.name, &manifest.version);
            if !is_named {
                return Err(RecordError::NotThere);
            }
            stored_entry(packages, place, manifest)
        }
    }
}

/// The entry of a package in a given version. If it is used in several places, all entries must be
/// identical.
fn stored_entry(
    packages: Node<'_>,
    place: &Place,
    manifest: &Manifest,
) -> Result<Recorded, RecordError> {
    let label = format!("{}@{}", manifest.name, manifest.version);
    let entries = packages.members().map(|(_, entry)| entry);
    let mut entries =
        entries.filter(|entry| entry.items().next().is_some_and(|first| first.is_text(&label)));
    let found = entry_of(entries.next().ok_or(RecordError::NotThere)?, place)?;
    for other in entries {
        if entry_of(other, place)? != found {
            return Err(RecordError::UnknownEntry);
        }
    }
    Ok(found)
}

fn entry_of(entry: Node<'_>, place: &Place) -> Result<Recorded, RecordError> {
    let parts: Vec<Node<'_>> = entry.items().take(5).collect();
    // Packages from a folder, an archive or a repository have another form, without a digest of a
    // registry's archive.
    let [label, _, more, digest] = parts.as_slice() else { return Err(RecordError::UnknownEntry) };
    // A package bundled with another one never had an archive of its own.
    if !more.is_object() || more.get("bundled").is_some() {
        return Err(RecordError::UnknownEntry);
    }
    let (Some(label), Some(digest)) = (label.as_str(), digest.as_str()) else {
        return Err(RecordError::UnknownEntry);
    };
    let (name, version) = split_version(&label).ok_or(RecordError::UnknownEntry)?;
    if name != place.name() {
        return Err(RecordError::OtherName { recorded: name.to_owned() });
    }
    Ok(Recorded { version: version.to_owned(), integrity: integrity(&digest)? })
}

/// bun writes a comma after the last member. The rest is JSON, which the strict reader handles.
fn without_trailing_commas(bytes: &[u8]) -> Vec<u8> {
    let mut plain = bytes.to_vec();
    let (mut is_text, mut is_escaped) = (false, false);
    // The position of the last comma, if only white space followed it and a value preceded it.
    let mut comma: Option<usize> = None;
    let mut before = b'[';
    for (at, byte) in bytes.iter().copied().enumerate() {
        if is_text {
            (is_text, is_escaped) = (is_escaped || byte != b'"', !is_escaped && byte == b'\\');
            continue;
        }
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'"' => is_text = true,
            b',' => comma = (!matches!(before, b'[' | b'{' | b',' | b':')).then_some(at),
            b'}' | b']' => {
                if let Some(place) = comma.and_then(|at| plain.get_mut(at)) {
                    *place = b' ';
                }
            }
            _ => {}
        }
        if byte != b',' {
            comma = None;
        }
        before = byte;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::without_trailing_commas;

    #[test]
    fn only_a_comma_after_the_last_member_goes() {
        for (text, expected) in [
            (r#"{"a":[1,2,],}"#, r#"{"a":[1,2 ] }"#),
            ("[1 , \n]", "[1   \n]"),
            (r#"[",]", "\",]",]"#, r#"[",]", "\",]" ]"#),
            (r#"["\\",]"#, r#"["\\" ]"#),
            ("[,]", "[,]"),
            ("{,}", "{,}"),
            ("[1,,]", "[1,,]"),
            (r#"{"a":,}"#, r#"{"a":,}"#),
            (",]", ",]"),
            ("", ""),
        ] {
            let plain = without_trailing_commas(text.as_bytes());
            assert_eq!(String::from_utf8(plain).unwrap(), expected, "{text}");
        }
    }
}
