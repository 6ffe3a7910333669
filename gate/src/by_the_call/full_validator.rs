//! The validator for builds without a size limit: the crate `jsonschema`.

use super::Undecided;
use super::schema::Dialect;
use jsonschema::{Draft, PatternOptions, ValidationOptions};
use serde_json::Value;

pub(super) use jsonschema::Validator;

/// How often a pattern with lookaround may backtrack on one text. Beyond that the text is refused.
const MAX_BACKTRACKS: usize = 10_000;

pub(super) fn build(dialect: Dialect, value: &Value, limit: usize) -> Result<Validator, Undecided> {
    let patterns = PatternOptions::regex().size_limit(limit).dfa_size_limit(limit);
    let options = options(dialect).with_pattern_options(patterns);
    options.build(value).map_err(|_| Undecided::Schema)
}

/// Like [`build`], but with support for lookaround, which the linear engine lacks and real schemas
/// use to check e-mail addresses. Backtracking is bounded.
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
