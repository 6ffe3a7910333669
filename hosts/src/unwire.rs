//! Removes the gate again by changing the text: what other programs wrote in between stays.

use crate::document::{Map, Member, Node, Style, Syntax};
use crate::edit::Editor;
use crate::entry::{Form, Program};
use crate::guard::{ADDRESS_VARIABLE, Behind, Guarded};
use crate::render;
use crate::table::Shape;
use crate::wire::{Around, Kept, is_plain};

/// Why a wired entry cannot be taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unclear;

/// Removes the gate. Without the stored spelling, the entry itself contains enough information to
/// restore its meaning.
pub(crate) fn entry(
    editor: &mut Editor<'_>,
    map: &Map,
    launch: &Program<'_>,
    guarded: &Guarded,
    kept: Option<&Kept>,
    shape: &Shape,
) -> Result<(), Unclear> {
    match &guarded.behind {
        Behind::Program(at) => program(editor, launch, *at, kept),
        Behind::Address { url, headers } => {
            remote(editor, map, launch, url, headers, kept.unwrap_or(&Kept::default()), shape)
        }
    }
}

fn program(
    editor: &mut Editor<'_>,
    launch: &Program<'_>,
    at: usize,
    kept: Option<&Kept>,
) -> Result<(), Unclear> {
    match &launch.form {
        Form::OneList { list, .. } => editor.remove_words(list, at + 1),
        Form::Apart { arguments, .. } => {
            let (member, list) = arguments.ok_or(Unclear)?;
            let name = list.items.get(at).and_then(|item| item.text()).ok_or(Unclear)?;
            editor.replace(launch.command.node.span.clone(), spelling(kept, name));
            let had_arguments = kept.is_none_or(|kept| kept.had_arguments);
            if list.items.len() == at + 1 && !had_arguments {
                editor.remove(launch.holder, member);
            } else {
                editor.remove_words(list, at + 1);
            }
        }
    }
    Ok(())
}

/// The original spelling of a command if it still has the same meaning, otherwise the meaning in
/// the original quotes.
fn spelling(kept: Option<&Kept>, meaning: &str) -> String {
    let spelled = kept.and_then(|kept| kept.command.as_ref());
    if let Some(spelled) = spelled.filter(|spelled| spelled.meaning == meaning) {
        return spelled.text.clone();
    }
    match kept.and_then(|kept| kept.quotes.as_ref()) {
        Some(Around { before, behind }) => format!("{before}{meaning}{behind}"),
        None => render::string(meaning),
    }
}

fn remote(
    editor: &mut Editor<'_>,
    map: &Map,
    launch: &Program<'_>,
    url: &str,
    headers: &[(String, String)],
    kept: &Kept,
    shape: &Shape,
) -> Result<(), Unclear> {
    let syntax = editor.syntax();
    let environment =
        map.member(shape.environment).and_then(|member| Some((member, member.node.map()?)));
    let hidden = environment.and_then(|(_, inner)| inner.member(ADDRESS_VARIABLE));
    let is_hidden = url.starts_with("env:");
    let spelled = match is_hidden {
        false => render::string(url),
        true => editor.at(hidden.ok_or(Unclear)?.node.span.clone()).to_owned(),
    };
    let name = shape.addresses.first().ok_or(Unclear)?.member;
    let has_comment = editor.has_comment_inside(launch.command);
    let mut address = match &kept.address {
        _ if has_comment => spelled,
        // For an address in an argument, the stored text has the quotes. For one in a variable,
        // they were moved with it.
        Some(around) if is_hidden => format!("{}{spelled}", around.before_quotes()),
        // Only YAML allows an unquoted address.
        Some(around) if !around.has_quotes() && syntax != Syntax::Yaml => {
            format!("{}{spelled}", around.before)
        }
        Some(around) if is_plain(url) => format!("{}{url}{}", around.before, around.behind),
        _ => render::member(syntax, name, &spelled),
    };
    if let Some(added) = variables_back(editor, environment, map, headers, kept, shape)? {
        address = format!("{address}{}{added}", editor.separator(map, launch.command));
    }
    if has_comment {
        let key = kept.address.as_ref().map(|around| around.name().to_owned());
        let key = key.unwrap_or_else(|| render::key(syntax, name));
        editor.replace(launch.command.key_span.clone(), key);
        editor.replace(launch.command.node.span.clone(), address);
    } else {
        editor.replace(Editor::member_span(launch.command), address);
    }
    if let Form::Apart { arguments: Some((member, _)), .. } = &launch.form {
        editor.remove(launch.holder, member);
    }
    if let Some(kind) = map.member(shape.kind) {
        let usual = || render::string(shape.streamable.first().unwrap_or(&"http"));
        editor.replace(kind.node.span.clone(), kept.kind.clone().unwrap_or_else(usual));
    }
    bearer_back(editor, map, headers, kept, shape);
    Ok(())
}

/// Converts our variables back to headers. Returns a member to add if the entry has other variables
/// too.
fn variables_back(
    editor: &mut Editor<'_>,
    environment: Option<(&Member, &Map)>,
    map: &Map,
    headers: &[(String, String)],
    kept: &Kept,
    shape: &Shape,
) -> Result<Option<String>, Unclear> {
    let Some((member, inner)) = environment else { return Ok(None) };
    let syntax = editor.syntax();
    let header_of = |variable: &str| {
        headers.iter().find(|(_, source)| source.strip_prefix("env:") == Some(variable))
    };
    let is_ours =
        |member: &&Member| member.key == ADDRESS_VARIABLE || header_of(&member.key).is_some();
    let is_all_ours = inner.members.iter().all(|member| is_ours(&member));
    let hidden = inner.member(ADDRESS_VARIABLE);
    let count = inner.members.iter().filter(|member| header_of(&member.key).is_some()).count();
    if is_all_ours && (count > 0 || kept.headers.is_some()) {
        let name = kept.headers.clone().unwrap_or_else(|| render::key(syntax, shape.headers));
        editor.replace(member.key_span.clone(), name);
        for variable in &inner.members {
            let Some((header, _)) = header_of(&variable.key) else { continue };
            let spelled = kept.names.iter().find(|spelled| spelled.meaning == *header);
            let name =
                spelled.map_or_else(|| render::key(syntax, header), |spelled| spelled.text.clone());
            editor.replace(variable.key_span.clone(), name);
        }
        if let Some(hidden) = hidden {
            take_away(editor, &member.node, inner, hidden, kept);
        }
        return Ok(None);
    }
    if is_all_ours && hidden.is_some() && kept.empty.is_none() && can_go(syntax, inner) {
        editor.remove(map, member);
        return Ok(None);
    }
    let mut added = Vec::new();
    for variable in inner.members.iter().filter(is_ours) {
        if let Some((header, _)) = header_of(&variable.key) {
            let value = editor.at(variable.node.span.clone());
            added.push(render::member(syntax, header, value));
        }
        take_away(editor, &member.node, inner, variable, kept);
    }
    Ok((!added.is_empty()).then(|| render::member(syntax, shape.headers, &render::map(&added))))
}

/// Removes one of several variables. If it was the only one, an empty map is left, as it was
/// before.
fn take_away(editor: &mut Editor<'_>, node: &Node, inner: &Map, member: &Member, kept: &Kept) {
    match &kept.empty {
        Some(empty) if inner.members.len() == 1 && empty.is_empty() => {
            editor.replace(Editor::member_span(member), "");
        }
        Some(empty) if inner.members.len() == 1 => editor.replace(node.span.clone(), empty.clone()),
        _ => editor.remove(inner, member),
    }
}

/// A TOML table with its own heading is more than a member, so it is left, even if empty.
fn can_go(syntax: Syntax, map: &Map) -> bool {
    syntax != Syntax::Toml || map.style == Style::Flow
}

fn bearer_back(
    editor: &mut Editor<'_>,
    map: &Map,
    headers: &[(String, String)],
    kept: &Kept,
    shape: &Shape,
) {
    let Some((name, passes)) = shape.bearer else { return };
    let variable = headers.iter().find_map(|(_, source)| source.strip_prefix("bearer-env:"));
    let (Some(variable), Some(member)) = (variable, map.member(passes)) else { return };
    let text = match &kept.bearer {
        Some(spelled) if spelled.meaning == variable => spelled.text.clone(),
        _ => render::member(editor.syntax(), name, &render::string(variable)),
    };
    editor.replace(Editor::member_span(member), text);
}
