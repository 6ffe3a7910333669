//! Opens an address in the user's browser, without a shell.

use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Opens an address. Returns whether there is a browser to try. Whether the browser shows the page
/// is not checked.
pub(super) fn open(url: &str) -> bool {
    // INVARIANT: text that a server chose reaches a program only as the address of a web page.
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        return false;
    }
    let Some(words) = words(url, |name| std::env::var_os(name).filter(|value| !value.is_empty()))
    else {
        return false;
    };
    let Some((program, arguments)) = words.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            std::thread::spawn(move || child.wait());
            true
        }
        Err(_) => false,
    }
}

/// The command that opens an address on this system; `None` without a screen.
fn words(url: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<Vec<OsString>> {
    if let Some(browser) = variable("BROWSER") {
        // `$BROWSER` may list several programs; the first is the preferred one.
        let browser = browser.to_string_lossy().into_owned();
        let first = browser.split(':').next().unwrap_or_default();
        let mut words: Vec<OsString> = first.split_whitespace().map(OsString::from).collect();
        match words.iter().position(|word| word == "%s") {
            Some(at) => *words.get_mut(at)? = url.into(),
            None => words.push(url.into()),
        }
        return Some(words);
    }
    let words: &[&str] = if cfg!(target_os = "macos") {
        &["open", url]
    } else if cfg!(windows) {
        &["rundll32", "url.dll,FileProtocolHandler", url]
    } else if ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| variable(name).is_some()) {
        &["xdg-open", url]
    } else {
        return None;
    };
    Some(words.iter().map(OsString::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(set: &[(&str, &str)]) -> Option<String> {
        let variable = |name: &str| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        let words = words("https://a.example/?x=$(id)&y=1", variable)?;
        Some(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" | "))
    }

    #[test]
    fn an_address_is_one_word_of_the_browser_that_the_person_names() {
        let url = "https://a.example/?x=$(id)&y=1";
        assert_eq!(
            shown(&[("BROWSER", "fire --new %s")]).unwrap(),
            format!("fire | --new | {url}")
        );
        assert_eq!(shown(&[("BROWSER", "one:two")]).unwrap(), format!("one | {url}"));
        #[cfg(all(unix, not(target_os = "macos")))]
        {
            assert_eq!(shown(&[("DISPLAY", ":0")]).unwrap(), format!("xdg-open | {url}"));
            assert_eq!(shown(&[]), None);
        }
    }

    #[test]
    fn only_addresses_of_pages_are_opened() {
        for url in ["file:///etc/passwd", "javascript:alert(1)", "--help", "mailto:a@b"] {
            assert!(!open(url), "{url}");
        }
    }
}
