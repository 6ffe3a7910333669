//! `holdpoint help`: shows the help of a command, or the explanation of a `doctor` finding.

use crate::arguments::help::HelpCommand;
use crate::arguments::{Arguments, Options};
use crate::failure::{Exit, Failure};
use crate::layout::wrapped_at;
use crate::screen;
use crate::target::near;

/// The page that explains every finding of `doctor`. It is part of the binary, because `docs/` is not installed.
const DOCTOR: &str = include_str!("../../../docs/doctor.md");

pub(crate) fn run(command: &HelpCommand, options: &Options) -> Result<Exit, Failure> {
    let text = text_of(command)?;
    if options.json {
        screen::print_json(&serde_json::json!({ "topic": command.topic, "text": text }))?;
    } else {
        screen::print_raw(&text)?;
    }
    Ok(Exit::Fine)
}

fn text_of(command: &HelpCommand) -> Result<String, Failure> {
    if let [topic] = command.topic.as_slice()
        && let Some(code) = topic.strip_prefix("doctor#")
    {
        let section = section(DOCTOR, code).ok_or_else(|| unknown_code(code))?;
        return Ok(format!("{}\n", filled(&plain(section))));
    }
    let mut found = Arguments::definition();
    found.build();
    for word in &command.topic {
        let below = found.find_subcommand(word).filter(|below| !below.is_hide_set()).cloned();
        found = below.ok_or_else(|| unknown_command(word, &found))?;
    }
    Ok(found.render_help().to_string())
}

fn unknown_command(word: &str, parent: &clap::Command) -> Failure {
    let below = parent.get_subcommands().filter(|below| !below.is_hide_set());
    let names: Vec<&str> = below.map(clap::Command::get_name).collect();
    let list = if names.is_empty() { "it has no commands".to_owned() } else { names.join(", ") };
    Failure::usage(format!(
        "`{}` has no command `{word}`{}",
        parent.get_name(),
        guess(word, &names, &list)
    ))
}

fn unknown_code(code: &str) -> Failure {
    let codes: Vec<&str> = codes(DOCTOR).collect();
    Failure::usage(format!(
        "`doctor` has no finding `{code}`{}",
        guess(code, &codes, &codes.join(", "))
    ))
}

fn guess(typed: &str, known: &[&str], list: &str) -> String {
    match near(typed, known) {
        Some(meant) => format!(": did you mean `{meant}`?"),
        None => format!(": {list}"),
    }
}

/// The codes of the findings, from the page's headings.
fn codes(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("### "))
}

/// The section of a finding: from its heading to the next heading.
fn section<'p>(page: &'p str, code: &str) -> Option<&'p str> {
    let (_, from) = page.split_once(&format!("\n### {code}\n"))?;
    let end = ["\n## ", "\n### "].iter().filter_map(|heading| from.find(heading)).min();
    from.get(..end.unwrap_or(from.len())).map(str::trim)
}

/// Markdown as plain text: links by their text alone, no emphasis marks.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        match after.split_once("](").and_then(|(name, end)| Some((name, end.split_once(')')?.1))) {
            Some((name, end)) if !name.contains(']') => {
                out.push_str(name);
                rest = end;
            }
            _ => {
                out.push('[');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out.replace("**", "")
}

/// Fills paragraphs to the width of the terminal; lists, tables and code blocks stay as they are.
fn filled(text: &str) -> String {
    let Some(width) = screen::line_columns() else { return text.to_owned() };
    let is_prose = |paragraph: &str| {
        let is_kept = |line: &str| line.starts_with(['-', '|', ' ']);
        !paragraph.contains("```") && !paragraph.lines().next().is_some_and(is_kept)
    };
    let paragraphs = text.split("\n\n").map(|paragraph| match is_prose(paragraph) {
        true => wrapped_at(&paragraph.replace('\n', " "), width.min(100), 0).join("\n"),
        false => paragraph.to_owned(),
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_has_a_section_of_its_own() {
        let all: Vec<&str> = codes(DOCTOR).collect();
        assert!(all.len() > 30);
        for code in all {
            let section = section(DOCTOR, code).unwrap_or_default();
            assert!(section.starts_with("**") && !section.contains("\n#"), "{code}: {section}");
        }
        assert_eq!(section(DOCTOR, "unheard_of"), None);
    }

    #[test]
    fn markdown_is_shown_as_text() {
        assert_eq!(plain("**note.** [The home](home.md) is `[a]`."), "note. The home is `[a]`.");
    }
}
