//! Text that a server chose and a person will read: bounded, and without anything that a terminal
//! acts on.

use std::fmt;

/// The longest text of a server that is included in a message, in characters.
const MAX_CHARACTERS: usize = 400;

/// A server's text, made safe to display.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerText(String);

impl ServerText {
    /// Converts to a single line: characters that are not plainly visible are escaped, and a long
    /// text is truncated.
    pub fn line(text: &str) -> Self {
        let mut out = String::new();
        for (count, character) in text.chars().enumerate() {
            if count == MAX_CHARACTERS {
                out.push('…');
                break;
            }
            push_visible(character, &mut out);
        }
        ServerText(out)
    }

    /// Converts several lines that are already bounded, such as standard error: line feeds and tabs
    /// are kept.
    pub fn lines(bytes: &[u8]) -> Self {
        let mut out = String::new();
        for character in String::from_utf8_lossy(bytes).trim_end().chars() {
            match character {
                '\n' | '\t' => out.push(character),
                '\r' => {}
                _ => push_visible(character, &mut out),
            }
        }
        ServerText(out)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for ServerText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn push_visible(character: char, out: &mut String) {
    // Bidirectional and invisible formatting could make a terminal show a different text from the
    // one received.
    let hidden = matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    if character.is_control() || hidden {
        out.extend(character.escape_unicode());
    } else {
        out.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_escapes_and_hidden_characters_are_shown_and_not_acted_on() {
        let text = ServerText::line("a\u{1b}[2Jb\u{202e}c\nd");
        assert_eq!(text.as_str(), "a\\u{1b}[2Jb\\u{202e}c\\u{a}d");
    }

    #[test]
    fn a_line_is_cut_one_past_the_limit_and_not_at_it() {
        let at = "x".repeat(MAX_CHARACTERS);
        assert_eq!(ServerText::line(&at).as_str(), at);
        let past = format!("{at}x");
        assert_eq!(ServerText::line(&past).as_str(), format!("{at}…"));
    }

    #[test]
    fn lines_keep_their_breaks_and_lose_carriage_returns() {
        assert_eq!(ServerText::lines(b"one\r\ntwo\x07\n\n").as_str(), "one\ntwo\\u{7}");
    }
}
