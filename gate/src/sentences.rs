//! Sentences about schemas: what a parameter accepts now, or what results may contain, in the
//! schema's terms.
//!
//! INVARIANT: a sentence for a model contains numbers, values and patterns of the accepted
//! definition only. The names of types and keywords are defined by JSON Schema, so those of either
//! side may be used.

use crate::naming::shown_name;
use crate::words::{Audience, escape_hidden};
use contract::change::{ChangeKind, Finding};
use contract::detail::{Detail, LimitChange, LimitValue, Limited, Listed, TypeChange, ValueChange};
use contract::json::Document;

/// The kind of values that a sentence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Values {
    /// The arguments of a call.
    Arguments,
    /// The results of a call.
    Results,
}

/// The sentence for a finding whose detail is known. `subject` is the parameter in backticks, or a
/// phrase for the whole.
pub(crate) fn sentence(
    finding: &Finding,
    subject: &str,
    values: Values,
    audience: Audience<'_>,
) -> Option<String> {
    let said = match finding.detail.as_ref()? {
        _ if closes_object(finding) => {
            "may no longer have members that are not declared".to_owned()
        }
        Detail::Limit(change) => limit(finding.kind, change, audience),
        Detail::Values(change) => listed(finding.kind, change, values, audience)?,
        Detail::Types(change) => types(finding.kind, change)?,
        Detail::Keyword => keyword(finding, audience)?,
        Detail::Results(..) | Detail::NewTool => return None,
    };
    Some(format!("{subject} {said}"))
}

/// Whether a finding is that undeclared members are no longer accepted.
pub(crate) fn closes_object(finding: &Finding) -> bool {
    finding.kind == ChangeKind::ConstraintNarrowed
        && finding.detail.is_some()
        && (finding.path.ends_with("/additionalProperties")
            || finding.path.ends_with("/unevaluatedProperties"))
        && finding.after.as_deref() == Some("false")
}

fn is_model(audience: Audience<'_>) -> bool {
    match audience {
        Audience::Model(_) => true,
        Audience::Person => false,
    }
}

/// A kind of limit: its direction and the unit it counts.
struct Measure {
    is_lower: bool,
    /// The unit in singular and plural; `None` if the value itself is limited.
    unit: Option<(&'static str, &'static str)>,
    noun: &'static str,
}

fn measure(of: Limited) -> Measure {
    let (is_lower, unit, noun) = match of {
        Limited::Minimum => (true, None, "minimum"),
        Limited::Maximum => (false, None, "maximum"),
        Limited::MinLength => (true, Some(("character", "characters")), "minimum length"),
        Limited::MaxLength => (false, Some(("character", "characters")), "maximum length"),
        Limited::MinItems => (true, Some(("item", "items")), "minimum number of items"),
        Limited::MaxItems => (false, Some(("item", "items")), "maximum number of items"),
        Limited::MinProperties => (true, Some(("member", "members")), "minimum number of members"),
        Limited::MaxProperties => (false, Some(("member", "members")), "maximum number of members"),
    };
    Measure { is_lower, unit, noun }
}

fn limit(kind: ChangeKind, change: &LimitChange, audience: Audience<'_>) -> String {
    let measure = measure(change.of);
    let LimitChange { before, after, .. } = change;
    let is_one = |value: &Option<LimitValue>| value.as_ref().is_some_and(|it| it.number == "1");
    let is_count = measure.unit.is_some() && measure.is_lower;
    if is_count && before.is_none() && is_one(after) {
        return "may no longer be empty".to_owned();
    }
    if is_count && after.is_none() && is_one(before) {
        return "may be empty now".to_owned();
    }
    let noun = measure.noun;
    let was = before.as_ref().map(|before| format!(" (was {})", measure.number(before)));
    match (before, after) {
        (_, Some(same)) if kind == ChangeKind::MetadataChanged => {
            format!("must {}, as before", measure.bound(same))
        }
        (Some(before), None) => format!("no longer has a {noun} (was {})", measure.number(before)),
        (None, _) if is_model(audience) => format!("has a {noun} now"),
        (Some(_), Some(_)) if is_model(audience) => {
            let is_higher = measure.is_lower == (kind == ChangeKind::ConstraintNarrowed);
            let other = if is_higher { "a higher" } else { "a lower" };
            format!("has {other} {noun}{}", was.unwrap_or_default())
        }
        (_, Some(after)) => {
            let had = was.unwrap_or_else(|| format!(" (had no {noun})"));
            let is_wider = kind == ChangeKind::ConstraintWidened && !after.is_exclusive;
            match is_wider {
                true => format!("may {}{had}", measure.reach(after)),
                false => format!("must {}{had}", measure.bound(after)),
            }
        }
        (None, None) => format!("has a different {noun}"),
    }
}

impl Measure {
    fn number(&self, value: &LimitValue) -> String {
        let number = readable_number(&value.number);
        match (value.is_exclusive, self.is_lower) {
            (false, _) => number,
            (true, true) => format!("more than {number}"),
            (true, false) => format!("less than {number}"),
        }
    }

    /// Describes how far a value may go.
    fn reach(&self, value: &LimitValue) -> String {
        let number = self.number(value);
        match (self.unit, self.is_lower) {
            (None, true) => format!("be as low as {number}"),
            (None, false) => format!("be as high as {number}"),
            (Some(unit), true) => format!("have as few as {number} {}", self::unit(unit, value)),
            (Some(unit), false) => format!("have up to {number} {}", self::unit(unit, value)),
        }
    }

    fn bound(&self, value: &LimitValue) -> String {
        let number = self.number(value);
        let words = match (value.is_exclusive, self.is_lower) {
            (true, _) => "",
            (false, true) => "at least ",
            (false, false) => "at most ",
        };
        match self.unit {
            None => format!("be {words}{number}"),
            Some(unit) => format!("have {words}{number} {}", self::unit(unit, value)),
        }
    }
}

fn unit((one, many): (&'static str, &'static str), value: &LimitValue) -> &'static str {
    if value.number == "1" { one } else { many }
}

/// A number with thousands separators.
fn readable_number(number: &str) -> String {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    if digits.len() <= 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}")
}

fn listed(
    kind: ChangeKind,
    change: &ValueChange,
    values: Values,
    audience: Audience<'_>,
) -> Option<String> {
    let is_result = values == Values::Results;
    Some(match kind {
        ChangeKind::EnumValuesRemoved if !change.was_listed => {
            let only = if is_result { "is now always" } else { "now accepts only" };
            match (is_model(audience), &change.added) {
                // No value is left to list.
                (_, Listed { values, more: 0 }) if values.is_empty() => return None,
                (true, _) if is_result => "is now always a listed value".to_owned(),
                (true, _) => "now accepts only listed values".to_owned(),
                (false, added) => format!("{only} {}", either(added, audience)?),
            }
        }
        ChangeKind::EnumValuesRemoved => {
            let verb = if is_result { "is no longer" } else { "no longer accepts" };
            format!("{verb} {}", either(&change.removed, audience)?)
        }
        ChangeKind::EnumValuesAdded if !change.is_listed => {
            "is no longer limited to listed values".to_owned()
        }
        ChangeKind::EnumValuesAdded if is_model(audience) => return None,
        ChangeKind::EnumValuesAdded => {
            let verb = if is_result { "may also be" } else { "also accepts" };
            format!("{verb} {}", either(&change.added, audience)?)
        }
        _ => return None,
    })
}

/// `a`, `b` or 3 further values. For a model, only values that are safe to show.
fn either(listed: &Listed, audience: Audience<'_>) -> Option<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut more = listed.more;
    for value in &listed.values {
        let text = readable_value(value);
        match audience {
            Audience::Model(_) if shown_name(&text, true) != text => more += 1,
            Audience::Model(_) | Audience::Person => shown.push(format!("`{text}`")),
        }
    }
    match (shown.is_empty(), more) {
        (true, 0) => return None,
        (true, 1) => shown.push("a value that it listed".to_owned()),
        (true, _) => shown.push(format!("{more} values that it listed")),
        (false, 0) => {}
        (false, 1) => shown.push("1 further value".to_owned()),
        (false, _) => shown.push(format!("{more} further values")),
    }
    let last = shown.pop()?;
    Some(if shown.is_empty() { last } else { format!("{} or {last}", shown.join(", ")) })
}

/// A JSON value for use in backticks: a string loses its quotes unless it could then be mistaken
/// for another value.
pub(crate) fn readable_value(json: &str) -> String {
    let document = Document::parse(json);
    let text = document.as_ref().ok().and_then(|document| document.root().as_str());
    match text {
        Some(text)
            if !text.is_empty() && !text.contains('`') && Document::parse(&text).is_err() =>
        {
            escape_hidden(&text)
        }
        Some(_) | None => escape_hidden(json).replace('`', "\\u{60}"),
    }
}

fn types(kind: ChangeKind, change: &TypeChange) -> Option<String> {
    let TypeChange { before, after } = change;
    let is_any = |types: &[&str]| types.len() == TypeChange::ALL.len() && types.contains(&"number");
    let without = |types: &[&'static str], others: &[&'static str]| -> Vec<&'static str> {
        types.iter().copied().filter(|name| !others.contains(name)).collect()
    };
    let (lost, gained) = (without(before, after), without(after, before));
    Some(match kind {
        ChangeKind::ConstraintNarrowed => "no longer accepts any value".to_owned(),
        ChangeKind::TypeChanged if after.is_empty() || lost.is_empty() => return None,
        ChangeKind::TypeChanged if is_any(before) => {
            format!("must be {} (could be of any type)", one_of(after))
        }
        ChangeKind::TypeChanged if gained.is_empty() => {
            format!("may no longer be {}", one_of(&lost))
        }
        ChangeKind::TypeChanged => format!("must be {} (was {})", one_of(after), one_of(before)),
        ChangeKind::TypeWidened if is_any(after) => "may now be of any type".to_owned(),
        ChangeKind::TypeWidened if gained.is_empty() => return None,
        ChangeKind::TypeWidened if lost.is_empty() => {
            format!("may now also be {}", one_of(&gained))
        }
        ChangeKind::TypeWidened => format!("may now be {} (was {})", one_of(after), one_of(before)),
        _ => return None,
    })
}

fn one_of(types: &[&'static str]) -> String {
    let named: Vec<&str> = types
        .iter()
        .map(|name| match *name {
            "string" => "a string",
            "number" => "a number",
            "integer" => "an integer",
            "boolean" => "a boolean",
            "object" => "an object",
            "array" => "an array",
            other => other,
        })
        .collect();
    match named.as_slice() {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The sentence for a keyword whose values are in the excerpts.
fn keyword(finding: &Finding, audience: Audience<'_>) -> Option<String> {
    let is_narrower = match finding.kind {
        ChangeKind::ConstraintNarrowed => true,
        ChangeKind::ConstraintWidened => false,
        ChangeKind::DefaultChanged => return Some(default(finding, audience)),
        ChangeKind::HeaderBindingChanged => return Some(header(finding)),
        _ => return None,
    };
    let (before, after) = (shown(finding, &finding.before), shown(finding, &finding.after));
    let after = after.filter(|_| !is_model(audience));
    let was = match (&finding.before, before.filter(|_| !is_model(audience))) {
        (None, _) => " (had none)".to_owned(),
        (Some(_), Some(before)) => format!(" (was {before})"),
        (Some(_), None) => String::new(),
    };
    let other = if finding.before.is_some() { "another" } else { "a" };
    let name = finding.path.rsplit('/').next()?;
    Some(match (name, is_narrower) {
        ("pattern", true) => match after {
            Some(after) => format!("must match the pattern {after}{was}"),
            None => format!("must match {other} pattern"),
        },
        ("format", true) => match after {
            Some(after) => format!("must have the format {after}{was}"),
            None => format!("must have {other} format"),
        },
        ("multipleOf", true) => match after {
            Some(after) => format!("must be a multiple of {after}{was}"),
            None => format!("must be a multiple of {other} number"),
        },
        ("pattern", false) => "no longer has to match a pattern".to_owned(),
        ("format", false) => "no longer has to have a certain format".to_owned(),
        ("multipleOf", false) if finding.after.is_none() => {
            "no longer has to be a multiple of a number".to_owned()
        }
        ("uniqueItems", true) => "may no longer have an item twice".to_owned(),
        ("uniqueItems", false) => "may have an item twice now".to_owned(),
        ("additionalProperties" | "unevaluatedProperties", true) => {
            "no longer accepts every value in members that are not declared".to_owned()
        }
        ("additionalProperties" | "unevaluatedProperties", false) => {
            "may have members that are not declared now".to_owned()
        }
        _ => return None,
    })
}

/// An excerpt in backticks, if it is complete and short.
fn shown(finding: &Finding, text: &Option<String>) -> Option<String> {
    const LONGEST: usize = 80;
    let text = text.as_ref().filter(|text| finding.is_whole() && text.len() <= LONGEST)?;
    Some(format!("`{}`", readable_value(text)))
}

fn default(finding: &Finding, audience: Audience<'_>) -> String {
    let plain = |shown: &String| {
        let name = shown.trim_matches('`');
        !is_model(audience) || shown_name(name, true) == name
    };
    let before = shown(finding, &finding.before).filter(plain);
    let after = shown(finding, &finding.after).filter(|_| !is_model(audience));
    let was = before.map(|before| format!(" (was {before})"));
    let omitted = "calls that omit it may now mean something different";
    match (&finding.before, &finding.after) {
        (None, _) => match after {
            Some(after) => format!("now has the default {after}: {omitted}"),
            None => format!("now has a default: {omitted}"),
        },
        (Some(_), None) => format!("no longer has a default{}", was.unwrap_or_default()),
        (Some(_), Some(_)) => match after {
            Some(after) => {
                format!("now has the default {after}{}: {omitted}", was.unwrap_or_default())
            }
            None => format!("has a different default{}: {omitted}", was.unwrap_or_default()),
        },
    }
}

fn header(finding: &Finding) -> String {
    match (&finding.before, &finding.after) {
        (None, _) => "is now copied into a header".to_owned(),
        (Some(_), None) => "is no longer copied into a header".to_owned(),
        (Some(_), Some(_)) => "is now copied into a different header".to_owned(),
    }
}

/// The sentence about an output schema: its first change, and the number of further ones. `name`
/// returns the member that a change is about, in backticks.
pub(crate) fn results(
    finding: &Finding,
    name: impl Fn(&Finding) -> Option<String>,
    audience: Audience<'_>,
) -> Option<String> {
    let Some(Detail::Results(parts, more)) = &finding.detail else { return None };
    let part = parts.first()?;
    let said = result(part, name(part).as_deref(), audience);
    let more = more + parts.len() - 1;
    Some(match more {
        0 => said,
        1 => format!("{said} (and 1 more change of its results)"),
        _ => format!("{said} (and {more} more changes of its results)"),
    })
}

fn result(part: &Finding, name: Option<&str>, audience: Audience<'_>) -> String {
    let member = name.unwrap_or("a member");
    let subject = name.map_or("results".to_owned(), |name| format!("{name} in results"));
    match part.kind {
        ChangeKind::AddedOptionalParam => format!("results may now have {member}"),
        ChangeKind::AddedRequiredParam | ChangeKind::RequiredSetExpanded => {
            format!("results now always have {member}")
        }
        ChangeKind::RequiredSetReduced => format!("results may now lack {member}"),
        ChangeKind::RemovedParam => format!("results no longer declare {member}"),
        _ => match sentence(part, &subject, Values::Results, audience) {
            Some(sentence) => sentence,
            None => format!("the declared form of {subject} changed"),
        },
    }
}

#[cfg(test)]
mod tests;
