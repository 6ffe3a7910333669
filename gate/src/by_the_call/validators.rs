//! Validators of one definition. Nothing is fetched, `format` is never asserted, and patterns run on the linear engine.

use super::Undecided;
use super::schema::{Dialect, Schema};
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// The most bytes of a compiled pattern, and of the cache that it is run with.
const PATTERN_BYTES: usize = 256 * 1024;

/// What accepts the arguments of one definition: one validator for each dialect that it may be read in.
#[derive(Debug)]
pub(super) struct Validators(Vec<Validator>);

impl Validators {
    /// Compiles a schema whose bounds have been checked.
    pub(super) fn compile(schema: &Schema<'_>) -> Result<Validators, Undecided> {
        let value: Value =
            serde_json::from_str(schema.root.raw()).map_err(|_| Undecided::Schema)?;
        let compiled = schema.dialects()?.iter().map(|dialect| {
            let draft = match dialect {
                Dialect::Draft7 => Draft::Draft7,
                Dialect::Draft2020 => Draft::Draft202012,
            };
            let patterns =
                PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
            let options = jsonschema::options()
                .with_draft(draft)
                .offline()
                .should_validate_formats(false)
                .with_pattern_options(patterns);
            options.build(&value).map_err(|_| Undecided::Schema)
        });
        Ok(Validators(compiled.collect::<Result<_, _>>()?))
    }

    pub(super) fn accept(&self, arguments: &Value) -> bool {
        self.0.iter().all(|validator| validator.is_valid(arguments))
    }

    /// The parameters that are refused, as far as the validator can tell: at most so many.
    pub(super) fn refused(&self, arguments: &Value, most: usize) -> Vec<String> {
        let mut names = Vec::new();
        for error in self.0.iter().flat_map(|validator| validator.iter_errors(arguments)).take(most)
        {
            let path = error.instance_path().as_str();
            let step =
                path.split('/').nth(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
            let name = match (step, error.kind()) {
                (Some(step), _) => Some(step),
                (None, jsonschema::error::ValidationErrorKind::Required { property }) => {
                    property.as_str().map(str::to_owned)
                }
                (None, _) => None,
            };
            names.extend(name);
        }
        names.sort();
        names.dedup();
        names
    }
}
