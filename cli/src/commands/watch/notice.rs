//! A desktop notification, if there is a desktop. A failure to show it is ignored: the line on standard
//! output, `status` and `doctor` say the same.

use crate::screen;
use std::process::{Command, Stdio};

/// Longer names are cut: a notice is small.
const MAX_NAME: usize = 60;
const TITLE: &str = "Holdpoint";

/// The text comes in as an argument: what a server is called must not become part of a script.
const APPLE_SCRIPT: &str =
    "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";

pub(crate) fn show(sentence: &str) {
    let mut command = if cfg!(target_os = "macos") {
        let mut command = Command::new("osascript");
        command.args(["-e", APPLE_SCRIPT, "--", TITLE, sentence]);
        command
    } else {
        let mut command = Command::new("notify-send");
        command.args(["--app-name", TITLE, "--", TITLE, &without_markup(sentence)]);
        command
    };
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Both programs exit at once. One that does not is not waited for.
    let _ = command.spawn().map(|mut child| std::thread::spawn(move || child.wait()));
}

/// The text about an added server.
pub(crate) fn sentence(name: &str, host: &str, is_wired: bool) -> String {
    let shown: String = screen::readable(name).chars().take(MAX_NAME).collect();
    if is_wired {
        format!("`{shown}` was added to {host} and is guarded now; restart {host}")
    } else {
        format!("`{shown}` was added to {host} and is not guarded: holdpoint wire")
    }
}

/// Desktops read a little markup in the body of a notice.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
        assert_eq!(without_markup("<b>&"), "&lt;b&gt;&amp;");
    }
}
