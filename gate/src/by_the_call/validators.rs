//! Validators of one definition. Nothing is fetched, `format` is never asserted, and patterns run on the linear engine.

use super::Undecided;
use super::schema::{Dialect, Schema};
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// The most bytes of a compiled pattern, and of the cache that it is run with.
const PATTERN_BYTES: usize = 64 * 1024;
/// The most bytes of all compiled patterns of a schema: with many patterns each one has to be smaller.
const ALL_PATTERNS_BYTES: usize = 512 * 1024;
/// What a compiled pattern counts as where rules are kept: groups and caches come on top of its own bytes.
const KEPT_PATTERN_BYTES: usize = 256 * 1024;

/// What accepts the arguments of one definition: one validator for each dialect that it may be read in.
#[derive(Debug)]
pub(super) struct Validators {
    dialects: Vec<Validator>,
    patterns: usize,
}

impl Validators {
    /// Compiles a schema whose bounds have been checked.
    pub(super) fn compile(schema: &Schema<'_>) -> Result<Validators, Undecided> {
        let value: Value =
            serde_json::from_str(schema.root.raw()).map_err(|_| Undecided::Schema)?;
        let limit = PATTERN_BYTES.min(ALL_PATTERNS_BYTES / schema.patterns().max(1));
        let compiled = schema.dialects()?.iter().map(|dialect| {
            let draft = match dialect {
                Dialect::Draft7 => Draft::Draft7,
                Dialect::Draft2020 => Draft::Draft202012,
            };
            let patterns = PatternOptions::regex().size_limit(limit).dfa_size_limit(limit);
            let options = jsonschema::options()
                .with_draft(draft)
                .offline()
                .should_validate_formats(false)
                .with_pattern_options(patterns);
            options.build(&value).map_err(|_| Undecided::Schema)
        });
        let dialects = compiled.collect::<Result<_, _>>()?;
        Ok(Validators { dialects, patterns: schema.patterns() })
    }

    pub(super) fn accept(&self, arguments: &Value) -> bool {
        self.dialects.iter().all(|validator| validator.is_valid(arguments))
    }

    /// About how many bytes the compiled patterns take.
    pub(super) fn pattern_bytes(&self) -> usize {
        self.dialects.len() * self.patterns * KEPT_PATTERN_BYTES
    }

    /// The arguments that are accepted as soon as they are left out: at most `most` are tried.
    ///
    /// The validator is never asked for its errors. It makes all errors of alternatives before it returns the first one:
    /// millions of them, for a call and a schema of a few kilobytes.
    pub(super) fn refused(&self, arguments: &Value, most: usize) -> Vec<String> {
        let Value::Object(members) = arguments else { return Vec::new() };
        let mut names: Vec<&String> = members.keys().collect();
        names.sort();
        let mut rest = arguments.clone();
        let mut refused = Vec::new();
        for name in names.into_iter().take(most) {
            let taken = rest.as_object_mut().and_then(|rest| rest.remove(name));
            if self.accept(&rest) {
                refused.push(name.clone());
            }
            if let (Some(rest), Some(taken)) = (rest.as_object_mut(), taken) {
                rest.insert(name.clone(), taken);
            }
        }
        refused
    }
}
