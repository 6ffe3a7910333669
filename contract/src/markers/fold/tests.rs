use super::source::MAX_EXPANSION;
use super::*;

fn folded(text: &str) -> String {
    let mut bytes = Vec::new();
    fold_into(text, &mut bytes);
    bytes.into_iter().map(|byte| if byte == OTHER { '?' } else { char::from(byte) }).collect()
}

#[test]
fn compatibility_forms_marks_and_look_alikes_become_latin() {
    for (text, expected) in [
        ("ｉｇｎｏｒｅ", "ignore"),
        ("𝓲𝐠𝗻𝚘𝕣𝑒", "ignore"),
        ("ïgnóřë", "ignore"),
        ("ﬁle №", "file No"),
        ("іgnоrе", "ignore"),
        ("Οмega", "omega"),
        ("don’t", "don't"),
        ("‹system›", "<system>"),
        ("a\u{200b}b\u{202e}c\u{e0041}", "abc"),
        ("a\u{2003}b\u{a0}c", "a b c"),
        ("中a文", "?a?"),
    ] {
        assert_eq!(folded(text), expected, "{text}");
    }
}

#[test]
fn the_built_in_folds_are_those_of_unicode() {
    let runs = source::runs();
    assert!(FOLDS == runs, "build.rs has written other folds");
    assert!(unpack::unpack(PACKED_FOLDS) == runs, "build.rs has packed other folds");
    assert_eq!(pack::pack(&runs), PACKED_FOLDS);
}

#[test]
fn every_character_folds_as_the_tables_of_unicode_say() {
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for character in ('\u{80}'..=char::MAX).filter(|character| !character.is_ascii()) {
        found.clear();
        expected.clear();
        push_folded(character, &mut found);
        source::push_slowly(character, &mut expected);
        assert_eq!(found, expected, "{character:?}");
        let is_mark = unicode_normalization::char::is_combining_mark(character);
        assert_eq!(is_combining_mark(character), is_mark, "{character:?}");
    }
}

#[test]
fn one_character_never_becomes_more_than_the_limit() {
    let longest = (0..0x2_0000)
        .filter_map(char::from_u32)
        .map(|c| folded(&c.to_string()).chars().count())
        .max();
    assert_eq!(longest, Some(MAX_EXPANSION));
}

#[test]
fn offsets_lead_back_to_the_characters_they_came_from() {
    let text = "é\u{200b}ﬁx";
    assert_eq!(folded(text), "efix");
    assert_eq!(original_offsets(text, &[0, 1, 2, 3, 4]), [0, 5, 5, 8, 9]);
}
