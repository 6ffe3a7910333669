//! Exports receipts and events in the formats of other tools. Each format is a function from an
//! item to bytes.
//!
//! The exports contain nothing that is not in the ledger. Names, reasons and event data are
//! untrusted, so every format escapes characters that could break out of a field.

use crate::receipt::Item;
use std::fmt;
use std::str::FromStr;

mod cef;
mod csv;
mod ocsf;
mod text;

pub use ocsf::OCSF_VERSION;
use text::visible_json;
pub use text::{Weight, message, visible, weight_of};

/// An export format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line, as `receipts list --json` prints it.
    Jsonl,
    /// RFC 4180, with a header.
    Csv,
    /// One OCSF event per line, as JSON.
    Ocsf,
    /// ArcSight's Common Event Format, one event per line.
    Cef,
}

/// The format is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a format is one of `jsonl`, `csv`, `ocsf`, `cef`")]
pub struct BadFormat;

impl Format {
    pub const ALL: [Format; 4] = [Format::Jsonl, Format::Csv, Format::Ocsf, Format::Cef];

    pub const fn as_str(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
            Format::Ocsf => "ocsf",
            Format::Cef => "cef",
        }
    }

    /// Writes the header, if the format has one.
    pub fn write_header(self, out: &mut String) {
        match self {
            Format::Csv => csv::write_header(out),
            Format::Jsonl | Format::Ocsf | Format::Cef => {}
        }
    }

    /// Writes an item and its line ending.
    pub fn write(self, item: &Item, out: &mut String) -> Result<(), serde_json::Error> {
        match self {
            Format::Jsonl => out.push_str(&visible_json(&serde_json::to_string(item)?)),
            Format::Csv => return csv::write(item, out),
            Format::Ocsf => {
                let document = serde_json::to_string(&ocsf::document(item)?)?;
                out.push_str(&visible_json(&document));
            }
            Format::Cef => cef::write(item, out),
        }
        out.push('\n');
        Ok(())
    }
}

impl FromStr for Format {
    type Err = BadFormat;

    fn from_str(text: &str) -> Result<Self, BadFormat> {
        Format::ALL.into_iter().find(|format| format.as_str() == text).ok_or(BadFormat)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
