//! Turns the text of a file into the text with the gate in it, and back. Pure: it reads and writes
//! no files.
//!
//! INVARIANT: the result has been parsed again, and its meaning is unchanged except for the
//! selected entries.

mod expect;
mod gateway;
mod ownership;

use crate::document::{Map, Node, Syntax, SyntaxError, Value, parse};
use crate::edit::Editor;
use crate::entry::{self, Entry, GATEWAY_NAME, Launch, Reason, Remote, launch};
use crate::guard::{self, Behind, Guarded, is_program};
use crate::identity::server_id;
use crate::inverse::Inverse;
use crate::launches::{FoundLaunch, GuardedLaunch};
use crate::place::{PlaceError, Step, entries};
use crate::table::{Host, Shape};
use crate::unwire;
use crate::wire::{self, Gate, Kept};
pub use gateway::{GatewayEntry, GatewayError, GatewayKey, add_gateway};
use ownership::Ownership;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The byte order mark that some editors put before a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Why a file's text cannot be processed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("it could not be changed without changing other text: please report this")]
    Unsafe,
}

/// The host of a file, and how to start the gate.
#[derive(Debug, Clone, Copy)]
pub struct Manner<'m> {
    pub host: &'static Host,
    pub syntax: Syntax,
    /// Distinguishes servers of this file from those with the same name in the host's main file.
    pub apart: Option<&'m str>,
    pub program: &'m str,
    /// The home, if it is not the default one; written into every entry.
    pub home: Option<&'m str>,
    /// The home, even if it is the default one; written if an entry's own variables would lead
    /// elsewhere.
    pub own_home: Option<&'m str>,
    /// The profile that programs are confined by, if they are confined.
    pub sandbox: Option<&'m str>,
    /// Ids of servers in other files, which must not be assigned again.
    pub taken: Option<&'m BTreeSet<String>>,
}

/// Which servers are selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// By name or id; if empty, all servers.
    pub servers: Vec<String>,
    /// A person confirmed that remote servers without credentials need no sign-in.
    pub is_open: bool,
    /// A person chose that the gate, instead of the host, signs in to remote servers without
    /// credentials.
    pub signs_in: bool,
    /// Entries whose program no longer exists are pointed to ours.
    pub gone: BTreeSet<String>,
    /// Points hosts at this gateway instead of putting a gate in front of their servers.
    pub gateway: Option<GatewayEntry>,
    /// Also removes gates that a person wrote, even if they are not named, because nothing remains
    /// that could start them.
    pub by_hand: bool,
}

impl Choice {
    /// Whether the gate signs in to a server. One on this machine must be named, because few of
    /// those require it.
    fn signs_in_to(&self, remote: &Remote<'_>, shape: &Shape) -> bool {
        let is_named = !self.servers.is_empty();
        let needs = remote.obstacle(shape, false) == Some(Reason::SignIn);
        self.signs_in && (needs || is_named && !remote.has_credentials())
    }

    /// Whether remote servers without credentials are included.
    fn lifts_sign_in(&self) -> bool {
        self.is_open || self.signs_in
    }

    /// Whether to remove a gate. One that `wire` did not add must be named.
    fn takes_back(&self, server: &Server, is_ours: bool) -> bool {
        self.takes(server) && (is_ours || self.by_hand || !self.servers.is_empty())
    }

    fn takes(&self, server: &Server) -> bool {
        self.servers.is_empty()
            || self.servers.iter().any(|wanted| *wanted == server.name || *wanted == server.id)
    }
}

/// A server in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    /// The project that it belongs to, if the file covers several projects.
    pub project: Option<String>,
    /// The id that it has, or would get.
    pub id: String,
    pub state: WiringState,
    /// Whether the entry names our program, even if its host may use another part of the entry.
    pub names_gate: bool,
}

impl Server {
    /// Whether its calls pass through a gate or a gateway.
    pub fn is_guarded(&self) -> bool {
        match self.state {
            WiringState::Wired { .. } | WiringState::Gateway { .. } => true,
            WiringState::Unwired | WiringState::Unguarded(_) => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WiringState {
    /// Can be wired.
    Unwired,
    Wired {
        /// The command of the entry.
        program: String,
        /// Whether the command is a package manager that fetches and starts the gate.
        is_fetched: bool,
        /// Whether the id is written in the entry. It may be missing if a person wired the server.
        has_id: bool,
        /// The options of `run` in the entry, with their values, in order.
        options: Vec<(String, String)>,
        /// The entry's variables that affect how the gate itself runs: its home and user, where its
        /// program is found, what is loaded into it. The entry's other variables belong to the
        /// server, and may be secrets.
        variables: Vec<(String, String)>,
        /// The file from which the host reads additional variables, as the entry names it.
        env_file: Option<String>,
    },
    /// Leads to a gateway, which guards the servers behind it.
    Gateway { url: String },
    /// Is left unchanged.
    Unguarded(Reason),
}

/// The changed texts of one entry, and their previous spelling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wiring {
    pub(crate) place: Vec<Step>,
    pub(crate) id: String,
    pub(crate) kept: Kept,
}

/// A changed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    pub text: String,
    /// The servers that were changed.
    pub changed: Vec<Server>,
    /// After wiring: what to store for undoing it.
    pub wirings: Vec<Wiring>,
    /// The removed and added text of each changed server, in order. Addresses are truncated,
    /// because they may contain a key.
    pub parts: Vec<Vec<Part>>,
}

/// One change in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub removed: String,
    pub added: String,
}

/// Splits off the byte order mark.
fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => (text.get(..text.len() - body.len()).unwrap_or_default(), body),
        None => ("", text),
    }
}

/// The servers in a text.
pub fn servers(text: &str, manner: &Manner<'_>) -> Result<Vec<Server>, TextError> {
    let (_, body) = split_mark(text);
    let root = parse(manner.syntax, body)?;
    let found = entries(root.as_ref(), manner.host)?;
    Ok(described(&found, manner, false))
}

/// Every entry with its id and state. Ids that are written in the text come first and are not
/// assigned to other entries.
fn described(found: &[Entry<'_>], manner: &Manner<'_>, is_open: bool) -> Vec<Server> {
    let mut taken: BTreeSet<String> = manner.taken.cloned().unwrap_or_default();
    let mut described: Vec<(Option<String>, WiringState)> = Vec::new();
    for entry in found {
        let (id, state) = state(entry, manner, is_open);
        taken.extend(id.clone());
        described.push((id, state));
    }
    let with_entries = found.iter().zip(described);
    with_entries
        .map(|(entry, (id, state))| {
            let id = id.unwrap_or_else(|| free_id(entry, manner, &mut taken));
            let (name, project) = (entry.name.clone(), entry.project.clone());
            let names_gate = entry::names_gate(entry, manner.host.shape);
            Server { name, project, id, state, names_gate }
        })
        .collect()
}

fn state(entry: &Entry<'_>, manner: &Manner<'_>, is_open: bool) -> (Option<String>, WiringState) {
    let shape = manner.host.shape;
    if let Some(url) = entry::gateway_address(entry, shape) {
        return (None, WiringState::Gateway { url: url.to_owned() });
    }
    match launch(entry, shape) {
        Err(reason) => (None, WiringState::Unguarded(reason)),
        Ok(Launch::Remote(remote)) => match remote.obstacle(shape, is_open) {
            Some(reason) => (None, WiringState::Unguarded(reason)),
            None => (None, WiringState::Unwired),
        },
        // The entry keeps its id, so no other entry may get it.
        Ok(Launch::Program(program)) if entry::has_address(entry) => {
            let id = program.guarded().and_then(|guarded| guarded.server);
            (id, WiringState::Unguarded(Reason::TwoWays))
        }
        Ok(Launch::Program(program)) => match program.guarded() {
            Some(guarded) => {
                let Guarded { server, options, is_fetched, .. } = guarded;
                let (program, has_id) = (program.name().to_owned(), server.is_some());
                let variables = own_variables(entry, manner);
                let env_file = entry::env_file(entry).map(str::to_owned);
                let wired = WiringState::Wired {
                    program,
                    is_fetched,
                    has_id,
                    options,
                    variables,
                    env_file,
                };
                (server, wired)
            }
            // Another command of our program must not be wrapped in a gate.
            None if is_program(program.name()) => (None, WiringState::Unguarded(Reason::Shape)),
            None => (None, WiringState::Unwired),
        },
    }
}

fn free_id(entry: &Entry<'_>, manner: &Manner<'_>, taken: &mut BTreeSet<String>) -> String {
    let apart = match (manner.apart, &entry.project) {
        (None, None) => None,
        (file, project) => Some(format!(
            "{}\0{}",
            file.unwrap_or_default(),
            project.as_deref().unwrap_or_default()
        )),
    };
    let mut id = server_id(manner.host.id, &entry.name, apart.as_deref());
    let mut place = format!("{apart:?}{:?}", entry.place);
    // INVARIANT: two servers never get the same id, because they would share pins and holds.
    while taken.contains(&id) {
        id = server_id(manner.host.id, &entry.name, Some(&place));
        place.push('+');
    }
    taken.insert(id.clone());
    id
}

/// The most servers that are tried individually if they cannot all be wired at once.
const MAX_ONE_BY_ONE: usize = 64;

/// Puts the gate in front of the selected servers that can be guarded and are not yet.
pub fn wire(text: &str, manner: &Manner<'_>, choice: &Choice) -> Result<Rewritten, TextError> {
    let all = wire_chosen(text, manner, choice);
    if all != Err(TextError::Unsafe) {
        return all;
    }
    // An entry that cannot be changed safely must not prevent the others from being changed.
    let servers = servers(text, manner)?.into_iter().filter(|server| choice.takes(server));
    let only = |servers: Vec<String>| Choice { servers, ..choice.clone() };
    let is_safe = |id: &String| wire_chosen(text, manner, &only(vec![id.clone()])).is_ok();
    let safe = one_by_one(servers.map(|server| server.id), is_safe);
    if safe.is_empty() { all } else { wire_chosen(text, manner, &only(safe)) }
}

/// Those of the first ids that pass the check.
fn one_by_one(ids: impl Iterator<Item = String>, is_safe: impl Fn(&String) -> bool) -> Vec<String> {
    ids.take(MAX_ONE_BY_ONE).filter(is_safe).collect()
}

fn wire_chosen(text: &str, manner: &Manner<'_>, choice: &Choice) -> Result<Rewritten, TextError> {
    let (mark, body) = split_mark(text);
    let root = parse(manner.syntax, body)?;
    let found = entries(root.as_ref(), manner.host)?;
    let shape = manner.host.shape;
    let mut editor = Editor::new(body, manner.syntax);
    let (mut changed, mut wirings, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for (entry, server) in found.iter().zip(described(&found, manner, choice.lifts_sign_in())) {
        if !choice.takes(&server) {
            continue;
        }
        let home = manner.home.or(manner.own_home.filter(|_| leads_elsewhere(entry, manner)));
        let begun = editor.count();
        let launch = launch(entry, shape);
        let signs_in = match &launch {
            Ok(Launch::Remote(remote)) => choice.signs_in_to(remote, shape),
            Ok(Launch::Program(_)) | Err(_) => false,
        };
        let gate = Gate { program: manner.program, home, sandbox: manner.sandbox, signs_in };
        let kept = match (&server.state, &launch) {
            (WiringState::Unwired, Ok(Launch::Program(program))) => {
                Some(wire::program(&mut editor, program, gate, shape, &server.id))
            }
            (WiringState::Unwired, Ok(Launch::Remote(remote))) => {
                Some(wire::remote(&mut editor, entry.map, remote, gate, shape, &server.id))
            }
            (WiringState::Wired { program: old, .. }, Ok(Launch::Program(program)))
                if choice.gone.contains(old) =>
            {
                repoint(&mut editor, program, manner.program);
                None
            }
            _ => continue,
        };
        let cuts = match &launch {
            Ok(Launch::Remote(remote)) => Cuts::address(&editor, remote.url, &remote.address.node),
            Ok(Launch::Program(program)) => {
                Cuts::program(&editor, program.name(), Some(&program.command.node))
            }
            Err(_) => Cuts::default(),
        };
        parts.push(shown(&editor, begun, &cuts));
        if let Some(kept) = kept {
            wirings.push(Wiring { place: entry.place.clone(), id: server.id.clone(), kept });
        }
        changed.push(server);
    }
    let after =
        finish(editor, mark, body, root.as_ref(), &found, &changed, manner, Expected::Wired)?;
    // Refuse a change that could not be undone without storing more than punctuation and names.
    Inverse::of(text, &after).ok_or(TextError::Unsafe)?;
    Ok(Rewritten { text: after, changed, wirings, parts })
}

/// Whether an entry's own variables would lead the gate to another home than ours. The contents of
/// a file of variables can change at any time.
fn leads_elsewhere(entry: &Entry<'_>, manner: &Manner<'_>) -> bool {
    const NAMES: &[&str] = &["HOME", "USERPROFILE", "HOLDPOINT_HOME"];
    entry::env_file(entry).is_some()
        || entry::variables(entry, manner.host.shape).iter().any(|(name, _)| NAMES.contains(name))
}

/// The entry's variables that the gate itself reads, or that the system reads to start it. A value
/// that is not a text is shown as empty.
fn own_variables(entry: &Entry<'_>, manner: &Manner<'_>) -> Vec<(String, String)> {
    let variables = entry::variables(entry, manner.host.shape);
    let own = variables.iter().filter(|(name, _)| guard::is_own_variable(name));
    own.map(|(name, value)| ((*name).to_owned(), value.text().unwrap_or_default().to_owned()))
        .collect()
}

/// The start of an address, up to where a secret may be.
fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') { "…".to_owned() } else { format!("{scheme}://{authority}/…") }
}

/// Texts of an entry that may be secrets, each with its replacement for display.
#[derive(Debug, Default)]
struct Cuts(Vec<(String, String)>);

impl Cuts {
    fn address(editor: &Editor<'_>, url: &str, node: &Node) -> Cuts {
        Cuts::of(url, &origin(url), editor.at(node.span.clone()))
    }

    /// A command with spaces in it may be a whole command line.
    fn program(editor: &Editor<'_>, name: &str, node: Option<&Node>) -> Cuts {
        let first = name.split_whitespace().next().unwrap_or_default();
        let shown = match first.contains('=') {
            true => "…".to_owned(),
            false if first == name => return Cuts::default(),
            false => format!("{first} …"),
        };
        Cuts::of(name, &shown, node.map_or("", |node| editor.at(node.span.clone())))
    }

    /// The texts of the launch or address behind a gate.
    fn guarded(
        editor: &Editor<'_>,
        entry: &Entry<'_>,
        program: &entry::Program<'_>,
        guarded: &Guarded,
        shape: &crate::table::Shape,
    ) -> Cuts {
        match &guarded.behind {
            Behind::Program(at) => {
                let name = program.arguments().get(*at).copied().flatten();
                name.map(|name| Cuts::program(editor, name, None)).unwrap_or_default()
            }
            Behind::Address { .. } => {
                let variables = entry::variables(entry, shape);
                let hidden = variables.iter().find(|(name, _)| *name == guard::ADDRESS_VARIABLE);
                let spelled = hidden.map_or("", |(_, node)| editor.at(node.span.clone()));
                let url = entry::guarded_address(entry, guarded, shape).unwrap_or_default();
                Cuts::of(url, &origin(url), spelled)
            }
        }
    }

    fn of(meaning: &str, shown: &str, spelled: &str) -> Cuts {
        let quoted = crate::render::string(shown);
        let cuts =
            [(spelled, &*quoted), (&*crate::render::string(meaning), &*quoted), (meaning, shown)];
        let cuts = cuts.into_iter().filter(|(text, _)| !text.is_empty());
        Cuts(cuts.map(|(text, shown)| (text.to_owned(), shown.to_owned())).collect())
    }

    fn apply(&self, text: &str) -> String {
        let replace = |text: String, (cut, shown): &(String, String)| text.replace(cut, shown);
        without_comments(&self.0.iter().fold(text.to_owned(), replace))
    }
}

/// A text with its comments blanked out.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let is_apart = out.chars().next_back().is_none_or(char::is_whitespace);
        let end = match next {
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '/' if is_apart && rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '#' if is_apart => rest.find('\n').unwrap_or(rest.len()),
            _ => 0,
        };
        let taken = if end > 0 { end } else { next.len_utf8() };
        out.push_str(if end > 0 { "…" } else { rest.get(..taken).unwrap_or_default() });
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// The changes of one entry for display, without secrets that may be in an address, a command line
/// or a comment.
fn shown(editor: &Editor<'_>, begun: usize, cuts: &Cuts) -> Vec<Part> {
    let cut = |text: &str| cuts.apply(text);
    let mut edits: Vec<_> = editor.since(begun).to_vec();
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let part = |edit: &crate::edit::Edit| Part {
        removed: cut(editor.at(edit.span.clone())),
        added: cut(&edit.text),
    };
    edits.iter().map(part).collect()
}

/// How the server with this id is started or reached behind its gate, if the text has a gate for
/// it.
pub(crate) fn guarded_launch(
    text: &str,
    manner: &Manner<'_>,
    id: &str,
) -> Result<Option<GuardedLaunch>, TextError> {
    let (_, body) = split_mark(text);
    let root = parse(manner.syntax, body)?;
    let found = entries(root.as_ref(), manner.host)?;
    let shape = manner.host.shape;
    Ok(found.iter().find_map(|entry| {
        let Ok(Launch::Program(program)) = launch(entry, shape) else { return None };
        let guarded = program.guarded().filter(|guarded| guarded.server.as_deref() == Some(id))?;
        let variables = entry::variables(entry, shape);
        let launch = GuardedLaunch::of(&program.arguments(), guarded.behind, &variables)?;
        Some(GuardedLaunch { env_file: entry::env_file(entry).map(str::to_owned), ..launch })
    }))
}

/// How every server in a text, except gateways, is started or reached.
pub(crate) fn launches(text: &str, manner: &Manner<'_>) -> Result<Vec<FoundLaunch>, TextError> {
    let (_, body) = split_mark(text);
    let root = parse(manner.syntax, body)?;
    let found = entries(root.as_ref(), manner.host)?;
    Ok(found.iter().filter_map(|entry| FoundLaunch::of(entry, manner.host.shape)).collect())
}

/// The names of the variables that the entry with this id sets for its gate. Returns `None` if no
/// entry or several have the id, or if the host reads additional variables from another file.
pub(crate) fn variables_of(
    text: &str,
    manner: &Manner<'_>,
    id: &str,
) -> Result<Option<BTreeSet<String>>, TextError> {
    let (_, body) = split_mark(text);
    let root = parse(manner.syntax, body)?;
    let found = entries(root.as_ref(), manner.host)?;
    let shape = manner.host.shape;
    let mut with_id = found.iter().filter(|entry| match launch(entry, shape) {
        Ok(Launch::Program(program)) => {
            program.guarded().is_some_and(|guarded| guarded.server.as_deref() == Some(id))
        }
        Ok(Launch::Remote(_)) | Err(_) => false,
    });
    let (Some(entry), None) = (with_id.next(), with_id.next()) else { return Ok(None) };
    if entry::env_file(entry).is_some() {
        return Ok(None);
    }
    let own = entry::variables(entry, shape).into_iter().map(|(name, _)| name);
    Ok(Some(own.chain(entry::handed_on(entry)).map(str::to_owned).collect()))
}

/// Points an entry to the current path of our program.
fn repoint(editor: &mut Editor<'_>, program: &entry::Program<'_>, path: &str) {
    let span = match &program.form {
        entry::Form::Apart { .. } => Some(program.command.node.span.clone()),
        entry::Form::OneList { list, .. } => list.items.first().map(|item| item.span.clone()),
    };
    if let Some(span) = span {
        editor.replace(span, crate::render::string(path));
    }
}

/// Removes the gate from the selected servers. `wirings` are those stored for the file; `None` if
/// there is no record of it.
pub fn unwire(
    text: &str,
    manner: &Manner<'_>,
    choice: &Choice,
    wirings: Option<&[Wiring]>,
) -> Result<Rewritten, TextError> {
    let removed = gateway::remove_gateway(text, manner, wirings.unwrap_or_default())?;
    if let Some((without, server)) = removed.filter(|(_, server)| choice.takes(server)) {
        let mut rest = unwire(&without, manner, choice, wirings)?;
        let added = String::new();
        rest.parts.push(vec![Part { removed: format!("{GATEWAY_NAME} …"), added }]);
        rest.changed.push(server);
        return Ok(rest);
    }
    let all = unwire_chosen(text, manner, choice, wirings, |_| true);
    if all != Err(TextError::Unsafe) {
        return all;
    }
    // An entry that cannot be restored with its original spelling is restored by meaning, and one
    // that cannot be restored must not prevent the others.
    let mut known = wirings.map(<[Wiring]>::to_vec);
    let mut safe = BTreeSet::new();
    let ids = servers(text, manner)?.into_iter().map(|server| server.id);
    for id in ids.take(MAX_ONE_BY_ONE) {
        let is_safe = |known: &Option<Vec<Wiring>>| {
            unwire_chosen(text, manner, choice, known.as_deref(), |other| other == id).is_ok()
        };
        if !is_safe(&known)
            && let Some(wiring) = known.iter_mut().flatten().find(|wiring| wiring.id == id)
        {
            let had_arguments = wiring.kept.had_arguments;
            wiring.kept = Kept { had_arguments, ..Kept::default() };
        }
        if is_safe(&known) {
            safe.insert(id);
        }
    }
    let some = unwire_chosen(text, manner, choice, known.as_deref(), |id| safe.contains(id));
    if some.as_ref().is_ok_and(|some| some.changed.is_empty()) { all } else { some }
}

/// Removes the gate from the selected servers.
fn unwire_chosen(
    text: &str,
    manner: &Manner<'_>,
    choice: &Choice,
    wirings: Option<&[Wiring]>,
    takes: impl Fn(&str) -> bool,
) -> Result<Rewritten, TextError> {
    let (mark, body) = split_mark(text);
    let root = parse(manner.syntax, body)?;
    let found = entries(root.as_ref(), manner.host)?;
    let shape = manner.host.shape;
    let mut editor = Editor::new(body, manner.syntax);
    let (mut changed, mut parts) = (Vec::new(), Vec::new());
    let ownership = Ownership::new(wirings, &found, shape);
    for (entry, server) in found.iter().zip(described(&found, manner, choice.lifts_sign_in())) {
        let Ok(Launch::Program(program)) = launch(entry, shape) else { continue };
        let Some(guarded) = program.guarded() else { continue };
        let is_ours = ownership.is_ours(entry, &guarded);
        if !choice.takes_back(&server, is_ours) || !takes(&server.id) {
            continue;
        }
        let kept = ownership.wiring(entry, &guarded).map(|wiring| &wiring.kept);
        let begun = editor.count();
        if unwire::entry(&mut editor, entry.map, &program, &guarded, kept, shape).is_ok() {
            parts.push(shown(
                &editor,
                begun,
                &Cuts::guarded(&editor, entry, &program, &guarded, shape),
            ));
            changed.push(server);
        }
    }
    let text =
        finish(editor, mark, body, root.as_ref(), &found, &changed, manner, Expected::Unwired)?;
    Ok(Rewritten { text, changed, wirings: Vec::new(), parts })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Wired,
    Unwired,
}

/// Returns the new text after parsing it again and checking its meaning.
#[allow(clippy::too_many_arguments, reason = "all of it is what one call to wire or unwire knows")]
fn finish(
    editor: Editor<'_>,
    mark: &str,
    body: &str,
    root: Option<&Node>,
    found: &[Entry<'_>],
    changed: &[Server],
    manner: &Manner<'_>,
    expected: Expected,
) -> Result<String, TextError> {
    if editor.is_unchanged() {
        return Ok(format!("{mark}{body}"));
    }
    let text = editor.finish().ok_or(TextError::Unsafe)?;
    let after = parse(manner.syntax, &text).map_err(|_| TextError::Unsafe)?;
    let (Some(before), Some(after)) = (root, after.as_ref()) else { return Err(TextError::Unsafe) };
    let described = described(found, manner, false);
    let is_meant = |server: &Server| {
        changed.iter().any(|meant| {
            (&meant.name, &meant.project, &meant.id) == (&server.name, &server.project, &server.id)
        })
    };
    let places: Vec<&[Step]> = found
        .iter()
        .zip(&described)
        .filter(|(_, server)| is_meant(server))
        .map(|(entry, _)| entry.place.as_slice())
        .collect();
    let is_sound = same_but(before, after, &places, &mut Vec::new())
        && places.iter().all(|place| is_as_expected(before, after, place, manner, expected));
    if is_sound { Ok(format!("{mark}{text}")) } else { Err(TextError::Unsafe) }
}

/// Whether two documents have the same meaning except at the given places.
fn same_but(before: &Node, after: &Node, places: &[&[Step]], way: &mut Vec<Step>) -> bool {
    if places.contains(&way.as_slice()) {
        return true;
    }
    if !places.iter().any(|place| place.starts_with(way)) {
        return before == after;
    }
    let mut go = |before: &Node, after: &Node, step: Step| {
        way.push(step);
        let is_same = same_but(before, after, places, way);
        way.pop();
        is_same
    };
    match (&before.value, &after.value) {
        (Value::Map(before), Value::Map(after)) => {
            before.members.len() == after.members.len()
                && before.members.iter().zip(&after.members).all(|(before, after)| {
                    before.key == after.key
                        && go(&before.node, &after.node, Step::Name(before.key.clone()))
                })
        }
        (Value::List(before), Value::List(after)) => {
            before.items.len() == after.items.len()
                && before
                    .items
                    .iter()
                    .zip(&after.items)
                    .enumerate()
                    .all(|(number, (before, after))| go(before, after, Step::Number(number)))
        }
        _ => before == after,
    }
}

/// Whether the entry at a place has the expected result, and everything unrelated was kept.
fn is_as_expected(
    before: &Node,
    after: &Node,
    place: &[Step],
    manner: &Manner<'_>,
    expected: Expected,
) -> bool {
    let shape = manner.host.shape;
    let (Some(before), Some(after)) =
        (crate::place::at(before, place), crate::place::at(after, place))
    else {
        return false;
    };
    let (unwired, wired) = match expected {
        Expected::Wired => (before, after),
        Expected::Unwired => (after, before),
    };
    let (Some(unwired_map), Some(wired_map)) = (unwired.map(), wired.map()) else { return false };
    let entry = |node, map| Entry {
        name: String::new(),
        project: None,
        place: place.to_vec(),
        node,
        map,
        is_repeated: false,
    };
    let Ok(Launch::Program(program)) = launch(&entry(wired, wired_map), shape) else {
        return false;
    };
    let Some(guarded) = program.guarded() else { return false };
    match (&guarded.behind, launch(&entry(unwired, unwired_map), shape)) {
        // Pointing an entry elsewhere keeps all of its arguments.
        (_, Ok(Launch::Program(unwired))) if unwired.guarded().is_some() => {
            unwired.arguments() == program.arguments()
                && same_members(unwired_map, wired_map, &[shape.command])
        }
        (Behind::Program(at), Ok(Launch::Program(unwired))) => {
            let name = std::iter::once(Some(unwired.name()));
            let words: Vec<Option<&str>> = name.chain(unwired.arguments()).collect();
            program.arguments().get(*at..) == Some(words.as_slice())
                && same_members(unwired_map, wired_map, &[shape.command, shape.arguments])
        }
        (Behind::Program(_), _) | (_, Ok(Launch::Program(_))) => false,
        (Behind::Address { url, headers }, _) => {
            expect::is_remote(unwired_map, wired_map, url, headers, shape)
        }
    }
}

/// Whether two entries have the same members, except the given ones.
fn same_members(one: &Map, other: &Map, but: &[&str]) -> bool {
    let rest = |map: &Map| -> Vec<(String, Node)> {
        let members = map.members.iter().filter(|member| !but.contains(&member.key.as_str()));
        members.map(|member| (member.key.clone(), member.node.clone())).collect()
    };
    rest(one) == rest(other)
}

#[cfg(test)]
mod tests;
