use super::*;
use crate::limits::MAX_TEXT_BYTES;
use serde_json::{Value, json};

fn parse(scheme: &Value) -> Result<Scheme, SchemeError> {
    Scheme::parse(scheme.to_string().as_bytes())
}

fn custom(levels: &Value) -> Value {
    json!({ "id": "acme", "description": "ours", "levels": levels })
}

#[track_caller]
fn check(scheme: &str, name: &str, expected: Option<(u8, &str)>) {
    let level = Scheme::built_in(scheme).unwrap().level(name);
    assert_eq!(level.as_ref().map(|level| (level.rank(), level.name())), expected, "{name}");
}

#[test]
fn built_in_schemes_keep_the_rules_of_custom_ones() {
    let ids: Vec<&str> = Scheme::built_ins().iter().map(Scheme::id).collect();
    let expected =
        ["default", "us-government", "healthcare-hipaa", "financial-services", "generic-3-tier"];
    assert_eq!(ids, expected);
    for scheme in Scheme::built_ins() {
        assert_eq!(scheme.check(), Ok(()));
        let levels = scheme.levels().iter().enumerate().map(|(rank, level)| {
            json!({ "rank": rank, "canonicalName": level.name(), "aliases": level.aliases() })
        });
        let written = json!({
            "id": scheme.id(),
            "description": scheme.description(),
            "levels": levels.collect::<Vec<_>>(),
            "validCompartments": scheme.compartments(),
            "validReleasability": scheme.releasability(),
        });
        assert_eq!(parse(&written).as_ref(), Ok(scheme));
    }
}

#[test]
fn names_and_aliases_match_without_regard_to_case() {
    check("default", "restricted-plus", Some((4, "RESTRICTED-PLUS")));
    check("default", "q-Cleared", Some((4, "RESTRICTED-PLUS")));
    check("default", "TS//sci", Some((5, "SCI")));
    check("us-government", "public", Some((0, "UNCLASSIFIED")));
    check("us-government", "ts", Some((4, "TOP SECRET")));
    check("healthcare-hipaa", "genetic", Some((3, "SENSITIVE-PHI")));
    check("financial-services", "insider", Some((3, "MNPI")));
    check("generic-3-tier", "confidential", Some((2, "RESTRICTED")));
}

#[test]
fn a_name_of_another_scheme_is_none_of_this_one() {
    check("default", "MNPI", None);
    check("us-government", "PHI", None);
    check("generic-3-tier", "TS", None);
    check("default", "", None);
    check("default", " internal", None);
    check("default", "\u{456}nternal", None);
}

#[test]
fn an_own_scheme_does_not_answer_to_the_id_of_a_built_in_one() {
    let mut scheme = custom(&json!([{ "rank": 0, "canonicalName": "A" }]));
    assert!(parse(&scheme).is_ok());
    scheme["id"] = json!("default");
    assert_eq!(parse(&scheme), Err(SchemeError::Reserved { id: "default".to_owned() }));
}

#[test]
fn levels_may_come_in_any_order_and_in_any_script() {
    let levels = json!([
        { "rank": 1, "canonicalName": "ÖFFENTLICH PLUS", "aliases": [] },
        { "rank": 0, "canonicalName": "ÖFFENTLICH" },
    ]);
    let scheme = parse(&custom(&levels)).unwrap();
    assert_eq!(scheme.level("öffentlich").unwrap().rank(), 0);
    assert_eq!(scheme.level("Öffentlich Plus").unwrap().rank(), 1);
    assert_eq!(scheme.level("offentlich"), None);
}

#[test]
fn ranks_with_a_gap_or_twice_are_refused() {
    for (ranks, missing) in [(vec![1], 0), (vec![0, 2], 1), (vec![0, 0], 1), (vec![0, 1, 3], 2)] {
        let names = ranks.iter().enumerate();
        let levels: Vec<Value> = names
            .map(|(at, rank)| json!({ "rank": rank, "canonicalName": format!("L{at}") }))
            .collect();
        assert_eq!(parse(&custom(&json!(levels))), Err(SchemeError::Rank { rank: missing }));
    }
    assert_eq!(parse(&custom(&json!([]))), Err(SchemeError::NoLevels));
    for rank in [json!(-1), json!(256), json!("0"), json!(0.5)] {
        let levels = json!([{ "rank": rank, "canonicalName": "A" }]);
        assert!(matches!(parse(&custom(&levels)), Err(SchemeError::Shape(_))), "{rank}");
    }
}

#[test]
fn a_name_that_is_there_twice_is_refused() {
    let level = |rank: u8, name: &str, aliases: &[&str]| json!({ "rank": rank, "canonicalName": name, "aliases": aliases });
    for levels in [
        json!([level(0, "A", &[]), level(1, "a", &[])]),
        json!([level(0, "A", &["b"]), level(1, "C", &["B"])]),
        json!([level(0, "A", &["a"])]),
    ] {
        assert!(matches!(parse(&custom(&levels)), Err(SchemeError::Ambiguous { .. })), "{levels}");
    }
    let mut scheme = custom(&json!([level(0, "A", &[])]));
    scheme["validCompartments"] = json!(["X", "x"]);
    assert!(matches!(parse(&scheme), Err(SchemeError::Ambiguous { .. })));
    scheme["validCompartments"] = json!(["X", " Y"]);
    assert!(matches!(parse(&scheme), Err(SchemeError::BadName { .. })));
    scheme["validCompartments"] = json!(["X", "Y"]);
    assert_eq!(parse(&scheme).unwrap().compartments(), ["X", "Y"]);
}

#[test]
fn a_scheme_ends_at_its_limits() {
    let levels = |count: usize| -> Value {
        (0..count)
            .map(|rank| json!({ "rank": rank, "canonicalName": format!("L{rank}") }))
            .collect()
    };
    assert!(parse(&custom(&levels(MAX_LEVELS))).is_ok());
    let too_many = |member, limit| Err(SchemeError::Shape(ShapeError::TooMany { member, limit }));
    assert_eq!(parse(&custom(&levels(MAX_LEVELS + 1))), too_many("levels", MAX_LEVELS));
    let aliases = |count: usize| -> Vec<String> { (0..count).map(|at| format!("a{at}")).collect() };
    let with =
        |count| custom(&json!([{ "rank": 0, "canonicalName": "L", "aliases": aliases(count) }]));
    assert!(parse(&with(MAX_ALIASES)).is_ok());
    assert_eq!(parse(&with(MAX_ALIASES + 1)), too_many("aliases", MAX_ALIASES));
    let mut marked = custom(&levels(1));
    marked["validReleasability"] = json!(aliases(MAX_MARKINGS));
    assert!(parse(&marked).is_ok());
    marked["validReleasability"] = json!(aliases(MAX_MARKINGS + 1));
    assert_eq!(parse(&marked), too_many("validReleasability", MAX_MARKINGS));
    let named = |bytes| custom(&json!([{ "rank": 0, "canonicalName": "L".repeat(bytes) }]));
    assert!(parse(&named(MAX_TEXT_BYTES)).is_ok());
    assert!(matches!(parse(&named(MAX_TEXT_BYTES + 1)), Err(SchemeError::Shape(_))));
    let padded = |bytes| crate::fixture::padded(&custom(&levels(1)), bytes);
    assert!(Scheme::parse(padded(MAX_SCHEME_BYTES).as_bytes()).is_ok());
    assert!(Scheme::parse(padded(MAX_SCHEME_BYTES + 1).as_bytes()).is_err());
}

#[test]
fn a_slip_of_the_pen_is_told() {
    let mut scheme = custom(&json!([{ "rank": 0, "canonicalName": "A" }]));
    scheme["validCompartment"] = json!([]);
    let error = parse(&scheme).unwrap_err();
    assert_eq!(error.to_string(), "`validCompartment` is not a known member");
}
