//! Writes the tables and plots into a page, between two marks. The text around the marks is written
//! by hand and stays as it is.

use super::gate_table::GateFigures;
use super::screen_table::ScreenFigures;
use super::table::Table;
use crate::failure::Failure;
use std::path::Path;

const BEGIN: &str = "<!-- begin: holdpoint evaluate -->\n";
const END: &str = "<!-- end -->";
/// The folder of the plots, next to the page.
const PICTURES: &str = "pictures";

/// Writes the page and its plots; returns the written paths.
pub(super) fn write(
    page: &Path,
    gate: &GateFigures,
    screen: &ScreenFigures,
) -> Result<Vec<String>, Failure> {
    let named = |path: &Path, error: std::io::Error| {
        Failure::usage(format!("`{}`: {error}", path.display()))
    };
    let text = std::fs::read_to_string(page).map_err(|error| named(page, error))?;
    let Some((before, after)) = around(&text) else {
        return Err(Failure::usage(format!(
            "`{}` has no marks `{}` and `{END}`",
            page.display(),
            BEGIN.trim_end()
        )));
    };
    let folder = page.parent().unwrap_or(Path::new(".")).join(PICTURES);
    std::fs::create_dir_all(&folder).map_err(|error| named(&folder, error))?;
    let mut body = String::new();
    let mut written = Vec::new();
    for (tables, plots) in [(gate.tables(), gate.plots()), (screen.tables(), screen.plots())] {
        body.push_str(&tables.iter().map(Table::as_markdown).collect::<Vec<_>>().join("\n"));
        body.push('\n');
        for (name, svg) in plots {
            let path = folder.join(name);
            std::fs::write(&path, &svg).map_err(|error| named(&path, error))?;
            written.push(path.display().to_string());
            body.push_str(&format!("![{}]({PICTURES}/{name})\n\n", title(&svg)));
        }
    }
    std::fs::write(page, format!("{before}{BEGIN}\n{body}{END}{after}"))
        .map_err(|error| named(page, error))?;
    written.push(page.display().to_string());
    Ok(written)
}

/// The text before and after the marks.
fn around(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some((before, after))
}

/// The title of a plot, used as alternative text.
fn title(svg: &str) -> &str {
    let inside = svg.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    inside.map_or("plot", |(title, _)| title)
}
