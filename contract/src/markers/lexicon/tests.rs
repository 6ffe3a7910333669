use super::source::{LexiconError, MAX_ELEMENTS, has_phrases};
use super::*;

const SOURCE: &str = include_str!("../../markers.toml");

impl Lexicon {
    /// The lexicon of other phrases than the built-in ones.
    pub(in super::super) fn parse(source: &str) -> Result<Lexicon, LexiconError> {
        source::parse(source)
    }
}

fn error(rules: &str) -> LexiconError {
    Lexicon::parse(&format!("[sets]\nset = \"one two\"\n{rules}")).expect_err(rules)
}

fn rule(phrase: &str) -> String {
    format!("[[rule]]\nclass = \"role-tag\"\nid = \"a\"\nphrases = [\"{phrase}\"]\n")
}

#[test]
fn the_built_in_lexicon_is_that_of_the_data_file() {
    let parsed = Lexicon::parse(SOURCE).unwrap();
    assert!(*Lexicon::built_in() == parsed, "build.rs has written another lexicon");
    assert!(unpack::unpack(PACKED) == parsed, "build.rs has packed another lexicon");
    assert_eq!(pack::pack(&parsed), PACKED);
    assert!(!parsed.rules.is_empty() && !parsed.postings.is_empty());
}

#[test]
fn the_data_file_is_well_formed_and_has_every_class_with_phrases() {
    let lexicon = Lexicon::parse(SOURCE).unwrap();
    for class in MarkerClass::ALL {
        let has_rules = lexicon.rules.iter().any(|rule| rule.class == class);
        assert_eq!(has_rules, has_phrases(class), "{class}");
    }
    assert!(lexicon.words.len() * 4 < TABLE_SIZE, "the table of words has become crowded");
}

#[test]
fn every_element_has_words_leads_to_a_rule_and_every_rule_has_a_dotted_id() {
    let lexicon = Lexicon::built_in();
    let postings: Vec<_> = lexicon.words.iter().flat_map(|word| lexicon.postings(word)).collect();
    for (number, node) in lexicon.nodes.iter().enumerate() {
        let special = lexicon.foreign.iter().chain(lexicon.addresses);
        let mut places = postings.iter().map(|posting| &posting.node).chain(special);
        assert!(places.any(|&place| usize::from(place) == number), "{node:?}");
        let goes_on =
            lexicon.nodes.iter().any(|other| other.parent.map(usize::from) == Some(number));
        assert!(goes_on || !lexicon.ends(node).is_empty(), "{node:?}");
    }
    for (number, rule) in lexicon.rules.iter().enumerate() {
        assert!(
            lexicon.nodes.iter().any(|node| lexicon.ends(node).contains(&(number as u16))),
            "{rule:?}"
        );
        assert_eq!(rule.id.split('.').count(), 2);
    }
}

#[test]
fn phrases_that_begin_alike_share_their_beginning() {
    let source = "[sets]\n[[rule]]\nclass = \"role-tag\"\nid = \"a\"\nphrases = [\"one two\", \"one three\", \"one ~1 two\", \"one\"]\n";
    assert_eq!(Lexicon::parse(source).unwrap().nodes.len(), 4);
}

#[test]
fn a_malformed_data_file_is_refused() {
    assert!(matches!(error("x = 1"), LexiconError::Toml(_)));
    assert!(matches!(
        error(&rule("{other}")),
        LexiconError::Phrase { reason: "an unknown set", .. }
    ));
    for phrase in [
        "",
        "~2 one",
        "one ~2",
        "_2 one",
        "one _2",
        "one _17 two",
        "@other",
        "one ~17 two",
        "one ~x two",
        "<>",
        "one,,two",
        "on-e",
        "über",
    ] {
        let error = error(&rule(phrase));
        assert!(matches!(error, LexiconError::Phrase { .. }), "{phrase}");
        assert!(error.to_string().contains(&format!("`{phrase}`")), "{error}");
    }
    assert!(matches!(error(&(rule("one") + &rule("two"))), LexiconError::Repeated(_)));
    let hidden = rule("one").replace("role-tag", "hidden-characters");
    assert!(matches!(error(&hidden), LexiconError::Class(_)));
}

#[test]
fn gaps_and_elements_are_read_to_their_limits() {
    let fine = |phrase: &str| Lexicon::parse(&format!("[sets]\n{}", rule(phrase))).is_ok();
    assert!(fine("one ~16 two") && !fine("one ~17 two"));
    assert!(
        fine(&vec!["one"; usize::from(MAX_ELEMENTS)].join(" "))
            && !fine(&vec!["one"; usize::from(MAX_ELEMENTS) + 1].join(" "))
    );
}

/// A text that is one name is not searched for names of tools, and a plain word by itself is no phrase.
#[test]
fn no_phrase_is_the_name_of_a_tool_alone() {
    let lexicon = Lexicon::built_in();
    let places = lexicon.foreign().iter().map(|&node| &lexicon.nodes[usize::from(node)]);
    let mut first = places.filter(|node| node.parent.is_none()).peekable();
    assert!(first.peek().is_some());
    assert!(first.all(|node| node.ends.is_empty()));
}
