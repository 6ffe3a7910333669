//! Orders a package's releases by their version numbers.
//!
//! The publication date cannot be used: a mirror reports when it first fetched a release, and a fix
//! for an old version may be published after a newer version.

use std::cmp::Ordering;

/// Compares two versions as npm and PyPI number them. Previews are not supported: the crawler
/// leaves them out.
pub fn compare(a: &str, b: &str) -> Ordering {
    key(a).cmp(&key(b)).then_with(|| a.cmp(b))
}

/// The epoch (`1!2.0`), the numbers without trailing zeros, and the number of a post-release
/// (`2.0.post1`).
fn key(version: &str) -> (u64, Vec<u64>, Option<u64>) {
    let public = version.split('+').next().unwrap_or_default();
    let (epoch, public) = public.split_once('!').unwrap_or(("0", public));
    let (mut numbers, mut post) = (Vec::new(), None);
    for part in public.split(['.', '-', '_']) {
        match part.strip_prefix("post") {
            Some(digits) => post = Some(number(digits)),
            None => numbers.push(number(part)),
        }
    }
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    (number(epoch), numbers, post)
}

/// A part that is not a number counts as 0; one too large for the type counts as the maximum.
fn number(text: &str) -> u64 {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().unwrap_or(u64::MAX) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_by_their_numbers() {
        let sorted = [
            "0.9",
            "0.10.0",
            "1.0",
            "1.0.post1",
            "1.0.post10",
            "1.0.1",
            "1.9.9",
            "1.10.0",
            "2025.9.25",
            "2025.11.25",
            "2026.8.31",
            "99999999999999999999999.0",
            "1!0.1",
        ];
        for (at, version) in sorted.iter().enumerate() {
            for later in &sorted[at + 1..] {
                assert_eq!(compare(version, later), Ordering::Less, "{version} {later}");
                assert_eq!(compare(later, version), Ordering::Greater, "{later} {version}");
            }
        }
    }

    #[test]
    fn versions_with_equal_numbers_sort_by_their_text() {
        assert_eq!(compare("1.0", "1.0.0"), Ordering::Less);
        assert_eq!(compare("1.0+a", "1.0+b"), Ordering::Less);
        assert_eq!(compare("1.0", "1.0"), Ordering::Equal);
    }
}
