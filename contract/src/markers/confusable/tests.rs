use super::*;

#[test]
fn no_look_alike_is_listed_twice_or_is_ascii() {
    let table = table();
    assert!(table.iter().zip(table.iter().skip(1)).all(|(left, right)| left.0 != right.0));
    assert!(table.iter().all(|(key, latin)| !key.is_ascii() && latin.is_ascii()));
}

#[test]
fn look_alikes_are_found_and_other_letters_are_not() {
    for (character, latin) in
        [('а', b'a'), ('ο', b'o'), ('ɡ', b'g'), ('🅐', b'a'), ('🆉', b'z'), ('🇿', b'z')]
    {
        assert_eq!(latin_look_alike(character), Some(latin), "{character}");
    }
    for character in ['ж', 'ψ', '中', 'ב', '\u{1f18a}', 'a'] {
        assert_eq!(latin_look_alike(character), None, "{character}");
    }
}
