//! What the client sees of the response to `initialize` or `server/discover`.

use super::shape::{Kept, is_plain, with_member};
use crate::judge::{SurfaceJudgement, judge_surface};
use crate::naming::shown_name;
use crate::pins::{EntryPins, PinBook};
use crate::posture::{Posture, Settings};
use crate::shown::ListMode;
use contract::names::CAPABILITIES;
use contract::surface::{EntryId, EntryType, Surface, SurfaceReader};
use envelope::members;
use serde_json::{Map, Value, json};

/// Members that are pinned, or derived from pinned ones.
const SHAPED: [&str; 4] = ["serverInfo", "capabilities", "instructions", "_meta"];
/// Members that belong to the protocol itself.
const PROTOCOL: [&str; 5] =
    ["protocolVersion", "supportedVersions", "resultType", "ttlMs", "cacheScope"];
/// The member that holds `serverInfo` in the stateless era.
const STATELESS_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The members that may be shown of an unaccepted capability.
const FLAGS: [&str; 2] = ["listChanged", "subscribe"];
/// Shown in place of a version that could carry a message.
const NO_VERSION: &[u8] = br#""unknown""#;

/// The surface that a handshake alone describes. Returns `None` if it cannot be read unambiguously.
pub fn handshake_surface(result: &str) -> Option<Surface> {
    // It must be an object, because members are looked up in it.
    members(result.as_bytes()).next()?;
    let mut reader = SurfaceReader::default();
    reader.handshake(result).ok()?;
    Some(reader.finish())
}

/// The handshake as the client sees it: the accepted instructions, name and capabilities, the
/// versions, and what the protocol itself needs. `title`, `description`, icons and everything else
/// that is not pinned are left out.
///
/// INVARIANT: except under monitor and `list = "observed"`, it contains no unaccepted text.
pub fn shaped_handshake(
    result: &[u8],
    book: &PinBook,
    surface: &Surface,
    settings: &Settings,
    mode: ListMode,
) -> Vec<u8> {
    if mode == ListMode::Observed || settings.posture == Posture::Monitor {
        return result.to_vec();
    }
    let judgement = judge_surface(book, surface, settings, 0);
    let accepted = |entry_type| accepted(book, surface, &judgement, entry_type);
    let mut shaped = Kept { as_they_are: &SHAPED, if_plain: &PROTOCOL }.of(result);
    if member(result, "instructions").is_some() {
        let instructions = accepted(EntryType::Instructions).map(str::as_bytes);
        shaped = with_member(&shaped, "instructions", instructions);
    }
    let identity = accepted(EntryType::Identity);
    let identity = identity.map(str::as_bytes);
    if let Some(observed) = member(result, "capabilities") {
        let accepted = identity.and_then(|identity| member(identity, "capabilities"));
        let capabilities = match (identity, accepted) {
            (Some(_), accepted) => accepted.unwrap_or(b"{}").to_vec(),
            (None, _) => plain_capabilities(observed),
        };
        shaped = with_member(&shaped, "capabilities", Some(&capabilities));
    }
    let name = identity.and_then(|identity| member(identity, "name"));
    if let Some(info) = member(result, "serverInfo") {
        shaped = with_member(&shaped, "serverInfo", Some(&shaped_info(info, name)));
    }
    if let Some(metadata) = member(result, "_meta") {
        let mut kept = only(&[STATELESS_SERVER_INFO], metadata);
        if let Some(info) = member(metadata, STATELESS_SERVER_INFO) {
            kept = with_member(&kept, STATELESS_SERVER_INFO, Some(&shaped_info(info, name)));
        }
        let kept = (members(&kept).next().is_some()).then_some(kept);
        shaped = with_member(&shaped, "_meta", kept.as_deref());
    }
    shaped
}

/// The accepted instructions as text.
pub(super) fn accepted_instructions(
    book: &PinBook,
    surface: &Surface,
    judgement: &SurfaceJudgement,
) -> Option<Box<str>> {
    let raw = accepted(book, surface, judgement, EntryType::Instructions)?;
    serde_json::from_str::<String>(raw).ok().map(Into::into)
}

/// The accepted capabilities as JSON.
pub(super) fn accepted_capabilities(
    book: &PinBook,
    surface: &Surface,
    judgement: &SurfaceJudgement,
) -> Option<Box<str>> {
    let identity = accepted(book, surface, judgement, EntryType::Identity)?;
    let capabilities = member(identity.as_bytes(), "capabilities")?;
    std::str::from_utf8(capabilities).ok().map(Into::into)
}

/// The accepted definition of an entry that exists once per server: the current one, or else an
/// earlier one.
fn accepted<'a>(
    book: &'a PinBook,
    surface: &'a Surface,
    judgement: &SurfaceJudgement,
    entry_type: EntryType,
) -> Option<&'a str> {
    let id = EntryId::only(entry_type);
    let is_trusted = book.lost.is_none() && !book.tampered.contains_key(&id);
    let pins = book.get(&id).filter(|_| is_trusted);
    let observed = surface.entry(&id).filter(|observed| {
        let judged = judgement.entries.iter().find(|judged| judged.id == id);
        let is_approved =
            pins.is_some_and(|pins| pins.approved_with(observed.entry_hash()).is_some());
        is_approved || judged.is_some_and(|judged| judged.is_accepted)
    });
    let pinned = || pins.and_then(EntryPins::accepted).map(|pin| pin.entry.raw());
    observed.map(contract::surface::Entry::raw).or_else(pinned)
}

/// `serverInfo` with only its name and version. An unaccepted name is shown as refusals show a new
/// name.
fn shaped_info(info: &[u8], accepted_name: Option<&[u8]>) -> Vec<u8> {
    let mut shaped = only(&["name", "version"], info);
    if let Some(observed) = member(info, "name") {
        let new = || {
            let name: Option<String> = serde_json::from_slice(observed).ok();
            json!(shown_name(&name.unwrap_or_default(), false)).to_string().into_bytes()
        };
        let name = accepted_name.map_or_else(new, <[u8]>::to_vec);
        shaped = with_member(&shaped, "name", Some(&name));
    }
    if member(info, "version").is_some_and(|version| !is_plain(version)) {
        shaped = with_member(&shaped, "version", Some(NO_VERSION));
    }
    shaped
}

/// The capabilities that the protocol defines, with only their flags.
fn plain_capabilities(observed: &[u8]) -> Vec<u8> {
    let plain = |value: &[u8]| -> Value {
        let flags = members(value).filter(|(name, _)| FLAGS.contains(&name.as_ref()));
        let flags = flags.filter_map(|(name, value)| {
            Some((name.into_owned(), Value::Bool(serde_json::from_slice(value).ok()?)))
        });
        Value::Object(flags.collect())
    };
    let is_known =
        |name: &str| CAPABILITIES.contains(&name) && !matches!(name, "extensions" | "experimental");
    let known = members(observed).filter(|(name, _)| is_known(name));
    let known: Map<String, Value> =
        known.map(|(name, value)| (name.into_owned(), plain(value))).collect();
    Value::Object(known).to_string().into_bytes()
}

fn only(names: &[&str], object: &[u8]) -> Vec<u8> {
    Kept { as_they_are: names, if_plain: &[] }.of(object)
}

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    members(object).find(|(known, _)| known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_info_is_a_name_and_a_version() {
        let check = |info: &str, accepted: Option<&str>, expected: &str| {
            let shaped = shaped_info(info.as_bytes(), accepted.map(str::as_bytes));
            assert_eq!(String::from_utf8(shaped).unwrap(), expected, "{info}");
        };
        let plain = r#"{ "name": "far", "version": "1.2.0-rc.1" }"#;
        check(plain, Some(r#""far""#), plain);
        check(
            r#"{"name":"far","title":"Do","version":"1","icons":[]}"#,
            Some(r#""far""#),
            r#"{"name":"far","version":"1"}"#,
        );
        check(
            r#"{"name":"other","version":"1"}"#,
            Some(r#""far""#),
            r#"{"name":"far","version":"1"}"#,
        );
        check(
            r#"{"name":"new","version":"do this"}"#,
            None,
            r#"{"name":"new","version":"unknown"}"#,
        );
        let shaped = shaped_info(br#"{"name":"all is well, go on"}"#, None);
        assert!(!String::from_utf8(shaped).unwrap().contains("well"));
    }

    #[test]
    fn capabilities_that_nobody_accepted_are_the_known_ones_with_their_flags() {
        let said = br#"{"tools":{"listChanged":true,"note":"smuggled"},"experimental":{"smuggled":{}},"tasks":{"list":{}},"smuggled":{}}"#;
        let plain = String::from_utf8(plain_capabilities(said)).unwrap();
        assert_eq!(plain, r#"{"tools":{"listChanged":true},"tasks":{}}"#);
    }
}
