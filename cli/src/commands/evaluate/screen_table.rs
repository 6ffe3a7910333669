//! The screen's results: hostile texts by class, harmless texts, and the newest releases by
//! dimension.

use super::corpus::{Corpus, Label};
use super::table::{Table, at_least, at_most};
use ::screen::dimension::Dimension;
use ::screen::finding::{Finding, Severity};
use ::screen::grade::Grade;
use ::screen::reading::{Context, read};
use contract::json::escape_into;
use contract::surface::{Surface, read_capture};
use contract::time::Timestamp;
use measure::bounds::{lower, upper};
use measure::plot::{Row, rates};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many of a set have findings of at least a severity.
#[derive(Debug, Default, Clone, Copy)]
struct Found {
    high: usize,
    medium_or_high: usize,
    of: usize,
}

impl Found {
    fn count(&mut self, worst: Option<Severity>) {
        self.of += 1;
        self.high += usize::from(worst == Some(Severity::High));
        self.medium_or_high += usize::from(worst >= Some(Severity::Medium));
    }
}

#[derive(Debug)]
pub(super) struct ScreenFigures {
    classes: BTreeMap<(Label, String), Found>,
    /// Findings on the newest releases, by dimension.
    dimensions: BTreeMap<Dimension, Found>,
    servers: Found,
}

impl ScreenFigures {
    pub(super) fn of(corpus: &Corpus) -> ScreenFigures {
        let mut figures = ScreenFigures {
            classes: BTreeMap::new(),
            dimensions: BTreeMap::new(),
            servers: Found::default(),
        };
        for text in &corpus.texts {
            let class = text.class.clone().unwrap_or_else(|| "unnamed".to_owned());
            let worst = worst(&screened(&as_tool(&text.text), "a text"));
            figures.classes.entry((text.label, class)).or_default().count(worst);
        }
        for (package, newest) in corpus.newest() {
            let findings = screened(newest, package);
            figures.servers.count(worst(&findings));
            for &dimension in Dimension::ALL.iter().filter(|dimension| dimension.is_deterministic())
            {
                let of_it: Vec<Finding> = findings
                    .iter()
                    .filter(|finding| finding.dimension == dimension)
                    .cloned()
                    .collect();
                figures.dimensions.entry(dimension).or_default().count(worst(&of_it));
            }
        }
        figures
    }

    fn sum(&self, label: Label) -> Found {
        let of_label = self.classes.iter().filter(|((known, _), _)| *known == label);
        of_label.fold(Found::default(), |sum, (_, found)| Found {
            high: sum.high + found.high,
            medium_or_high: sum.medium_or_high + found.medium_or_high,
            of: sum.of + found.of,
        })
    }

    pub(super) fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        if !self.classes.is_empty() {
            tables.push(self.hostile());
            tables.push(self.benign());
        }
        tables.push(self.releases());
        tables
    }

    fn hostile(&self) -> Table {
        let hostile = self.classes.iter().filter(|((label, _), _)| *label == Label::Hostile);
        let row = |name: &str, found: Found| {
            vec![
                name.to_owned(),
                at_least(found.high, found.of),
                at_least(found.medium_or_high, found.of),
            ]
        };
        let mut rows: Vec<Vec<String>> =
            hostile.map(|((_, class), found)| row(class, *found)).collect();
        rows.push(row("all", self.sum(Label::Hostile)));
        Table {
            title: "Hostile texts that the screen finds, by class",
            head: vec!["class", "high", "medium or high"],
            rows,
            note: "Each text as the description of a tool; in brackets the one-sided 95 % bound. Classes are those of the texts' authors.".to_owned(),
        }
    }

    fn benign(&self) -> Table {
        let found = self.sum(Label::Benign);
        Table {
            title: "Harmless texts that the screen finds something in",
            head: vec!["texts", "high", "medium or high"],
            rows: vec![vec![
                "all".to_owned(),
                at_most(found.high, found.of),
                at_most(found.medium_or_high, found.of),
            ]],
            note: "Among them quotations and explanations of attacks.".to_owned(),
        }
    }

    fn releases(&self) -> Table {
        let row = |name: &str, found: &Found| {
            vec![
                name.to_owned(),
                at_most(found.high, found.of),
                at_most(found.medium_or_high, found.of),
            ]
        };
        let mut rows: Vec<Vec<String>> = self
            .dimensions
            .iter()
            .map(|(dimension, found)| row(dimension.as_str(), found))
            .collect();
        rows.push(row("any", &self.servers));
        Table {
            title: "Newest releases of published servers with a finding, by dimension",
            head: vec!["dimension", "high", "medium or high"],
            rows,
            note: "These are taken for harmless; no person has labelled them.".to_owned(),
        }
    }

    pub(super) fn document(&self) -> Value {
        let of = |found: &Found| {
            json!({ "high": found.high, "medium_or_high": found.medium_or_high, "of": found.of,
                "lower_95": lower(found.medium_or_high as f64, found.of as f64), "upper_95": upper(found.medium_or_high as f64, found.of as f64) })
        };
        let classes: Vec<Value> = self
            .classes
            .iter()
            .map(|((label, class), found)| json!({ "hostile": *label == Label::Hostile, "class": class, "found": of(found) }))
            .collect();
        let dimensions: Vec<Value> = self
            .dimensions
            .iter()
            .map(|(dimension, found)| json!({ "dimension": dimension, "found": of(found) }))
            .collect();
        json!({ "texts": classes, "releases": { "any": of(&self.servers), "dimensions": dimensions }, "labels": { "conforming": 0, "needed": 150 } })
    }

    pub(super) fn plots(&self) -> Vec<(&'static str, String)> {
        let rows: Vec<Row> = self
            .classes
            .iter()
            .filter(|((label, _), _)| *label == Label::Hostile)
            .map(|((_, class), found)| {
                let (hits, of) = (found.medium_or_high as f64, found.of as f64);
                let note = format!("{} of {}", found.medium_or_high, found.of);
                Row {
                    label: class.clone(),
                    rate: hits / of.max(1.0),
                    low: lower(hits, of),
                    high: upper(hits, of),
                    note,
                }
            })
            .collect();
        vec![(
            "evaluation-screen.svg",
            rates("Hostile texts found (medium or high), with 95 % bounds", &rows, None),
        )]
    }
}

fn worst(findings: &[Finding]) -> Option<Severity> {
    findings.iter().map(|finding| finding.severity).max()
}

fn screened(surface: &Surface, package: &str) -> Vec<Finding> {
    let names = vec![package.to_owned()];
    let context = Context { names, ..Context::new(Grade::Scanned, Timestamp(0)) };
    read(surface, &context).findings().cloned().collect()
}

/// A surface with one tool that has this text as its description.
fn as_tool(text: &str) -> Surface {
    let mut quoted = Vec::new();
    escape_into(text, &mut quoted);
    let text = String::from_utf8(quoted).unwrap_or_default();
    let tool =
        format!(r#"[{{"name":"a_tool","description":{text},"inputSchema":{{"type":"object"}}}}]"#);
    read_capture(tool.as_bytes()).unwrap_or_default()
}
