//! Characters that a model reads and a person does not see.

use super::fold::is_combining_mark;
use super::invisible::{is_removed_in_folding, is_variation_selector, is_zero_width};
use super::letters::{TAG, UNSEEN};

/// The longest HTML comment that is let pass, in characters between its marks.
pub(super) const MAX_COMMENT: usize = 20;
/// How many zero-width characters in a row are a finding wherever they stand.
pub(super) const ZERO_WIDTH_RUN: usize = 4;

/// A place with hidden characters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hidden {
    pub(super) rule: &'static str,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The hidden characters of a text, each rule once, at its first place.
pub(super) fn find_hidden(text: &str, glance: Glance) -> Vec<Hidden> {
    let mut found = Vec::new();
    if !glance.is_plain {
        Eye::default().read(text, &mut found);
    }
    if glance.has_tag
        && let Some((start, end)) = long_comment(text)
    {
        found.push(Hidden { rule: "hidden.html-comment", start, end });
    }
    found
}

/// What the bytes of a text tell before any of them is looked at by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glance {
    /// Every byte is a character of ASCII that can be seen, or white space.
    pub(super) is_plain: bool,
    /// There is a `<`.
    pub(super) has_tag: bool,
}

impl Glance {
    /// By the [`traits`](super::letters::traits) that any byte has.
    pub(super) fn of(traits: u16) -> Glance {
        Glance { is_plain: traits & UNSEEN == 0, has_tag: traits & TAG != 0 }
    }
}

/// The first closed comment of over [`MAX_COMMENT`] characters. Where no end follows, none follows a later start either.
fn long_comment(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        let start = from + text.get(from..)?.find('<')?;
        let Some(inside) = text.get(start..)?.strip_prefix("<!--") else {
            from = start + 1;
            continue;
        };
        let comment = inside.get(..inside.find("-->")?)?;
        let end = start + "<!--".len() + comment.len() + "-->".len();
        if comment.chars().nth(MAX_COMMENT).is_some() {
            return Some((start, end));
        }
        from = end;
    }
}

/// What stands between two visible characters.
#[derive(Debug, Default)]
struct Eye {
    /// The last visible character that is not a mark on another.
    previous: Option<char>,
    /// Zero-width characters since then: where they start, how many, the first and the last.
    run: Option<Run>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    start: usize,
    length: usize,
    first: char,
    last: char,
}

impl Eye {
    fn read(mut self, text: &str, found: &mut Vec<Hidden>) {
        let mut skip_until = 0;
        for (at, character) in text.char_indices() {
            if at < skip_until {
                continue;
            }
            let end = at + character.len_utf8();
            if matches!(character, ' '..='~') {
                self.visible(character, at, found);
            } else if let Some(rule) = always_hidden(character) {
                report(found, rule, at, end);
            } else if is_zero_width(character) {
                self.zero_width(character, at, found);
            } else if !is_combining_mark(character) {
                self.visible(character, at, found);
                skip_until = end + flag_tags(character, text.get(end..).unwrap_or(""));
            }
        }
        self.run_ends(None, text.len(), found);
    }

    fn zero_width(&mut self, character: char, at: usize, found: &mut Vec<Hidden>) {
        let end = at + character.len_utf8();
        if is_variation_selector(character) {
            let follows_another = self.run.is_some_and(|run| is_variation_selector(run.last));
            let is_misplaced = matches!(character, '\u{e0100}'..='\u{e01ef}')
                && !self.previous.is_some_and(is_ideograph);
            if follows_another || is_misplaced {
                report(found, "hidden.variation-selectors", at, end);
            }
        }
        let run =
            self.run.get_or_insert(Run { start: at, length: 0, first: character, last: character });
        run.length += 1;
        run.last = character;
    }

    fn visible(&mut self, character: char, at: usize, found: &mut Vec<Hidden>) {
        self.run_ends(Some(character), at, found);
        self.previous = Some(character);
    }

    fn run_ends(&mut self, next: Option<char>, at: usize, found: &mut Vec<Hidden>) {
        let Some(run) = self.run.take() else { return };
        if run.length >= ZERO_WIDTH_RUN {
            report(found, "hidden.zero-width-run", run.start, at);
        }
        if let (Some(previous), Some(next)) = (self.previous, next)
            && previous.is_alphanumeric()
            && next.is_alphanumeric()
            && !(run.length == 1 && is_customary(previous, run.first, next))
        {
            report(found, "hidden.zero-width-in-word", run.start, at);
        } else if let (Some(previous), Some(next)) = (self.previous, next)
            && previous.is_ascii()
            && next.is_ascii()
            && run.first != '\u{ad}'
            && !is_variation_selector(run.first)
        {
            // Between ASCII characters no script and no emoji needs one.
            report(found, "hidden.zero-width-in-text", run.start, at);
        }
    }
}

fn report(found: &mut Vec<Hidden>, rule: &'static str, start: usize, end: usize) {
    if !found.iter().any(|other| other.rule == rule) {
        found.push(Hidden { rule, start, end });
    }
}

/// The rule of a character that is a finding wherever it stands.
fn always_hidden(character: char) -> Option<&'static str> {
    match character {
        '\t' | '\n' | '\r' => None,
        '\u{1b}' | '\u{9b}' => Some("hidden.ansi-escape"),
        _ if character.is_control() => Some("hidden.control-character"),
        '\u{e0000}'..='\u{e007f}' => Some("hidden.tag-characters"),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some("hidden.bidi-control")
        }
        '\u{206a}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => Some("hidden.format-character"),
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => Some("hidden.private-use"),
        _ if is_blank_letter(character) => Some("hidden.blank-letter"),
        _ => None,
    }
}

/// Letters and patterns that look like nothing: the Hangul fillers and the empty Braille cell.
fn is_blank_letter(character: char) -> bool {
    matches!(character, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{2800}')
}

/// Whether a single zero-width character is how a script is written, or how an emoji is presented.
fn is_customary(previous: char, hidden: char, next: char) -> bool {
    match hidden {
        '\u{200c}' | '\u{200d}' => uses_joiners(previous) && uses_joiners(next),
        // Scripts without spaces mark where a line may break.
        '\u{200b}' => is_unspaced(previous) && is_unspaced(next),
        _ => is_variation_selector(hidden) && previous > '\u{52f}',
    }
}

/// Scripts in which a joiner changes how letters are drawn: Arabic and its kin, the Indic ones, Mongolian.
fn uses_joiners(character: char) -> bool {
    matches!(
        character,
        '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{f00}'..='\u{fff}' | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{18af}' | '\u{1b00}'..='\u{1bff}' | '\u{a8e0}'..='\u{a8ff}' | '\u{a980}'..='\u{a9df}'
            | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10a00}'..='\u{10fff}'
            | '\u{11000}'..='\u{11fff}' | '\u{1e900}'..='\u{1e95f}'
    )
}

fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{1980}'..='\u{1aad}')
}

fn is_ideograph(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// How many bytes of tag characters make a black flag one of the three national flags written so.
fn flag_tags(character: char, rest: &str) -> usize {
    const FLAGS: [&str; 3] = [
        "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
        "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
    ];
    if character != '\u{1f3f4}' {
        return 0;
    }
    FLAGS.iter().find(|tags| rest.starts_with(**tags)).map_or(0, |tags| tags.len())
}

/// Whether a character shows nothing, so that it has to be escaped to be seen.
pub(crate) fn is_invisible(character: char) -> bool {
    is_removed_in_folding(character)
        || is_blank_letter(character)
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests;
