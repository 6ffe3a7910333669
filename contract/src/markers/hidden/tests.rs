use super::*;
use crate::markers::letters::traits;

fn glance(text: &str) -> Glance {
    Glance::of(text.bytes().fold(0, |all, byte| all | traits(byte)))
}

fn rules(text: &str) -> Vec<&'static str> {
    find_hidden(text, glance(text)).into_iter().map(|hidden| hidden.rule).collect()
}

#[test]
fn a_comment_counts_when_it_is_closed_and_over_the_limit() {
    let comment = |length: usize| format!("a <!--{}--> b", "é".repeat(length));
    assert!(rules(&comment(MAX_COMMENT)).is_empty());
    assert_eq!(rules(&comment(MAX_COMMENT + 1)), ["hidden.html-comment"]);
    assert!(rules("<!-- a comment that nobody ever closes, however long").is_empty());
    let second = format!("<!--short--> {}", comment(MAX_COMMENT + 1));
    assert_eq!(rules(&second), ["hidden.html-comment"]);
}

#[test]
fn zero_width_characters_count_inside_a_word_and_in_runs() {
    for inside in
        ["a\u{200b}b", "a\u{ad}b", "1\u{2060}2", "a\u{301}\u{200b}b", "я\u{200d}я", "a\u{fe0f}b"]
    {
        assert_eq!(rules(inside), ["hidden.zero-width-in-word"], "{inside:?}");
    }
    for outside in ["\u{feff}a", "a\u{200b}", "а \u{200b}б", "😀\u{200d}😀", "1\u{fe0f}\u{20e3} b"]
    {
        assert!(rules(outside).is_empty(), "{outside:?}");
    }
    let run = |length: usize| format!("я。{}。я", "\u{200b}".repeat(length));
    assert!(rules(&run(ZERO_WIDTH_RUN - 1)).is_empty());
    assert_eq!(rules(&run(ZERO_WIDTH_RUN)), ["hidden.zero-width-run"]);
}

#[test]
fn a_joiner_is_customary_only_between_letters_that_join_and_only_one() {
    assert!(rules("می\u{200c}خواند").is_empty());
    assert!(rules("क्\u{200d}ष").is_empty());
    assert_eq!(rules("می\u{200c}\u{200d}خواند"), ["hidden.zero-width-in-word"]);
    assert_eq!(rules("می\u{200b}خواند"), ["hidden.zero-width-in-word"]);
    assert_eq!(rules("a\u{200c}خ"), ["hidden.zero-width-in-word"]);
}

#[test]
fn a_variation_selector_may_present_an_emoji_or_an_ideograph_and_no_more() {
    for fine in ["❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "葛\u{e0100}飾", "ℹ\u{fe0f}x"] {
        assert!(rules(fine).is_empty(), "{fine:?}");
    }
    for hidden in ["❤\u{fe0f}\u{fe0f}", "❤\u{e0100}", "x\u{e0101}", "\u{fe00}\u{e0100}"] {
        assert!(rules(hidden).contains(&"hidden.variation-selectors"), "{hidden:?}");
    }
}

#[test]
fn only_the_three_flags_may_have_tag_characters() {
    let tags = |text: &str| -> String {
        text.chars().filter_map(|letter| char::from_u32(0xe0000 + u32::from(letter))).collect()
    };
    for flag in ["gbeng", "gbsct", "gbwls"] {
        assert!(rules(&format!("\u{1f3f4}{}\u{e007f}", tags(flag))).is_empty(), "{flag}");
    }
    for other in
        [format!("\u{1f3f4}{}\u{e007f}", tags("usca")), tags("gbeng"), "a\u{e007f}".to_owned()]
    {
        assert_eq!(rules(&other), ["hidden.tag-characters"], "{other:?}");
    }
}

#[test]
fn control_characters_count_and_white_space_does_not() {
    assert!(rules("a\tb\nc\r\nd\u{a0}e\u{3000}f").is_empty());
    assert_eq!(rules("\u{1b}[0m"), ["hidden.ansi-escape"]);
    assert_eq!(rules("\u{b}"), ["hidden.control-character"]);
    assert_eq!(rules("\u{85}"), ["hidden.control-character"]);
}

#[test]
fn each_rule_is_reported_once_at_its_first_place() {
    let text = "ab\u{202e}cd\u{202e}";
    let found = find_hidden(text, glance(text));
    assert_eq!(found, [Hidden { rule: "hidden.bidi-control", start: 2, end: 5 }]);
}

#[test]
fn between_ascii_characters_every_zero_width_character_counts() {
    for text in ["a \u{200b}b", "a\u{200b} b", "a.\u{200d} b", "a,\u{feff}b"] {
        assert_eq!(rules(text), ["hidden.zero-width-in-text"], "{text:?}");
    }
    assert!(rules("می\u{200c} b").is_empty() && rules("co-\u{ad} b").is_empty());
}

#[test]
fn private_use_characters_count() {
    for text in ["a\u{e000}b", "\u{f8ff}", "\u{f0001} x", "\u{10fffd}"] {
        assert_eq!(rules(text), ["hidden.private-use"], "{text:?}");
    }
}
