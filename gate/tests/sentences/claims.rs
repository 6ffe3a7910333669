//! Parses sentences as claims, form by form. A sentence of an unknown form is vague: it makes no
//! claim that can be checked.

use crate::schemas::{accepts, named, root, said};
use serde_json::{Value, json};

/// Whether a claim holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Truth {
    Shown,
    Undecided,
    Wrong(String),
}

/// What a sentence claims about a name.
#[derive(Debug)]
pub enum Claim {
    Vague(String),
    Exact { name: String, path: String, words: String },
}

/// The effect of a claimed change: a value is refused now, or is accepted now.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    RefusedNow,
    AcceptedNow,
}

impl Claim {
    pub fn read(sentence: &str, path: &str) -> Claim {
        let sentence = sentence.split(" (and ").next().unwrap_or(sentence);
        let exact = |name: &str, words: &str| Claim::Exact {
            name: name.to_owned(),
            path: path.to_owned(),
            words: words.to_owned(),
        };
        let forms =
            ["results may now lack ", "results may now have ", "results no longer declare "];
        for form in forms.into_iter().chain(["results now always have "]) {
            if let Some(name) = sentence.strip_prefix(form) {
                return exact(name.trim_matches('`'), form.trim());
            }
        }
        if sentence.starts_with("`destructiveHint: true`") {
            return exact("", "effective");
        }
        let (name, words) = match sentence.strip_prefix('`') {
            Some(rest) => match rest.split_once("` ") {
                Some((name, words)) => (name, words),
                None => return Claim::Vague(sentence.to_owned()),
            },
            None => match sentence.strip_prefix("its input ") {
                Some(words) => ("", words),
                None => return Claim::Vague(without_names(sentence)),
            },
        };
        let words = words.strip_prefix("in results ").unwrap_or(words);
        let vague = [
            "no longer accepts every",
            "may now refuse values",
            "accepts further",
            "accepts values that it refused",
            "has a different default:",
            "changed in a way",
            "is now declared, and may refuse",
            "now names its dialect",
            "no longer names its dialect",
            "names a different dialect",
            "has a different title",
            "no longer has a title",
            "now has null as its default",
            "no longer has null as its default",
            "is written differently",
            "is now copied",
            "is no longer copied",
        ];
        if vague.iter().any(|form| words.starts_with(form)) {
            let keyword = path.rsplit('/').next().unwrap_or_default();
            return Claim::Vague(format!("… {words} [{keyword}]"));
        }
        exact(name, words)
    }

    pub fn hold_against(&self, old: &Value, new: &Value) -> Truth {
        let Claim::Exact { name, path, words } = self else { return Truth::Undecided };
        let pair = Pair { old, new, name, path };
        if words == "effective" {
            let hint = |tool: &Value| tool["annotations"]["destructiveHint"].as_bool();
            let reads = |tool: &Value| tool["annotations"]["readOnlyHint"] == json!(true);
            let is_true = hint(old).is_none() && hint(new) == Some(true);
            return pair.truth(is_true && !reads(old) && !reads(new), "the hints differ");
        }
        if words.starts_with("results ") {
            return pair.results(words);
        }
        pair.claim(words)
    }
}

/// A sentence without its text in backticks.
fn without_names(sentence: &str) -> String {
    sentence.split('`').step_by(2).collect::<Vec<_>>().join("…")
}

struct Pair<'a> {
    old: &'a Value,
    new: &'a Value,
    name: &'a str,
    path: &'a str,
}

impl Pair<'_> {
    fn truth(&self, is_true: bool, why: &str) -> Truth {
        if is_true { Truth::Shown } else { Truth::Wrong(format!("{why} at {}", self.path)) }
    }

    /// Checks that at least one of the values is accepted on one side, and none of those on the
    /// other.
    fn changes(&self, values: &[Value], change: Change) -> Truth {
        let (from, to) = match change {
            Change::RefusedNow => (self.old, self.new),
            Change::AcceptedNow => (self.new, self.old),
        };
        let mut is_shown = false;
        for value in values {
            let is_in = |tool: &Value| accepts(tool, self.name, self.path, value);
            match (is_in(from), is_in(to)) {
                (Some(_), Some(true)) => {
                    return Truth::Wrong(format!("{value} is accepted on both sides"));
                }
                (Some(true), Some(false)) => is_shown = true,
                (Some(false), Some(false)) => {}
                (None, _) | (_, None) => return Truth::Undecided,
            }
        }
        if is_shown { Truth::Shown } else { Truth::Undecided }
    }

    fn claim(&self, words: &str) -> Truth {
        let empty = [json!([]), json!(""), json!({})];
        if words == "may no longer be empty" {
            return self.any_of(&empty, Change::RefusedNow);
        }
        if words == "may be empty now" {
            return self.any_of(&empty, Change::AcceptedNow);
        }
        for (form, change) in [
            ("no longer accepts ", Change::RefusedNow),
            ("is no longer `", Change::RefusedNow),
            ("also accepts ", Change::AcceptedNow),
            ("may also be ", Change::AcceptedNow),
        ] {
            if words.starts_with(form) && words.contains('`') {
                return self.values(words, change);
            }
        }
        if words == "no longer accepts any value" {
            return self.changes(&all_samples(), Change::RefusedNow);
        }
        if words.starts_with("now accepts only ") || words.starts_with("is now always ") {
            let new = accepts(self.new, self.name, self.path, &json!("no such value is listed"));
            return self.truth(new == Some(false), "a value that is not listed is accepted");
        }
        if words == "is no longer limited to listed values" {
            let listed = |tool| {
                !said(tool, self.name, self.path, "enum").is_empty()
                    || !said(tool, self.name, self.path, "const").is_empty()
            };
            return self.truth(listed(self.old) && !listed(self.new), "values are listed");
        }
        if let Some(types) = words.strip_prefix("may no longer be ") {
            return self.changes(&samples(types), Change::RefusedNow);
        }
        if let Some(types) = words.strip_prefix("may now also be ") {
            return self.changes(&samples(types), Change::AcceptedNow);
        }
        if words == "may now be of any type" {
            return self.truth(said(self.new, self.name, self.path, "type").is_empty(), "a type");
        }
        if words.contains(" default") {
            return self.default(words);
        }
        match words.split_whitespace().next() {
            Some("must" | "may") => self.must(words),
            Some("no") => self.no_longer(words),
            _ => Truth::Wrong(format!("nobody knows the form `{words}`")),
        }
    }

    /// Checks that one of the values changes, regardless of the others.
    fn any_of(&self, values: &[Value], change: Change) -> Truth {
        let mut truths =
            values.iter().map(|value| self.changes(std::slice::from_ref(value), change));
        let is_shown = truths.any(|truth| truth == Truth::Shown);
        self.truth(is_shown, "no empty value changes")
    }

    fn values(&self, words: &str, change: Change) -> Truth {
        let listed: Vec<&str> = words.split('`').skip(1).step_by(2).collect();
        let truths = listed.iter().map(|text| {
            let spelled = serde_json::from_str(text).ok();
            let candidates = [Some(json!(text)), spelled].into_iter().flatten();
            let truths: Vec<Truth> =
                candidates.map(|value| self.changes(&[value], change)).collect();
            match truths.contains(&Truth::Shown) {
                true => Truth::Shown,
                false => truths.into_iter().last().unwrap_or(Truth::Undecided),
            }
        });
        truths
            .max_by_key(|truth| match truth {
                Truth::Shown => 0,
                Truth::Undecided => 1,
                Truth::Wrong(_) => 2,
            })
            .unwrap_or(Truth::Undecided)
    }

    /// `must be an integer (was a string)`, `must be at most 5 (was 9)`, `may have up to 9 items (was 5)`, …
    fn must(&self, words: &str) -> Truth {
        for (form, keyword) in [
            ("must match the pattern `", "pattern"),
            ("must have the format `", "format"),
            ("must be a multiple of `", "multipleOf"),
        ] {
            if let Some(rest) = words.strip_prefix(form) {
                let value = rest.split('`').next().unwrap_or_default();
                return self.keyword(keyword, Some(value));
            }
        }
        for (form, keyword) in [
            ("must match a", "pattern"),
            ("must have a format", "format"),
            ("must have another format", "format"),
        ] {
            if words.starts_with(form) {
                return self.keyword(keyword, None);
            }
        }
        if words.contains("have an item twice") {
            let unique =
                |tool| said(tool, self.name, self.path, "uniqueItems").contains(&&json!(true));
            return self.truth(unique(self.old) != unique(self.new), "`uniqueItems`");
        }
        if words.contains("members that are not declared") {
            let said = |tool| said(tool, self.name, self.path, "additionalProperties");
            return self.truth(said(self.old) != said(self.new), "`additionalProperties`");
        }
        if let Some(limit) = Limit::read(words) {
            return self.limit(&limit);
        }
        // Types: none of the omitted ones is accepted.
        let types = words.trim_start_matches("must be ").trim_start_matches("may now be ");
        let (now, was) = types.split_once(" (").unwrap_or((types, ""));
        let others = |words: &str| -> Vec<Value> {
            all_samples().into_iter().filter(|value| !is_of(value, words)).collect()
        };
        let is_refused =
            |value: &Value| accepts(self.new, self.name, self.path, value) == Some(false);
        let is_true = others(now).iter().all(is_refused) && !was.is_empty();
        self.truth(is_true || words.starts_with("may now be "), "another type is accepted")
    }

    fn keyword(&self, keyword: &str, value: Option<&str>) -> Truth {
        let said = |tool| said(tool, self.name, self.path, keyword);
        let text = |value: &&Value| value.as_str().map_or(value.to_string(), str::to_owned);
        let is_said =
            value.is_none_or(|value| said(self.new).iter().map(text).any(|it| it == value));
        self.truth(is_said && said(self.old) != said(self.new), keyword)
    }

    /// `no longer has a maximum (was 5)`, `no longer has to match a pattern`
    fn no_longer(&self, words: &str) -> Truth {
        let keywords: &[&str] = match words {
            _ if words.contains("pattern") => &["pattern"],
            _ if words.contains("format") => &["format"],
            _ if words.contains("multiple of") => &["multipleOf"],
            _ if words.contains("has a minimum length") => &["minLength"],
            _ if words.contains("has a maximum length") => &["maxLength"],
            _ if words.contains("has a minimum number of items") => &["minItems"],
            _ if words.contains("has a maximum number of items") => &["maxItems"],
            _ if words.contains("has a minimum") => &["minimum", "exclusiveMinimum"],
            _ if words.contains("has a maximum") => &["maximum", "exclusiveMaximum"],
            _ => return Truth::Wrong(format!("nobody knows the form `{words}`")),
        };
        let is_said =
            |tool| keywords.iter().any(|word| !said(tool, self.name, self.path, word).is_empty());
        self.truth(is_said(self.old) && !is_said(self.new), "the keyword")
    }

    fn default(&self, words: &str) -> Truth {
        let of = |tool| -> Vec<String> {
            let found = named(tool, self.name, self.path);
            let defaults = found.iter().filter_map(|schema| schema.get("default"));
            defaults.map(|value| value.as_str().map_or(value.to_string(), str::to_owned)).collect()
        };
        let (old, new) = (of(self.old), of(self.new));
        let quoted: Vec<&str> = words.split('`').skip(1).step_by(2).collect();
        let plain = |text: &str| text.trim_matches('"').to_owned();
        let has =
            |values: &[String], text: &str| values.iter().any(|value| plain(value) == plain(text));
        let is_true = match words {
            _ if words.starts_with("no longer has a default") => {
                new.is_empty() && quoted.first().is_none_or(|was| has(&old, was))
            }
            _ if words.starts_with("now has the default") => {
                let was = quoted.get(1);
                has(&new, quoted[0]) && was.is_none_or(|was| has(&old, was)) && old != new
            }
            _ => old.is_empty() && !new.is_empty(),
        };
        self.truth(is_true, "the default")
    }

    fn limit(&self, limit: &Limit) -> Truth {
        let keywords: &[&str] = match (limit.unit.as_str(), limit.is_lower) {
            ("item" | "items", true) => &["minItems"],
            ("item" | "items", false) => &["maxItems"],
            ("character" | "characters", true) => &["minLength"],
            ("character" | "characters", false) => &["maxLength"],
            ("member" | "members", true) => &["minProperties"],
            ("member" | "members", false) => &["maxProperties"],
            _ => return self.bound(limit),
        };
        let said = |tool| -> Vec<f64> {
            let values = keywords.iter().flat_map(|word| said(tool, self.name, self.path, word));
            values.filter_map(Value::as_f64).collect()
        };
        let is_now = said(self.new).contains(&limit.now);
        let was = limit.was.is_none_or(|was| said(self.old).contains(&was));
        self.truth(is_now && was, "the count")
    }

    /// Checks a numeric bound with the numbers next to it.
    fn bound(&self, limit: &Limit) -> Truth {
        let step = if limit.is_lower { -1.0 } else { 1.0 };
        let number = |value: f64| match value.fract() == 0.0 && value.abs() < 9e15 {
            true => json!(value as i64),
            false => json!(value),
        };
        let is_in = |tool, value: f64| accepts(tool, self.name, self.path, &number(value));
        let beyond =
            |value: f64, is_exclusive: bool| if is_exclusive { value } else { value + step };
        let is_refused = is_in(self.new, beyond(limit.now, limit.is_exclusive)) == Some(false);
        let other = match (limit.change, limit.was) {
            (None, _) => is_in(self.old, beyond(limit.now, limit.is_exclusive)) == Some(false),
            // A value that the old bound admitted is refused, or one that the new bound admits was
            // refused.
            (Some(Change::RefusedNow), was) => {
                let value = match was {
                    Some(was) if limit.was_exclusive => was - step,
                    Some(was) => was,
                    None => beyond(limit.now, limit.is_exclusive),
                };
                return match (is_in(self.old, value), is_in(self.new, value)) {
                    (Some(true), Some(false)) => self.truth(is_refused, "the bound"),
                    (_, Some(false)) if is_refused => Truth::Undecided,
                    _ => Truth::Wrong("the new schema accepts what is beyond".to_owned()),
                };
            }
            (Some(Change::AcceptedNow), _) => is_in(self.old, limit.now) == Some(false),
        };
        self.truth(is_refused && other, "the bound")
    }

    fn results(&self, words: &str) -> Truth {
        let (parent, member) = self.name.rsplit_once('.').unwrap_or(("", self.name));
        let of = |tool: &Value| {
            let found = named(tool, parent, self.path);
            let all: Vec<&Value> = found
                .iter()
                .flat_map(|schema| crate::schemas::spread(root(tool, self.path), schema, 0))
                .collect();
            let is_declared = all.iter().any(|schema| {
                schema.get("properties").is_some_and(|members| members.get(member).is_some())
            });
            let is_required = all.iter().any(|schema| {
                let names = schema.get("required").and_then(Value::as_array);
                names.is_some_and(|names| names.contains(&json!(member)))
            });
            (is_declared, is_required)
        };
        let is_true = match (words, of(self.old), of(self.new)) {
            ("results may now lack", (_, was), (_, is)) => was && !is,
            ("results may now have", (was, _), (is, _)) => !was && is,
            ("results no longer declare", (was, _), (is, _)) => was && !is,
            (_, (_, was), (_, is)) => !was && is,
        };
        self.truth(is_true, words)
    }
}

/// A limit as described by a sentence.
#[derive(Debug)]
struct Limit {
    is_lower: bool,
    is_exclusive: bool,
    now: f64,
    unit: String,
    was: Option<f64>,
    was_exclusive: bool,
    /// `None` if it did not change.
    change: Option<Change>,
}

impl Limit {
    fn read(words: &str) -> Option<Limit> {
        let forms = [
            ("must be at least ", true, false),
            ("must be at most ", false, false),
            ("must be more than ", true, true),
            ("must be less than ", false, true),
            ("must have at least ", true, false),
            ("must have at most ", false, false),
            ("may be as low as ", true, false),
            ("may be as high as ", false, false),
            ("may have as few as ", true, false),
            ("may have up to ", false, false),
        ];
        let found = forms.into_iter().find_map(|(form, is_lower, is_exclusive)| {
            Some((words.strip_prefix(form)?, is_lower, is_exclusive))
        });
        let (rest, is_lower, is_exclusive) = found?;
        let is_same = rest.ends_with(", as before");
        let rest = rest.trim_end_matches(", as before");
        let (now, was) = rest.split_once(" (").unwrap_or((rest, ""));
        let (now, unit) = now.split_once(' ').unwrap_or((now, ""));
        let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
        let was = was.trim_start_matches("was ").trim_end_matches(')');
        let was_number = was.rsplit(' ').next().and_then(number);
        let change = match (is_same, words.starts_with("may ")) {
            (true, _) => None,
            (false, true) => Some(Change::AcceptedNow),
            (false, false) => Some(Change::RefusedNow),
        };
        Some(Limit {
            is_lower,
            is_exclusive,
            now: number(now)?,
            unit: unit.to_owned(),
            was: was_number,
            was_exclusive: was.contains("than"),
            change,
        })
    }
}

fn all_samples() -> Vec<Value> {
    vec![
        json!("text"),
        json!("2024-01-01"),
        json!(1),
        json!(1.5),
        json!(true),
        json!({}),
        json!([]),
        json!([{}]),
        json!(["text"]),
        json!(null),
    ]
}

fn is_of(value: &Value, words: &str) -> bool {
    match value {
        Value::String(_) => words.contains("string"),
        Value::Number(number) if number.is_i64() => {
            words.contains("integer") || words.contains("number")
        }
        Value::Number(_) => words.contains("number"),
        Value::Bool(_) => words.contains("boolean"),
        Value::Object(_) => words.contains("object"),
        Value::Array(_) => words.contains("array"),
        Value::Null => words.contains("null"),
    }
}

/// Sample values of the types that a sentence names.
fn samples(words: &str) -> Vec<Value> {
    all_samples().into_iter().filter(|value| is_of(value, words)).collect()
}
