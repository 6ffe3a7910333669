//! Renders plots as SVG without a library: one rate per row, with its bounds. The output is
//! deterministic.

use std::fmt::Write;

const ROW: f64 = 26.0;
const LEFT: f64 = 240.0;
const WIDTH: f64 = 420.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 56.0;

/// A rate with its bounds, its label and the note next to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub label: String,
    pub rate: f64,
    pub low: f64,
    pub high: f64,
    pub note: String,
}

/// Rates from 0 to 100 %, one per row, with bounds as whiskers. A dashed line marks `limit`, if
/// there is one.
pub fn rates(title: &str, rows: &[Row], limit: Option<f64>) -> String {
    let height = TOP + ROW * rows.len() as f64 + 24.0;
    let width = LEFT + WIDTH + RIGHT;
    let at = |rate: f64| LEFT + WIDTH * rate.clamp(0.0, 1.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{0}\">\n\
         <title>{0}</title>\n<style>text{{font:13px sans-serif;fill:#444}}.g{{stroke:#ccc}}.w{{stroke:#2a6f97;stroke-width:2}}.d{{fill:#2a6f97}}\
         @media(prefers-color-scheme:dark){{text{{fill:#ccc}}.g{{stroke:#555}}.w{{stroke:#61a5c2}}.d{{fill:#61a5c2}}}}</style>\n\
         <text x=\"8\" y=\"20\" style=\"font-weight:bold\">{0}</text>\n",
        escaped(title)
    );
    for tenth in (0..=10).step_by(2) {
        let (rate, bottom) = (f64::from(tenth) / 10.0, height - 18.0);
        let _ = writeln!(
            svg,
            "<line class=\"g\" x1=\"{0:.1}\" y1=\"{1:.1}\" x2=\"{0:.1}\" y2=\"{bottom:.1}\"/><text x=\"{0:.1}\" y=\"{2:.1}\" text-anchor=\"middle\">{3} %</text>",
            at(rate),
            TOP - 8.0,
            TOP - 14.0,
            tenth * 10
        );
    }
    if let Some(limit) = limit {
        let (x, bottom) = (at(limit), height - 18.0);
        let top = TOP - 8.0;
        let _ = writeln!(
            svg,
            "<line class=\"w\" stroke-dasharray=\"4 3\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>"
        );
    }
    for (number, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (number as f64 + 0.5);
        let (low, high, rate) = (at(row.low), at(row.high), at(row.rate));
        let _ = writeln!(
            svg,
            "<text x=\"8\" y=\"{0:.1}\">{1}</text><line class=\"w\" x1=\"{low:.1}\" y1=\"{y:.1}\" x2=\"{high:.1}\" y2=\"{y:.1}\"/>\
             <circle class=\"d\" cx=\"{rate:.1}\" cy=\"{y:.1}\" r=\"4\"/><text x=\"{2:.1}\" y=\"{0:.1}\">{3}</text>",
            y + 4.0,
            escaped(&row.label),
            LEFT + WIDTH + 12.0,
            escaped(&row.note)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_drawn_to_scale_and_escaped() {
        let row = Row {
            label: "a<b".to_owned(),
            rate: 0.5,
            low: 0.25,
            high: 2.0,
            note: "1 of 2".to_owned(),
        };
        let svg = rates("T & t", &[row], Some(0.9));
        assert!(svg.contains("a&lt;b") && svg.contains("T &amp; t") && !svg.contains("a<b"));
        assert!(
            svg.contains(r#"cx="450.0""#)
                && svg.contains(r#"x1="345.0""#)
                && svg.contains(r#"x2="660.0""#),
            "{svg}"
        );
    }
}
