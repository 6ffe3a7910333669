//! Puts the gate in front of an entry's server by changing the text.

use crate::address::{Parts, has_variables};
use crate::document::{Map, Member};
use crate::edit::{Editor, has_comment};
use crate::entry::{Form, Program, Remote};
use crate::guard::{self, ADDRESS_VARIABLE};
use crate::inverse::is_plain as is_plain_text;
use crate::render;
use crate::table::Shape;
use serde::{Deserialize, Serialize};

/// The entry's spelling before it was wired, stored to undo the wiring.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// The command as written, and its meaning. Set if the quotes alone are not enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<Spelled>,
    /// The quotes around the command, if we would write it differently. The command itself is in
    /// the wired entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quotes: Option<Around>,
    /// Whether there was a list of arguments, even an empty one.
    #[serde(default)]
    pub(crate) had_arguments: bool,
    /// The spelling of the map for headers or variables, if it was empty. `None` if our variable
    /// was inserted into it and the rest left unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) empty: Option<String>,
    /// The member with the address, without the address itself, which is in the wired entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<Around>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    /// The spelling of the headers' names, and of the member that contains them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) headers: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<Spelled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bearer: Option<Spelled>,
}

/// A text from the file, and its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spelled {
    pub(crate) text: String,
    pub(crate) meaning: String,
}

/// The text of a member before and after its address. If there is a comment between them, only the
/// member's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Around {
    pub(crate) before: String,
    pub(crate) behind: String,
}

impl Kept {
    /// Removes what may be a secret, before it is stored.
    pub(crate) fn cleaned(self) -> Kept {
        let quotes = |command: &Spelled| Around::of_text(&command.text, &command.meaning);
        let plain = |text: String| if is_plain_text(&text) { text } else { "{}".to_owned() };
        Kept {
            quotes: self.quotes.or_else(|| self.command.as_ref().and_then(quotes)),
            command: self.command.filter(Spelled::is_needed),
            empty: self.empty.map(plain),
            address: self.address.filter(Around::is_plain),
            ..self
        }
    }
}

impl Spelled {
    /// Whether more than the quotes must be stored for a command. Never for a command line, which
    /// may contain secrets.
    fn is_needed(&self) -> bool {
        let Spelled { text, meaning } = self;
        let is_word = !meaning.contains(|c: char| c.is_whitespace() || c == '=');
        is_word && *text != render::string(meaning) && Around::of_text(text, meaning).is_none()
    }
}

impl Around {
    /// From the text of a member: everything up to its value, and the value's quotes.
    pub(crate) fn of_member(text: &str) -> Around {
        let mark = text.find([':', '=']).map_or(0, |mark| mark + 1);
        let value = text.get(mark..).unwrap_or_default().trim_start();
        let before = text.get(..text.len() - value.len()).unwrap_or_default();
        let quote = value.get(..1).filter(|quote| QUOTES.contains(quote) && value.ends_with(quote));
        let quote = quote.unwrap_or_default();
        Around { before: format!("{before}{quote}"), behind: quote.to_owned() }
    }

    /// From a text with nothing but quotes around it. Returns `None` if we would write it the same
    /// way, or if there is anything else.
    fn of_text(text: &str, meaning: &str) -> Option<Around> {
        let (before, behind) = text.split_once(meaning)?;
        let is_quote = |text: &str| text.chars().all(|c| matches!(c, '"' | '\''));
        (text != render::string(meaning) && is_quote(before) && is_quote(behind))
            .then(|| Around { before: before.to_owned(), behind: behind.to_owned() })
    }

    fn is_plain(&self) -> bool {
        is_plain_text(&self.before) && is_plain_text(&self.behind)
    }

    /// The name of the member.
    pub(crate) fn name(&self) -> &str {
        self.before.split([':', '=']).next().unwrap_or_default().trim_end()
    }

    /// The text before a value that has its own quotes.
    pub(crate) fn before_quotes(&self) -> &str {
        self.before.strip_suffix(&self.behind).unwrap_or(&self.before)
    }

    pub(crate) fn has_quotes(&self) -> bool {
        QUOTES.contains(&self.behind.as_str())
    }
}

const QUOTES: [&str; 2] = ["\"", "'"];

/// Whether an address has the same meaning with any quotes, and without.
pub(crate) fn is_plain(url: &str) -> bool {
    url.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/[]%?=&+".contains(c))
}

/// How to start the gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate<'g> {
    pub(crate) program: &'g str,
    /// The home, if it is not the default one.
    pub(crate) home: Option<&'g str>,
    pub(crate) sandbox: Option<&'g str>,
    /// Whether the gate signs in to the server.
    pub(crate) signs_in: bool,
}

/// Puts the gate in front of a program.
pub(crate) fn program(
    editor: &mut Editor<'_>,
    launch: &Program<'_>,
    gate: Gate<'_>,
    shape: &Shape,
    id: &str,
) -> Kept {
    let mut words = guard::opening(id, gate.home, gate.sandbox);
    words.push("--".to_owned());
    match &launch.form {
        Form::OneList { list, .. } => {
            words.insert(0, gate.program.to_owned());
            editor.insert_words(&launch.command.node, list, &words);
            Kept { had_arguments: true, ..Kept::default() }
        }
        Form::Apart { program, arguments } => {
            let span = launch.command.node.span.clone();
            let text = editor.at(span.clone());
            let quotes = Around::of_text(text, program);
            let command = Spelled { text: text.to_owned(), meaning: (*program).to_owned() };
            let command = Some(command).filter(|_| quotes.is_none());
            editor.replace(span, render::string(gate.program));
            words.push((*program).to_owned());
            match arguments {
                Some((member, list)) => editor.insert_words(&member.node, list, &words),
                None => {
                    let added =
                        render::member(editor.syntax(), shape.arguments, &render::list(&words));
                    editor.insert_behind(launch.holder, launch.command, &added);
                }
            }
            Kept { command, quotes, had_arguments: arguments.is_some(), ..Kept::default() }
        }
    }
}

/// Replaces a connection with the gate: the host starts the gate, and the gate connects to the
/// server.
pub(crate) fn remote(
    editor: &mut Editor<'_>,
    map: &Map,
    launch: &Remote<'_>,
    gate: Gate<'_>,
    shape: &Shape,
    id: &str,
) -> Kept {
    let syntax = editor.syntax();
    let mut kept = Kept::default();
    if let Some((member, inner)) = launch.headers.or(launch.environment)
        && inner.members.is_empty()
    {
        let text = editor.at(member.node.span.clone());
        let is_kept = is_plain_text(text) && !has_comment(text);
        kept.empty = (is_kept || has_comment(text))
            .then(|| if is_kept { text.to_owned() } else { String::new() });
    }
    let parts = Parts::of(launch.url);
    // Other users of the machine can see a command line, and paths may contain keys too.
    let is_open = |parts: &Parts<'_>| parts.is_loopback() && !parts.has_credentials;
    // If the spelling of an address differs from its value, the spelling is moved unchanged.
    let spelled = editor.at(launch.address.node.span.clone());
    let place = spelled.find(launch.url).filter(|_| is_plain(launch.url));
    let is_hidden =
        !parts.as_ref().is_some_and(is_open) || has_variables(launch.url) || place.is_none();
    let mut words = guard::opening(id, gate.home, None);
    words.push("--url".to_owned());
    words.push(if is_hidden { format!("env:{ADDRESS_VARIABLE}") } else { launch.url.to_owned() });
    if parts.is_some_and(|parts| parts.is_nearby()) {
        words.push("--allow-private".to_owned());
    }
    if gate.signs_in {
        words.push(guard::SIGN_IN_SWITCH.to_owned());
    }
    if let Some((member, headers)) = launch.headers {
        rename_headers(editor, member, headers, shape, &mut words, &mut kept);
    }
    if let (Some(member), Some((_, passes))) = (launch.bearer, shape.bearer) {
        let variable = member.node.text().unwrap_or_default().to_owned();
        words.extend(["--header".to_owned(), format!("Authorization=bearer-env:{variable}")]);
        let span = Editor::member_span(member);
        kept.bearer =
            Some(Spelled { text: editor.at(span.clone()).to_owned(), meaning: variable.clone() });
        editor.replace(span, render::member(syntax, passes, &render::list(&[variable])));
    }
    if let Some(kind) = launch.kind {
        let span = kind.node.span.clone();
        kept.kind = Some(editor.at(span.clone()).to_owned());
        editor.replace(span, render::string(shape.started));
    }
    let Member { key_span, node, .. } = launch.address;
    let has_comment = editor.has_comment_inside(launch.address);
    let key_end = if has_comment { key_span.end } else { node.span.start };
    let key = editor.at(key_span.start..key_end);
    kept.address = Some(match place.and_then(|place| spelled.split_at_checked(place)) {
        Some((before, rest)) if !is_hidden && !has_comment => {
            let behind = rest.strip_prefix(launch.url).unwrap_or_default().to_owned();
            Around { before: format!("{key}{before}"), behind }
        }
        _ => Around { before: key.to_owned(), behind: String::new() },
    });
    let (command, mut others) = command_members(syntax, shape, gate.program, &words);
    if is_hidden {
        let variable = render::member(syntax, ADDRESS_VARIABLE, spelled);
        match launch.headers.or(launch.environment) {
            Some((member, inner)) => editor.insert_first(&member.node, inner, &variable),
            None => {
                let environment = render::map(&[variable]);
                others.push(render::member(syntax, shape.environment, &environment));
            }
        }
    }
    let separator = editor.separator(map, launch.address);
    let others: String = others.iter().map(|member| format!("{separator}{member}")).collect();
    if has_comment {
        editor.replace(key_span.clone(), render::key(syntax, shape.command));
        editor.replace(node.span.clone(), format!("{command}{others}"));
    } else {
        let command = render::member(syntax, shape.command, &command);
        editor.replace(Editor::member_span(launch.address), format!("{command}{others}"));
    }
    kept
}

/// The value of the member that names the program, and the members that must follow it.
fn command_members(
    syntax: crate::document::Syntax,
    shape: &Shape,
    program: &str,
    words: &[String],
) -> (String, Vec<String>) {
    if shape.one_list {
        let all: Vec<String> =
            std::iter::once(program.to_owned()).chain(words.iter().cloned()).collect();
        return (render::list(&all), Vec::new());
    }
    let arguments = render::member(syntax, shape.arguments, &render::list(words));
    (render::string(program), vec![arguments])
}

/// Converts headers to variables of the same entry. Only names change, so that no value is ever
/// rewritten.
fn rename_headers(
    editor: &mut Editor<'_>,
    member: &Member,
    headers: &Map,
    shape: &Shape,
    words: &mut Vec<String>,
    kept: &mut Kept,
) {
    let syntax = editor.syntax();
    kept.headers = Some(editor.at(member.key_span.clone()).to_owned());
    editor.replace(member.key_span.clone(), render::key(syntax, shape.environment));
    let names: Vec<&str> = headers.members.iter().map(|header| header.key.as_str()).collect();
    for (header, variable) in headers.members.iter().zip(guard::header_variables(&names)) {
        words.extend(["--header".to_owned(), format!("{}=env:{variable}", header.key)]);
        let text = editor.at(header.key_span.clone()).to_owned();
        editor.replace(header.key_span.clone(), render::key(syntax, &variable));
        kept.names.push(Spelled { text, meaning: header.key.clone() });
    }
}
