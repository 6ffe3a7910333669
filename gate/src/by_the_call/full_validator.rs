//! The validator that decides wherever there is room for it: the crate `jsonschema`.

use super::Undecided;
use super::schema::Dialect;
use jsonschema::{Draft, PatternOptions, ValidationOptions};
use serde_json::Value;

pub(super) use jsonschema::Validator;

/// How often a pattern that looks around may go back on one text. Past it the text is refused.
const MAX_BACKTRACKS: usize = 10_000;

pub(super) fn build(dialect: Dialect, value: &Value, limit: usize) -> Result<Validator, Undecided> {
    let patterns = PatternOptions::regex().size_limit(limit).dfa_size_limit(limit);
    let options = options(dialect).with_pattern_options(patterns);
    options.build(value).map_err(|_| Undecided::Schema)
}

/// The same with patterns that look around: the linear engine has none of those, and real schemas check e-mail addresses by
/// them. How often such a pattern goes back is bounded.
pub(super) fn build_backtracking(
    dialect: Dialect,
    value: &Value,
    limit: usize,
) -> Result<Validator, Undecided> {
    let patterns = PatternOptions::fancy_regex();
    let patterns = patterns.backtrack_limit(MAX_BACKTRACKS).size_limit(limit).dfa_size_limit(limit);
    let options = options(dialect).with_pattern_options(patterns);
    options.build(value).map_err(|_| Undecided::Schema)
}

fn options(dialect: Dialect) -> ValidationOptions<'static> {
    let draft = match dialect {
        Dialect::Draft7 => Draft::Draft7,
        Dialect::Draft2019 => Draft::Draft201909,
        Dialect::Draft2020 => Draft::Draft202012,
    };
    jsonschema::options().with_draft(draft).offline().should_validate_formats(false)
}
