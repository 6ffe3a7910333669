use super::*;
use serde_json::json;
use testing::Random;

fn full(dialect: Dialect, schema: &Value) -> Option<jsonschema::Validator> {
    let draft = match dialect {
        Dialect::Draft7 => jsonschema::Draft::Draft7,
        Dialect::Draft2019 => jsonschema::Draft::Draft201909,
        Dialect::Draft2020 => jsonschema::Draft::Draft202012,
    };
    jsonschema::options().with_draft(draft).should_validate_formats(false).build(schema).ok()
}

fn pick<'v>(random: &mut Random, values: &'v [Value]) -> &'v Value {
    values.get(random.below(values.len())).unwrap()
}

/// A random schema of the keywords that real tools use.
fn schema(random: &mut Random, depth: usize) -> Value {
    let mut members = Map::new();
    for _ in 0..random.below(4) {
        let below = |random: &mut Random| schema(random, depth.saturating_sub(1));
        let (name, said) = match random.below(if depth == 0 { 12 } else { 20 }) {
            0 => (
                "type",
                pick(
                    random,
                    &[
                        json!("string"),
                        json!(["integer", "null"]),
                        json!("object"),
                        json!("array"),
                        json!("number"),
                    ],
                )
                .clone(),
            ),
            1 => ("enum", json!(["a", 1, null, {"a": 1.0}, [2]])),
            2 => (
                "const",
                pick(random, &[json!(1.0), json!("a"), json!([1]), json!({"a": 1})]).clone(),
            ),
            3 => ("minimum", pick(random, &[json!(0), json!(1.5), json!(-3)]).clone()),
            4 => ("exclusiveMaximum", pick(random, &[json!(1), json!(2.5)]).clone()),
            5 => ("minLength", json!(random.below(4))),
            6 => ("maxLength", json!(random.below(4))),
            7 => ("maxItems", json!(random.below(3))),
            8 => ("uniqueItems", json!(true)),
            9 => ("required", json!(["a"])),
            10 => ("description", json!("words")),
            11 => ("maxProperties", json!(random.below(3))),
            12 => ("properties", json!({"a": below(random), "b": below(random)})),
            13 => (
                "additionalProperties",
                pick(random, &[json!(false), json!(true), json!({"type": "string"})]).clone(),
            ),
            14 => ("items", below(random)),
            15 => ("anyOf", json!([below(random), below(random)])),
            16 => ("oneOf", json!([below(random), below(random)])),
            17 => ("allOf", json!([below(random), below(random)])),
            18 => ("not", below(random)),
            _ => ("$ref", json!("#/$defs/d")),
        };
        members.insert(name.to_owned(), said);
    }
    Value::Object(members)
}

fn instance(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 9 } else { 13 }) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(1),
        3 => json!(1.0),
        4 => json!(2.5),
        5 => json!("a"),
        6 => json!("\u{1f4a5}bc"),
        7 => json!(-7),
        8 => json!(u64::MAX),
        9 | 10 => json!({"a": instance(random, depth - 1), "c": instance(random, depth - 1)}),
        11 => json!({"b": instance(random, depth - 1)}),
        _ => json!([instance(random, depth - 1), instance(random, depth - 1)]),
    }
}

#[test]
fn it_accepts_what_the_full_validator_accepts_and_nothing_else() {
    let mut random = Random::new(7);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let mut schema = schema(&mut random, 3);
        schema["$defs"] = json!({"d": {"type": ["string", "integer"], "maxLength": 1}});
        for dialect in [Dialect::Draft7, Dialect::Draft2019, Dialect::Draft2020] {
            let (Ok(ours), Some(theirs)) = (build(dialect, &schema, 0), full(dialect, &schema))
            else {
                continue;
            };
            for _ in 0..6 {
                let value = instance(&mut random, 3);
                let is_valid = theirs.is_valid(&value);
                assert_eq!(ours.is_valid(&value), is_valid, "{dialect:?} {schema} {value}");
                if is_valid { accepted += 1 } else { refused += 1 }
            }
        }
    }
    assert!(accepted > 5_000 && refused > 5_000, "{accepted} accepted, {refused} refused");
}

#[test]
fn what_it_cannot_decide_on_is_not_compiled() {
    for schema in [
        json!({"pattern": "a"}),
        json!({"properties": {"a": {"pattern": "a"}}}),
        json!({"$defs": {"a": {"if": {}}}}),
        json!({"items": [{}]}),
        json!({"$ref": "other.json"}),
        json!({"$ref": "#/examples/0"}),
        json!({"$ref": "#/$defs/%61", "$defs": {"a": {}}}),
        json!({"$ref": "#/$defs/none"}),
        json!({"properties": {"a": {"$id": "b"}}}),
        json!({"type": "text"}),
        json!({"minimum": "1"}),
        json!({"exclusiveMinimum": true}),
        json!({"unevaluatedProperties": false}),
        json!({"multipleOf": 2}),
        json!("text"),
    ] {
        assert!(build(Dialect::Draft2020, &schema, 0).is_err(), "{schema}");
    }
    let decided = json!({"$schema": "x", "$id": "y", "x-own": {"pattern": 1}, "format": "uri", "type": "object"});
    assert!(build(Dialect::Draft2020, &decided, 0).is_ok());
}

#[test]
fn a_schema_that_leads_into_itself_ends() {
    let schema = json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": false});
    let validator = build(Dialect::Draft2020, &schema, 0).unwrap();
    assert!(validator.is_valid(&json!({"a": {"a": {}}})));
    assert!(!validator.is_valid(&json!({"a": {"b": {}}})));
    let circle = json!({"$defs": {"d": {"$ref": "#/$defs/d"}}, "$ref": "#/$defs/d"});
    assert!(!build(Dialect::Draft2020, &circle, 0).unwrap().is_valid(&json!(1)));
}
