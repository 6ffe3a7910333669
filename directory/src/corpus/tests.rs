use super::*;

fn voice(verdict: CorpusVerdict, reason: ReasonClass) -> Voice {
    Voice { verdict, reason, is_decided: false }
}

/// `d` is an owner who says dangerous, `c` one who says cleared; upper case means that the operator
/// knew of it.
fn voices(text: &str) -> Vec<Voice> {
    text.chars()
        .map(|letter| Voice {
            verdict: match letter.to_ascii_lowercase() {
                'd' => CorpusVerdict::Dangerous,
                _ => CorpusVerdict::Cleared,
            },
            reason: ReasonClass::Injection,
            is_decided: letter.is_ascii_uppercase(),
        })
        .collect()
}

#[test]
fn what_is_served_follows_the_table() {
    let cleared = Some(Adjudication::Said(CorpusVerdict::Cleared, ReasonClass::ReviewedBenign));
    let dangerous = Some(Adjudication::Said(CorpusVerdict::Dangerous, ReasonClass::Injection));
    let withdrawn = Some(Adjudication::Invalidated);
    for (said, adjudication, expected) in [
        ("", None, "waiting"),
        ("d", None, "waiting"),
        ("dd", None, "waiting"),
        ("ddd", None, "dangerous"),
        ("dddd", None, "dangerous"),
        ("dddc", None, "conflict"),
        ("dc", None, "conflict"),
        ("c", None, "waiting"),
        ("cccccccc", None, "waiting"),
        ("", cleared, "cleared"),
        ("CC", cleared, "cleared"),
        ("CCD", cleared, "cleared"),
        ("CCd", cleared, "conflict"),
        ("", dangerous, "dangerous"),
        ("Dc", dangerous, "dangerous"),
        ("ccccc", dangerous, "dangerous"),
        ("ddd", withdrawn, "invalidated"),
        ("", withdrawn, "invalidated"),
    ] {
        let decided = standing(&voices(said), adjudication);
        let word = decided.served().map_or(decided.as_str(), |(verdict, _)| verdict.as_str());
        assert_eq!(word, expected, "{said:?} {adjudication:?}");
    }
}

/// Tests all sets of up to five voices with every decision of the operator.
#[test]
fn cleared_is_never_served_without_the_operator_and_a_conflict_never_without_a_decision() {
    let letters = ['c', 'd', 'C', 'D'];
    let said = [
        None,
        Some(Adjudication::Invalidated),
        Some(Adjudication::Said(CorpusVerdict::Cleared, ReasonClass::ReviewedBenign)),
        Some(Adjudication::Said(CorpusVerdict::Dangerous, ReasonClass::Unstated)),
    ];
    for number in 0..4_usize.pow(5) {
        for length in 0..=5 {
            let text: String = (0..length).map(|at| letters[(number >> (2 * at)) & 3]).collect();
            let all = voices(&text);
            let count = |verdict| all.iter().filter(|voice| voice.verdict == verdict).count();
            let (dangers, clears) =
                (count(CorpusVerdict::Dangerous), count(CorpusVerdict::Cleared));
            for adjudication in said {
                match (standing(&all, adjudication).served(), adjudication) {
                    (Some((CorpusVerdict::Cleared, _)), adjudication) => {
                        assert!(matches!(
                            adjudication,
                            Some(Adjudication::Said(CorpusVerdict::Cleared, _))
                        ));
                        assert!(!text.contains('d'));
                    }
                    (Some((CorpusVerdict::Dangerous, _)), None) => {
                        assert!(dangers >= OWNERS_NEEDED && clears == 0, "{text}");
                    }
                    (Some((CorpusVerdict::Dangerous, _)), adjudication) => {
                        assert!(matches!(
                            adjudication,
                            Some(Adjudication::Said(CorpusVerdict::Dangerous, _))
                        ));
                    }
                    (None, _) => {}
                }
            }
        }
    }
}

#[test]
fn the_reason_is_the_one_that_most_owners_give() {
    let dangerous = |reason| voice(CorpusVerdict::Dangerous, reason);
    for (reasons, expected) in [
        (
            [ReasonClass::Injection, ReasonClass::Injection, ReasonClass::Overclaim],
            ReasonClass::Injection,
        ),
        (
            [ReasonClass::Unstated, ReasonClass::Unstated, ReasonClass::Overclaim],
            ReasonClass::Overclaim,
        ),
        ([ReasonClass::Unstated; 3], ReasonClass::Unstated),
        (
            [ReasonClass::Overclaim, ReasonClass::Exfiltration, ReasonClass::Unstated],
            ReasonClass::Exfiltration,
        ),
    ] {
        let all: Vec<Voice> = reasons.into_iter().map(dangerous).collect();
        assert_eq!(standing(&all, None), Standing::Served(CorpusVerdict::Dangerous, expected));
    }
}
