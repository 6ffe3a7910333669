use super::*;
use std::collections::BTreeSet;

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.insert(reference.clone());
            }
            members.values().for_each(|member| references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn the_document_has_every_operation_once_and_nothing_else() {
    let document = document("https://mcp.example.com");
    let mut described = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap().to_owned();
            assert!(described.insert((path.clone(), method.clone(), id)), "{path} {method}");
        }
    }
    let served: BTreeSet<_> = Operation::ALL
        .into_iter()
        .map(|one| (one.path().to_owned(), one.method().to_owned(), one.id().to_owned()))
        .collect();
    assert_eq!(described, served);
    assert_eq!(served.len(), Operation::ALL.len());
}

#[test]
fn every_schema_that_is_named_is_there_and_every_one_that_is_there_is_named() {
    let document = document("https://mcp.example.com");
    let mut named = BTreeSet::new();
    references(&document, &mut named);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let there: BTreeSet<String> =
        schemas.keys().map(|name| format!("#/components/schemas/{name}")).collect();
    assert_eq!(named, there);
}

#[test]
fn an_operation_that_only_a_user_may_do_says_so() {
    let document = document("https://mcp.example.com");
    let words = |path: &str, method: &str| {
        document["paths"][path][method]["description"].as_str().unwrap().to_owned()
    };
    assert!(words("/servers/{id}/approve", "post").contains("Only a user"));
    assert!(!words("/servers", "get").contains("Only a user"));
}
