//! The two judges: the comparison under test, and a validator that is independent of it.

use crate::applicable::{Dialect, Document};
use contract::change::{ChangeClass, Finding};
use contract::schema::compare;
use jsonschema::{Draft, Validator};
use serde_json::Value;
use std::time::Duration;

/// The findings of the comparison for a pair, and how long it took.
pub fn findings(old: &Value, new: &Value) -> (Vec<Finding>, Duration) {
    let (old, new) = (old.to_string(), new.to_string());
    let old = contract::json::Document::parse(&old).expect("a generated schema is JSON");
    let new = contract::json::Document::parse(&new).expect("a generated schema is JSON");
    let mut findings = Vec::new();
    let took = testing::processor_time(|| findings = compare(old.root(), new.root(), ""));
    (findings, took)
}

/// Whether the findings claim that something accepted before may be refused.
pub fn is_claimed(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| matches!(finding.class, ChangeClass::Breaking | ChangeClass::FailSafe))
}

/// A pair of schemas, each read in one dialect.
#[derive(Debug)]
pub struct Reading<'a> {
    pub old: Document<'a>,
    old_validator: Validator,
    new_validator: Validator,
}

impl<'a> Reading<'a> {
    /// Every way to read a pair: in both dialects if there is no `$schema`. Empty if a side is not
    /// a valid schema.
    pub fn all(old: &'a Value, new: &Value) -> Vec<Reading<'a>> {
        let mut readings = Vec::new();
        for dialect in [Dialect::Draft7, Dialect::Draft2020] {
            let old_dialect = declared(old).unwrap_or(dialect);
            let new_dialect = declared(new).unwrap_or(dialect);
            let is_repeated =
                declared(old).is_some() && declared(new).is_some() && dialect == Dialect::Draft2020;
            if is_repeated {
                continue;
            }
            let document = Document { root: old, dialect: old_dialect };
            let new_document = Document { root: new, dialect: new_dialect };
            if document.is_endless() || new_document.is_endless() {
                continue;
            }
            let validators = (validator(old, old_dialect), validator(new, new_dialect));
            if let (Some(old_validator), Some(new_validator)) = validators {
                let old = document;
                readings.push(Reading { old, old_validator, new_validator });
            }
        }
        readings
    }

    /// Whether the property covers the instance: the old schema accepts it, and it is closed.
    pub fn was_accepted(&self, instance: &Value) -> bool {
        self.old_validator.is_valid(instance) && self.old.is_closed_instance(instance)
    }

    /// Whether the old schema accepts the instance, including additional members.
    pub fn was_valid(&self, instance: &Value) -> bool {
        self.old_validator.is_valid(instance)
    }

    /// Whether the old schema accepts the instance, including additional members, and the new one
    /// does not.
    pub fn is_left(&self, instance: &Value) -> bool {
        self.was_valid(instance) && !self.is_accepted(instance)
    }

    pub fn is_accepted(&self, instance: &Value) -> bool {
        self.new_validator.is_valid(instance)
    }
}

fn declared(schema: &Value) -> Option<Dialect> {
    let uri = schema.get("$schema")?.as_str()?;
    if uri.contains("draft-07") || uri.contains("draft-06") {
        return Some(Dialect::Draft7);
    }
    if uri.contains("2019-09") {
        return Some(Dialect::Draft2019);
    }
    uri.contains("2020-12").then_some(Dialect::Draft2020)
}

fn validator(schema: &Value, dialect: Dialect) -> Option<Validator> {
    let draft = match dialect {
        Dialect::Draft7 => Draft::Draft7,
        Dialect::Draft2019 => Draft::Draft201909,
        Dialect::Draft2020 => Draft::Draft202012,
    };
    jsonschema::options().with_draft(draft).should_validate_formats(true).build(schema).ok()
}

/// A pair with an instance that the old schema accepts and the new one refuses.
#[derive(Debug, Clone, PartialEq)]
pub struct Counterexample {
    pub old: Value,
    pub new: Value,
    pub instance: Value,
}

impl Counterexample {
    /// Whether the instance is refused now, in any reading.
    pub fn is_refusal(&self) -> bool {
        Reading::all(&self.old, &self.new).iter().any(|reading| {
            reading.was_accepted(&self.instance) && !reading.is_accepted(&self.instance)
        })
    }

    /// Whether the comparison fails to report it.
    pub fn is_missed(&self) -> bool {
        !is_claimed(&findings(&self.old, &self.new).0) && self.is_refusal()
    }
}
