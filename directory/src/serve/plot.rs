//! Renders plots as SVG: no scripts, no inline styles, and a table next to each plot for screen
//! readers.

use maud::{Markup, html};

/// A bar: its label and the heights of its parts, from the bottom.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) parts: Vec<u64>,
}

/// The names of a bar's parts, from the bottom.
pub(super) struct Legend<'a> {
    pub(super) names: &'a [&'a str],
    /// The first colour; 0 and 1 are for alarming values.
    pub(super) first_colour: usize,
}

const WIDTH: u64 = 720;
const HEIGHT: u64 = 260;
const LEFT: u64 = 48;
const BOTTOM: u64 = 44;
const TOP: u64 = 12;
/// The number of labels on the axis, and how many of them fit on a phone.
const LABELS: usize = 12;
const LABELS_ON_A_PHONE: usize = 4;
/// The most bars that are drawn; the newest are kept.
pub(super) const MAX_BARS: usize = 120;

/// Stacked bars over time, with the same numbers in a table.
pub(super) fn bars(title: &str, id: &str, legend: &Legend<'_>, bars: &[Bar]) -> Markup {
    let bars = bars.get(bars.len().saturating_sub(MAX_BARS)..).unwrap_or_default();
    let highest = bars.iter().map(|bar| bar.parts.iter().sum::<u64>()).max().unwrap_or(0).max(1);
    let step = nice_step(highest);
    let top = highest.div_ceil(step) * step;
    let count = bars.len().max(1) as u64;
    let slot = (WIDTH - LEFT) / count;
    let every = bars.len().div_ceil(LABELS).max(1);
    let has_minor = bars.len().div_ceil(every) > LABELS_ON_A_PHONE;
    let label_class = |at: usize| match has_minor && (at / every) % 2 == 1 {
        true => "axis minor",
        false => "axis",
    };
    let place = |value: u64| HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top;
    html! {
        figure {
            figcaption id=(id) { (title) }
            @if bars.is_empty() {
                p.muted { "Nothing to show yet." }
            } @else {
                svg role="img" aria-labelledby=(id) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) {
                    @for line in 0..=top / step {
                        @let y = place(line * step);
                        line.grid x1=(LEFT) x2=(WIDTH) y1=(y) y2=(y) {}
                        text.axis x=(LEFT - 6) y=(y + 4) text-anchor="end" { (line * step) }
                    }
                    @for (at, bar) in bars.iter().enumerate() {
                        @let x = LEFT + slot * at as u64;
                        @let width = (slot * 4 / 5).clamp(1, 48);
                        @for (part, (from, to)) in stacked(&bar.parts).into_iter().enumerate() {
                            @if to > from {
                                rect class=(format!("part{}", part + legend.first_colour)) x=(x + (slot - width.min(slot)) / 2) width=(width)
                                    y=(place(to)) height=(place(from).saturating_sub(place(to)).max(1)) {}
                            }
                        }
                        @if at % every == 0 {
                            text class=(label_class(at)) x=(x + slot / 2) y=(HEIGHT - BOTTOM + 18) text-anchor="middle" { (bar.label) }
                        }
                    }
                }
                ul.legend {
                    @for (part, name) in legend.names.iter().enumerate() {
                        li { span class=(format!("key key{}", part + legend.first_colour)) aria-hidden="true" {} " " (name) }
                    }
                }
                details {
                    summary { "The same as a table" }
                    table {
                        thead { tr { th scope="col" { "When" } @for name in legend.names { th.number scope="col" { (name) } } } }
                        tbody {
                            @for bar in bars {
                                tr {
                                    th scope="row" { (bar.label) }
                                    @for part in &bar.parts { td.number { (part) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The start and end of each part of a bar.
fn stacked(parts: &[u64]) -> Vec<(u64, u64)> {
    let mut from = 0;
    parts
        .iter()
        .map(|part| {
            let place = (from, from + part);
            from += part;
            place
        })
        .collect()
}

/// A step of 1, 2 or 5 times a power of ten, so that at most six steps fit.
fn nice_step(highest: u64) -> u64 {
    let mut unit = 1;
    loop {
        for step in [unit, 2 * unit, 5 * unit] {
            if highest.div_ceil(step) <= 6 {
                return step;
            }
        }
        unit *= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        assert_eq!([1, 6, 7, 30, 31, 120, 121].map(nice_step), [1, 1, 2, 5, 10, 20, 50]);
    }

    #[test]
    fn a_plot_says_its_numbers_in_a_table_too() {
        let bar = Bar { label: "2026-01".to_owned(), parts: vec![2, 3] };
        let page = bars(
            "Drift",
            "drift",
            &Legend { names: &["breaking", "other"], first_colour: 0 },
            &[bar],
        )
        .into_string();
        assert!(page.contains("<td class=\"number\">3</td>") && page.contains("part1"), "{page}");
        assert!(!page.contains("style="), "{page}");
        assert!(
            bars("Drift", "drift", &Legend { names: &["a"], first_colour: 0 }, &[])
                .into_string()
                .contains("Nothing")
        );
    }
}
