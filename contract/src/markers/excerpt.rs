//! The piece of a text that is shown with a marker, with whatever a terminal or a reader would not show escaped.

use super::MAX_EXCERPT;
use super::hidden::is_invisible;

/// How many bytes after the place are shown with it.
const AFTER: usize = 40;

/// At most [`MAX_EXCERPT`] characters of a text: a place in it and a little of what follows.
pub(super) fn excerpt(text: &str, start: usize, end: usize) -> String {
    let start = floor_boundary(text, start);
    let end = floor_boundary(text, end.saturating_add(AFTER)).max(start);
    let mut out = String::new();
    let mut length = 0;
    for character in text.get(start..end).unwrap_or("").chars() {
        let shown = Shown::of(character);
        if length + shown.length() > MAX_EXCERPT - 1 {
            out.push('…');
            break;
        }
        length += shown.length();
        shown.push_to(&mut out);
    }
    out
}

/// The nearest character boundary at or before an offset.
pub(super) fn floor_boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

enum Shown {
    AsIs(char),
    Space,
    Escaped(String),
}

impl Shown {
    fn of(character: char) -> Shown {
        match character {
            '\n' | '\r' | '\t' => Shown::Space,
            _ if character.is_control() || is_invisible(character) => {
                Shown::Escaped(format!("\\u{{{:x}}}", u32::from(character)))
            }
            _ => Shown::AsIs(character),
        }
    }

    fn length(&self) -> usize {
        match self {
            Shown::AsIs(_) | Shown::Space => 1,
            Shown::Escaped(text) => text.len(),
        }
    }

    fn push_to(self, out: &mut String) {
        match self {
            Shown::AsIs(character) => out.push(character),
            Shown::Space => out.push(' '),
            Shown::Escaped(text) => out.push_str(&text),
        }
    }
}
