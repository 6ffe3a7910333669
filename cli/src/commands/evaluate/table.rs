//! Tables as text and as Markdown.

use measure::bounds::{lower, upper};

#[derive(Debug)]
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// A sentence on how to read the table.
    pub(super) note: String,
}

impl Table {
    pub(super) fn as_text(&self) -> String {
        let mut widths: Vec<usize> = self.head.iter().map(|cell| cell.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = format!("{}\n{}", self.title, aligned(self.head.iter().copied(), &widths));
        for row in &self.rows {
            text.push_str(&aligned(row.iter().map(String::as_str), &widths));
        }
        text.push_str(&format!("  {}\n", self.note));
        text
    }

    pub(super) fn as_markdown(&self) -> String {
        let mut text = format!("### {}\n\n{}", self.title, barred(self.head.iter().copied()));
        text.push_str(&barred(self.head.iter().map(|_| "---")));
        for row in &self.rows {
            text.push_str(&barred(row.iter().map(String::as_str)));
        }
        text.push_str(&format!("\n{}\n", textwrap::fill(&self.note, 100)));
        text
    }
}

fn aligned<'c>(cells: impl Iterator<Item = &'c str>, widths: &[usize]) -> String {
    let padded: Vec<String> =
        cells.zip(widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
    format!("  {}\n", padded.join("  ").trim_end())
}

fn barred<'c>(cells: impl Iterator<Item = &'c str>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// `17 of 18 (≥ 76.2 %)`: a rate that should be high, with its lower bound.
pub(super) fn at_least(hits: usize, of: usize) -> String {
    format!("{hits} of {of} (≥ {:.1} %)", 100.0 * lower(hits as f64, of as f64))
}

/// `0 of 70 (≤ 4.2 %)`: a rate that should be low, with its upper bound.
pub(super) fn at_most(hits: usize, of: usize) -> String {
    format!("{hits} of {of} (≤ {:.1} %)", 100.0 * upper(hits as f64, of as f64))
}
