//! The id of a server, made from the host and the server's name, so that it stays the same when the
//! entry is edited.

use crate::table::{HOSTS, OTHER};
use sha2::{Digest, Sha256};

/// The longest id that Holdpoint accepts.
pub const MAX_ID: usize = 64;
const DIGITS: usize = 6;

/// Creates an id. If the name alone is not unique, or cannot be used unchanged, digits of a hash
/// are appended.
///
/// `apart` distinguishes it from other servers with the same name: the project or file that it
/// belongs to.
pub(crate) fn server_id(host: &str, name: &str, apart: Option<&str>) -> String {
    let slug = slug(name);
    let room = MAX_ID.saturating_sub(host.len() + 1 + 1 + DIGITS);
    let short: String = slug.chars().take(room).collect();
    let short = short.trim_end_matches(['-', '.', '_']);
    let short = if short.is_empty() { "server" } else { short };
    if apart.is_none() && short == name {
        return format!("{host}.{short}");
    }
    let identity = format!("{}\0{name}", apart.unwrap_or_default());
    let digits: String =
        hex::encode(Sha256::digest(identity.as_bytes())).chars().take(DIGITS).collect();
    format!("{host}.{short}-{digits}")
}

/// Whether an id looks like one created here.
pub(crate) fn is_given(id: &str) -> bool {
    let is_of = |host: &str| id.strip_prefix(host).is_some_and(|rest| rest.starts_with('.'));
    HOSTS.iter().chain([&OTHER]).any(|host| is_of(host.id))
}

/// Converts to lower case and to the characters allowed in an id, without consecutive `_`.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.to_lowercase().chars() {
        let c = if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
        if !(slug.ends_with(c) && matches!(c, '_' | '-')) {
            slug.push(c);
        }
    }
    slug.trim_matches(['-', '.', '_']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_id(id: &str) -> bool {
        let mut chars = id.chars();
        chars.next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            && id.len() <= MAX_ID
            && !id.contains("__")
            && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c))
    }

    #[test]
    fn a_plain_name_is_kept_as_it_is() {
        assert_eq!(server_id("cursor", "files", None), "cursor.files");
        assert_eq!(server_id("cursor", "my_files-2.0", None), "cursor.my_files-2.0");
    }

    #[test]
    fn an_id_that_was_made_here_is_told_from_one_that_a_person_chose() {
        for host in HOSTS.iter().chain([&OTHER]) {
            assert!(is_given(&server_id(host.id, "files", None)));
            assert!(is_given(&server_id(host.id, "", Some("apart"))));
            assert!(!is_given(host.id));
        }
        for chosen in ["files", "npx-0a1b2c", "my.cursor.files", "cursors.files", ""] {
            assert!(!is_given(chosen), "{chosen}");
        }
    }

    #[test]
    fn names_that_look_alike_stay_apart() {
        let names =
            ["Files", "files ", "FILES", "files!", "fi__les", "fi_les", "", "_", "дом", "家"];
        let ids: std::collections::BTreeSet<String> =
            names.iter().map(|name| server_id("cursor", name, None)).collect();
        assert_eq!(ids.len(), names.len(), "{ids:?}");
        assert!(ids.iter().all(|id| is_id(id)), "{ids:?}");
    }

    #[test]
    fn one_name_in_two_projects_is_two_servers() {
        let one = server_id("claude-code", "files", Some("/home/ada/one"));
        let two = server_id("claude-code", "files", Some("/home/ada/two"));
        assert_ne!(one, two);
        assert_ne!(one, server_id("claude-code", "files", None));
        assert!(one.starts_with("claude-code.files-") && is_id(&one));
    }

    #[test]
    fn an_id_is_never_longer_than_the_limit() {
        for length in [40, 56, 57, 58, 64, 200] {
            let id = server_id("cursor", &"a".repeat(length), None);
            assert!(is_id(&id), "{id}");
        }
        let longest = crate::table::HOSTS.iter().map(|host| host.id.len()).max().unwrap();
        assert!(is_id(&server_id(&"h".repeat(longest), &"b".repeat(500), Some("x"))));
    }

    #[test]
    fn every_host_begins_an_id() {
        for host in crate::table::HOSTS {
            assert!(is_id(&server_id(host.id, "a", None)), "{}", host.id);
        }
    }
}
