use super::*;

fn error(rules: &str) -> LexiconError {
    Lexicon::parse(&format!("[sets]\nset = \"one two\"\n{rules}")).expect_err(rules)
}

fn rule(phrase: &str) -> String {
    format!("[[rule]]\nclass = \"role-tag\"\nid = \"a\"\nphrases = [\"{phrase}\"]\n")
}

#[test]
fn the_data_file_is_well_formed_and_has_every_class_with_phrases() {
    let lexicon = Lexicon::parse(SOURCE).unwrap();
    for class in MarkerClass::ALL {
        let has_rules = lexicon.rules.iter().any(|rule| rule.class == class);
        assert_eq!(has_rules, class != MarkerClass::HiddenCharacters, "{class}");
    }
    assert!(lexicon.words.len() * 4 < TABLE_SIZE, "the table of words has become crowded");
}

#[test]
fn every_phrase_has_a_word_that_can_begin_it_and_a_rule_with_a_dotted_id() {
    let lexicon = Lexicon::built_in();
    for (number, phrase) in lexicon.phrases.iter().enumerate() {
        for element in 0..phrase.gaps.len() {
            let can_stand = lexicon.words.iter().flat_map(|word| &word.postings).any(|posting| {
                usize::from(posting.phrase) == number && usize::from(posting.element) == element
            });
            assert!(can_stand, "phrase {number} has nothing for element {element}");
        }
    }
    assert!(lexicon.rules.iter().all(|rule| rule.id.split('.').count() == 2));
}

#[test]
fn a_malformed_data_file_is_refused() {
    assert!(matches!(error("x = 1"), LexiconError::Toml(_)));
    assert!(matches!(
        error(&rule("{other}")),
        LexiconError::Phrase { reason: "an unknown set", .. }
    ));
    for phrase in
        ["", "~2 one", "one ~2", "one ~17 two", "one ~x two", "<>", "one,,two", "on-e", "über"]
    {
        assert!(matches!(error(&rule(phrase)), LexiconError::Phrase { .. }), "{phrase}");
    }
    assert!(matches!(error(&(rule("one") + &rule("two"))), LexiconError::Repeated(_)));
    let hidden = rule("one").replace("role-tag", "hidden-characters");
    assert!(matches!(error(&hidden), LexiconError::Class(_)));
}

#[test]
fn gaps_and_elements_are_read_to_their_limits() {
    let fine = |phrase: &str| Lexicon::parse(&format!("[sets]\n{}", rule(phrase))).is_ok();
    assert!(fine("one ~16 two") && !fine("one ~17 two"));
    assert!(fine(&["one"; MAX_ELEMENTS].join(" ")) && !fine(&["one"; MAX_ELEMENTS + 1].join(" ")));
}
