//! The text of the notice that a server was added to a host.

use crate::screen;

/// Longer names are cut to fit a notice.
const MAX_NAME: usize = 60;

/// The text about an added server.
pub(crate) fn sentence(name: &str, host: &str, is_wired: bool) -> String {
    let shown: String = screen::readable(name).chars().take(MAX_NAME).collect();
    if is_wired {
        format!("`{shown}` was added to {host} and is guarded now; restart {host}")
    } else {
        format!("`{shown}` was added to {host} and is not guarded: holdpoint wire")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_cannot_hide_anything() {
        let long = sentence(&"x".repeat(MAX_NAME + 1), "Cursor", false);
        assert!(long.contains(&format!("`{}`", "x".repeat(MAX_NAME))), "{long}");
        let whole = sentence(&"x".repeat(MAX_NAME), "Cursor", true);
        assert!(whole.contains(&format!("`{}`", "x".repeat(MAX_NAME))), "{whole}");
        assert!(!sentence("a\u{202e}b\u{1b}", "Cursor", false).contains(['\u{202e}', '\u{1b}']));
    }
}
