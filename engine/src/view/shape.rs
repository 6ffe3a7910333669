//! Answers of the server with one member changed, all other bytes as they came.

use contract::json::escape_into;
use contract::surface::{EntryType, Surface};
use gate::judge::SurfaceJudgement;
use gate::pins::{EntryPins, PinBook};
use gate::posture::Posture;
use gate::shown::ListMode;
use wire::envelope::members;

/// An object with a member replaced, added or (`None`) left out.
pub fn with_member(object: &[u8], name: &str, value: Option<&[u8]>) -> Vec<u8> {
    let found = members(object).find(|(known, _)| known == name).map(|(_, span)| span);
    match (found, value) {
        (None, None) => object.to_vec(),
        (Some(span), Some(value)) => {
            let start = offset(object, span);
            let before = object.get(..start).unwrap_or_default();
            let after = object.get(start + span.len()..).unwrap_or_default();
            [before, value, after].concat()
        }
        (_, value) => {
            let kept = members(object).filter(|(known, _)| known != name);
            let mut out = Vec::with_capacity(object.len() + value.map_or(0, <[u8]>::len));
            out.push(b'{');
            for (known, span) in kept {
                push_member(&known, span, &mut out);
            }
            if let Some(value) = value {
                push_member(name, value, &mut out);
            }
            out.push(b'}');
            out
        }
    }
}

fn push_member(name: &str, value: &[u8], out: &mut Vec<u8>) {
    if out.len() > 1 {
        out.push(b',');
    }
    escape_into(name, out);
    out.push(b':');
    out.extend_from_slice(value);
}

/// Where a part of some bytes begins in them.
pub(super) fn offset(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}

/// What the client is shown of the answer to `initialize` or `server/discover`: the instructions that somebody accepted,
/// or none.
///
/// INVARIANT: but for monitor and `list = "observed"`, no instructions that nobody accepted are in it.
pub fn shaped_handshake(
    result: &[u8],
    book: &PinBook,
    surface: &Surface,
    judgement: &SurfaceJudgement,
    mode: ListMode,
) -> Vec<u8> {
    let id = super::only(EntryType::Instructions);
    let Some(observed) = surface.entry(&id) else { return result.to_vec() };
    if mode == ListMode::Observed || judgement.posture == Posture::Monitor {
        return result.to_vec();
    }
    let is_trusted = book.lost.is_none() && !book.tampered.contains_key(&id);
    let pins = book.get(&id).filter(|_| is_trusted);
    if pins.is_some_and(|pins| pins.approved_with(observed.entry_hash()).is_some()) {
        return result.to_vec();
    }
    let judged = judgement.entries.iter().find(|judged| judged.id == id);
    if judged.is_some_and(|judged| judged.is_accepted) {
        return result.to_vec();
    }
    let accepted = pins.and_then(EntryPins::accepted).map(|pin| pin.entry.raw().as_bytes());
    with_member(result, "instructions", accepted)
}
