//! Putting the gate in front of an entry's server, as changes to the text.

use crate::address::{Parts, has_variables};
use crate::document::{Map, Member};
use crate::edit::Editor;
use crate::entry::{Form, Program, Remote};
use crate::guard::{self, ADDRESS_VARIABLE};
use crate::render;
use crate::table::Shape;
use serde::{Deserialize, Serialize};

/// What an entry said before it was wired, in its own spelling, for the way back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// The command, as written and what it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<Spelled>,
    /// There was a list of arguments, were it empty.
    #[serde(default)]
    pub(crate) had_arguments: bool,
    /// How the map was spelled that had no headers or no variables in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) empty: Option<String>,
    /// The member with the address, without the address: that is in the wired entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<Around>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    /// How the names of the headers, and of the member that has them, were spelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) headers: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<Spelled>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bearer: Option<Spelled>,
}

/// A text of the file, and what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Spelled {
    pub(crate) text: String,
    pub(crate) meaning: String,
}

/// What is before and behind an address in the text of its member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Around {
    pub(crate) before: String,
    pub(crate) behind: String,
}

impl Around {
    /// Of the text of a member: all up to its value.
    pub(crate) fn of_member(text: &str) -> Around {
        let mark = text.find([':', '=']).map_or(0, |mark| mark + 1);
        let value = text.get(mark..).unwrap_or_default().trim_start();
        let before = text.get(..text.len() - value.len()).unwrap_or_default().to_owned();
        Around { before, behind: String::new() }
    }
}

/// Whether an address reads the same in any quotes, and without.
pub(crate) fn is_plain(url: &str) -> bool {
    url.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/[]%?=&+".contains(c))
}

/// How the gate is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate<'g> {
    pub(crate) program: &'g str,
    /// The home, where it is not the usual one.
    pub(crate) home: Option<&'g str>,
}

/// Puts the gate in front of a program.
pub(crate) fn program(
    editor: &mut Editor<'_>,
    launch: &Program<'_>,
    gate: Gate<'_>,
    shape: &Shape,
    id: &str,
) -> Kept {
    let mut words = guard::opening(id, gate.home);
    words.push("--".to_owned());
    match &launch.form {
        Form::OneList { list, .. } => {
            words.insert(0, gate.program.to_owned());
            editor.insert_words(&launch.command.node, list, &words);
            Kept { had_arguments: true, ..Kept::default() }
        }
        Form::Apart { program, arguments } => {
            let span = launch.command.node.span.clone();
            let command = Spelled {
                text: editor.at(span.clone()).to_owned(),
                meaning: (*program).to_owned(),
            };
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
            Kept { command: Some(command), had_arguments: arguments.is_some(), ..Kept::default() }
        }
    }
}

/// Puts the gate in the place of a connection: the host starts the gate, and the gate reaches the server.
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
        kept.empty = Some(editor.at(member.node.span.clone()).to_owned());
    }
    let parts = Parts::of(launch.url);
    // What is on a command line can be seen by everybody on the machine, and keys are also kept in paths.
    let is_open = |parts: &Parts<'_>| parts.is_loopback() && !parts.has_credentials;
    // An address that is spelled in some other way than it reads is moved as it is spelled.
    let spelled = editor.at(launch.address.node.span.clone());
    let place = spelled.find(launch.url).filter(|_| is_plain(launch.url));
    let is_hidden =
        !parts.as_ref().is_some_and(is_open) || has_variables(launch.url) || place.is_none();
    let mut words = guard::opening(id, gate.home);
    words.push("--url".to_owned());
    words.push(if is_hidden { format!("env:{ADDRESS_VARIABLE}") } else { launch.url.to_owned() });
    if parts.is_some_and(|parts| parts.is_nearby()) {
        words.push("--allow-private".to_owned());
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
    let span = Editor::member_span(launch.address);
    let key = editor.at(span.start..launch.address.node.span.start);
    kept.address = Some(match place.and_then(|place| spelled.split_at_checked(place)) {
        Some((before, rest)) if !is_hidden => {
            let behind = rest.strip_prefix(launch.url).unwrap_or_default().to_owned();
            Around { before: format!("{key}{before}"), behind }
        }
        _ => Around { before: key.to_owned(), behind: String::new() },
    });
    let mut members = command_members(syntax, shape, gate.program, &words);
    if is_hidden {
        let variable = render::member(syntax, ADDRESS_VARIABLE, spelled);
        match launch.headers.or(launch.environment) {
            Some((member, inner)) => editor.insert_first(&member.node, inner, &variable),
            None => {
                let environment = render::map(&[variable]);
                members.push(render::member(syntax, shape.environment, &environment));
            }
        }
    }
    let separator = editor.separator(map, launch.address);
    editor.replace(span, members.join(&separator));
    kept
}

/// The members that start a program.
fn command_members(
    syntax: crate::document::Syntax,
    shape: &Shape,
    program: &str,
    words: &[String],
) -> Vec<String> {
    if shape.one_list {
        let all: Vec<String> =
            std::iter::once(program.to_owned()).chain(words.iter().cloned()).collect();
        return vec![render::member(syntax, shape.command, &render::list(&all))];
    }
    vec![
        render::member(syntax, shape.command, &render::string(program)),
        render::member(syntax, shape.arguments, &render::list(words)),
    ]
}

/// Headers become variables of the same entry: only names change, so that no value is ever written anew.
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
