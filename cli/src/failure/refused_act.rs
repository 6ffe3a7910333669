//! Explains to a person why an act was refused, and what to type next.

use super::Failure;
use crate::screen;
use crate::server_text;
use crate::target::near;
use contract::surface::EntryId;
use engine::acts::{ActError, Among};
use gate::server::ServerId;
use gate::status::NotAllowed;
use std::borrow::Cow;

/// The most entries that are listed for an unknown name.
const MAX_LISTED: usize = 8;

impl From<ActError> for Failure {
    fn from(error: ActError) -> Failure {
        match error {
            ActError::Store(error) => error.into(),
            ActError::Observation(error) => error.into(),
            ActError::Receipts(error) => error.into(),
            ActError::UnknownServer { id, known } => unknown_server(&id, &known),
            ActError::UnknownEntry { ref key, among, ref known, .. } => {
                unknown_entry(&error.to_string(), key, among, known)
            }
            ActError::AmbiguousEntry { ref key } => {
                Failure::usage(format!("{error}: say `tool:{key}` or the like"))
            }
            ActError::NotAllowed { source: NotAllowed::NotQuarantined, .. }
            | ActError::Unpinned { .. }
            | ActError::OnlyPin { .. }
            | ActError::Nameless(_)
            | ActError::NoReason
            | ActError::NotQuarantined(_)
            | ActError::NotAServerId(_) => Failure::usage(error),
            ActError::NotAllowed { .. }
            | ActError::NothingWaits { .. }
            | ActError::DoesNotWait { .. }
            | ActError::DamagedPins { .. }
            | ActError::NeedsConsent => Failure::held(error),
            ActError::UnreadableSurface { ref server } => {
                Failure::held(format!("{error}: `holdpoint check {server}` checks again"))
            }
            ActError::OtherHash { ref server } => Failure::held(format!(
                "{error}: review them again with `holdpoint review {server}`, then decide"
            )),
            ActError::PartOfFirst { ref server } => Failure::held(format!(
                "{error}: `holdpoint review {server}` shows them, with the hash that approves them"
            )),
            ActError::UnreadableList { list, ref reason } => {
                let reason = server_text::on_standard_output(false).unreadable(reason);
                Failure::unreadable(format!(
                    "`{}` cannot be read: {reason}; nothing was pinned",
                    list.method()
                ))
            }
        }
    }
}

fn unknown_server(id: &ServerId, known: &[ServerId]) -> Failure {
    let ids: Vec<&str> = known.iter().map(ServerId::as_str).collect();
    let guess = near(id.as_str(), &ids).map(|meant| format!("did you mean `{meant}`? "));
    Failure::usage(format!(
        "no server `{id}` is known here: {}`holdpoint status` lists those that are",
        guess.unwrap_or_default()
    ))
}

/// Names the entry that was probably meant, or else lists the possible ones.
fn unknown_entry(words: &str, key: &str, among: Among, known: &[EntryId]) -> Failure {
    let what = match among {
        Among::Waiting => "waits",
        Among::Pinned => "is pinned",
    };
    let text = server_text::on_standard_output(false);
    let is_accepted = match among {
        Among::Waiting => false,
        Among::Pinned => true,
    };
    let shown: Vec<Cow<'_, str>> =
        known.iter().map(|entry| text.name(&entry.key, is_accepted)).collect();
    let typed: Vec<String> = known
        .iter()
        .zip(&shown)
        .map(|(entry, name)| format!("{}:{name}", entry.entry_type))
        .collect();
    let mut names: Vec<&str> = shown.iter().map(|name| &**name).collect();
    names.extend(typed.iter().map(String::as_str));
    let end = match near(key, &names) {
        Some(meant) => format!("did you mean `{}`?", screen::name(meant)),
        None if known.is_empty() => format!("nothing of it {what}"),
        None => {
            let shown = typed.iter().take(MAX_LISTED);
            let list: Vec<String> = shown.map(|name| format!("`{}`", screen::name(name))).collect();
            let more = known.len().saturating_sub(MAX_LISTED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("this {what}: {}{more}", list.join(", "))
        }
    };
    Failure::usage(format!("{words}: {end}"))
}
