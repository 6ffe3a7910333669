//! Interprets an entry of a document as a program to start or an address to connect to.

use crate::address::{Parts, has_variables};
use crate::document::{List, Map, Member, Node, Style, Value};
use crate::guard::{self, Behind, Guarded};
use crate::place::Step;
use crate::table::{ADDRESSES, ENV_FILE, FOREIGN, HANDED_ON, SIGN_IN, Shape, Transport};

/// A server in a document.
#[derive(Debug)]
pub(crate) struct Entry<'d> {
    pub(crate) name: String,
    /// The project that it belongs to, if the file covers several projects.
    pub(crate) project: Option<String>,
    pub(crate) place: Vec<Step>,
    pub(crate) node: &'d Node,
    pub(crate) map: &'d Map,
    /// Another entry has the same name, and hosts differ in which one they use.
    pub(crate) is_repeated: bool,
}

/// Why a server is left unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("needs sign-in, not guarded")]
    SignIn,
    #[error("uses the older HTTP transport (SSE), not guarded")]
    OldTransport,
    #[error("is reached without encryption, not guarded")]
    PlainHttp,
    #[error(
        "has variables in its address that the host would not replace in an argument, not guarded"
    )]
    Variables,
    #[error("names neither a command nor an address, not guarded")]
    NoLaunch,
    #[error("has an unknown type, not guarded")]
    UnknownType,
    #[error("has headers and variables of its own, not guarded")]
    HeadersAndVariables,
    #[error("has both a command and an address, and its host may use either, not guarded")]
    TwoWays,
    #[error("has a member that is repeated, shared, or of an unexpected type, not guarded")]
    Shape,
}

impl Reason {
    pub const ALL: [Reason; 9] = [
        Reason::SignIn,
        Reason::OldTransport,
        Reason::PlainHttp,
        Reason::Variables,
        Reason::NoLaunch,
        Reason::UnknownType,
        Reason::HeadersAndVariables,
        Reason::TwoWays,
        Reason::Shape,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            Reason::SignIn => "sign_in",
            Reason::OldTransport => "old_transport",
            Reason::PlainHttp => "plain_http",
            Reason::Variables => "variables",
            Reason::NoLaunch => "no_launch",
            Reason::UnknownType => "unknown_type",
            Reason::HeadersAndVariables => "headers_and_variables",
            Reason::TwoWays => "two_ways",
            Reason::Shape => "shape",
        }
    }
}

/// How an entry's server is started or reached.
#[derive(Debug)]
pub(crate) enum Launch<'d> {
    Program(Program<'d>),
    Remote(Remote<'d>),
}

#[derive(Debug)]
pub(crate) struct Program<'d> {
    /// The map that contains the command: the entry's own, or one inside it.
    pub(crate) holder: &'d Map,
    pub(crate) command: &'d Member,
    pub(crate) form: Form<'d>,
}

#[derive(Debug)]
pub(crate) enum Form<'d> {
    Apart { program: &'d str, arguments: Option<(&'d Member, &'d List)> },
    OneList { program: &'d str, list: &'d List },
}

#[derive(Debug)]
pub(crate) struct Remote<'d> {
    pub(crate) address: &'d Member,
    pub(crate) url: &'d str,
    pub(crate) kind: Option<&'d Member>,
    pub(crate) headers: Option<(&'d Member, &'d Map)>,
    pub(crate) environment: Option<(&'d Member, &'d Map)>,
    pub(crate) bearer: Option<&'d Member>,
}

impl Program<'_> {
    pub(crate) fn name(&self) -> &str {
        match &self.form {
            Form::Apart { program, .. } | Form::OneList { program, .. } => program,
        }
    }

    /// The arguments, with `None` for each one that is not a text.
    pub(crate) fn arguments(&self) -> Vec<Option<&str>> {
        let items = match &self.form {
            Form::Apart { arguments, .. } => arguments.map_or(&[][..], |(_, list)| &list.items),
            Form::OneList { list, .. } => list.items.get(1..).unwrap_or_default(),
        };
        items.iter().map(Node::text).collect()
    }

    pub(crate) fn guarded(&self) -> Option<Guarded> {
        guard::read(self.name(), &self.arguments())
    }
}

/// The name of a gateway's entry.
pub(crate) const GATEWAY_NAME: &str = "holdpoint";

/// The address, if the entry is that of a gateway: it has the name that `wire` uses, and starts no
/// program.
pub(crate) fn gateway_address<'d>(entry: &Entry<'d>, shape: &Shape) -> Option<&'d str> {
    let is_named = entry.name == GATEWAY_NAME && !entry.is_repeated;
    if !is_named || entry.map.member(shape.command).is_some() || has_command(entry) {
        return None;
    }
    let mut addresses = shape.addresses.iter();
    addresses.find_map(|address| entry.map.member(address.member)?.node.text())
}

fn has_command(entry: &Entry<'_>) -> bool {
    entry.map.members.iter().any(|member| member.key.eq_ignore_ascii_case("command"))
}

/// Interprets an entry by its host's shape.
pub(crate) fn launch<'d>(entry: &Entry<'d>, shape: &Shape) -> Result<Launch<'d>, Reason> {
    let is_scattered = entry.map.is_dotted && entry.map.style == Style::Flow;
    let is_odd = entry.is_repeated || is_scattered || entry.node.has_shared();
    if is_odd || entry.map.repeated_in_any_case().is_some() {
        return Err(Reason::Shape);
    }
    if let Some(command) = entry.map.member(shape.command) {
        return program(entry.map, command, shape).map(Launch::Program).ok_or(Reason::Shape);
    }
    let address = shape.addresses.iter().find_map(|address| entry.map.member(address.member));
    match address {
        Some(address) => remote(entry.map, address, shape).map(Launch::Remote),
        None => Err(Reason::NoLaunch),
    }
}

fn program<'d>(holder: &'d Map, command: &'d Member, shape: &Shape) -> Option<Program<'d>> {
    match &command.node.value {
        Value::Text(program) => {
            let arguments = match holder.member(shape.arguments) {
                None => None,
                Some(member) => {
                    Some((member, member.node.list().filter(|list| begins_plainly(list))?))
                }
            };
            Some(Program { holder, command, form: Form::Apart { program, arguments } })
        }
        Value::List(list) => {
            let program = list.items.first()?.text()?;
            Some(Program { holder, command, form: Form::OneList { program, list } })
        }
        // An older syntax of Zed: the command, its arguments and its variables in a nested map.
        Value::Map(inner) => {
            if inner.repeated_in_any_case().is_some() {
                return None;
            }
            let command = inner.member("path")?;
            command.node.text()?;
            program(inner, command, shape)
        }
        Value::Other(_) => None,
    }
}

/// A multi-line text at the start of a list leaves no position to insert something before it.
fn begins_plainly(list: &List) -> bool {
    !list
        .items
        .first()
        .is_some_and(|item| matches!(&item.value, Value::Other(word) if word.contains('\n')))
}

fn remote<'d>(map: &'d Map, address: &'d Member, shape: &Shape) -> Result<Remote<'d>, Reason> {
    let url = address.node.text().ok_or(Reason::Shape)?;
    let kind = map.member(shape.kind);
    let usual = shape.addresses.iter().find(|known| known.member == address.key);
    let transport = match kind.map(|kind| kind.node.text()) {
        None => usual.map_or(Transport::Streamable, |known| known.transport),
        Some(Some("sse")) => Transport::Events,
        Some(Some(kind)) if shape.streamable.contains(&kind) => Transport::Streamable,
        Some(_) => return Err(Reason::UnknownType),
    };
    let is_strict = !shape.allowed.is_empty();
    let speaks = |member: &Member| is_strict || says_something(member);
    if SIGN_IN.iter().any(|name| map.member(name).is_some_and(speaks)) {
        return Err(Reason::SignIn);
    }
    if !map.members.iter().all(|member| may_stay(&member.key, shape)) {
        return Err(Reason::Shape);
    }
    if transport == Transport::Events {
        return Err(Reason::OldTransport);
    }
    let inner = |name: &str| -> Result<Option<(&'d Member, &'d Map)>, Reason> {
        let Some(member) = map.member(name) else { return Ok(None) };
        let inner = member.node.map().ok_or(Reason::Shape)?;
        let is_sound = inner.members.iter().all(|member| member.node.text().is_some());
        (is_sound && !inner.is_dotted && inner.repeated().is_none())
            .then_some(Some((member, inner)))
            .ok_or(Reason::Shape)
    };
    let headers = inner(shape.headers)?;
    if headers.is_some_and(|(_, map)| !map.members.iter().all(|header| is_header_name(&header.key)))
    {
        return Err(Reason::Shape);
    }
    let environment = inner(shape.environment)?;
    let bearer = shape.bearer.and_then(|(name, _)| map.member(name));
    let hands_on = shape.bearer.is_some_and(|(_, name)| map.member(name).is_some());
    if bearer.is_some_and(|member| member.node.text().is_none() || hands_on) {
        return Err(Reason::Shape);
    }
    if headers.is_some() && environment.is_some() {
        return Err(Reason::HeadersAndVariables);
    }
    Ok(Remote { address, url, kind, headers, environment, bearer })
}

/// Whether a member of a remote entry is either changed by us, or harmless next to a command.
fn may_stay(name: &str, shape: &Shape) -> bool {
    let is_changed = name == shape.headers
        || shape.bearer.is_some_and(|(bearer, _)| name == bearer)
        || shape.addresses.iter().any(|address| name == address.member);
    let is_known = [shape.kind, shape.environment].contains(&name) || shape.allowed.contains(&name);
    // A host that refuses unknown members would not start the server.
    is_changed || if shape.allowed.is_empty() { !FOREIGN.contains(&name) } else { is_known }
}

/// Whether a name is an HTTP token. Otherwise it could be parsed differently in `NAME=SOURCE` and
/// in the header itself.
fn is_header_name(name: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(is_token)
}

/// Whether an entry with a command also has an address. The host decides which one it uses, so a
/// gate in front of the command alone could be bypassed. Other hosts' member names, in any case,
/// count too: their effect differs between versions of a host.
pub(crate) fn has_address(entry: &Entry<'_>) -> bool {
    let is_address =
        |member: &&Member| ADDRESSES.iter().any(|name| member.key.eq_ignore_ascii_case(name));
    entry.map.members.iter().filter(is_address).any(says_something)
}

/// Whether any command in an entry is our program, even one that the host may not use.
pub(crate) fn names_gate(entry: &Entry<'_>, shape: &Shape) -> bool {
    fn is_gate(node: &Node) -> bool {
        match &node.value {
            Value::Text(text) => guard::is_program(text),
            Value::List(list) => {
                list.items.first().and_then(Node::text).is_some_and(guard::is_program)
            }
            Value::Map(map) => map.members.iter().any(|member| is_gate(&member.node)),
            Value::Other(_) => false,
        }
    }
    let is_command = |member: &&Member| member.key.eq_ignore_ascii_case(shape.command);
    entry.map.members.iter().filter(is_command).any(|member| is_gate(&member.node))
}

/// The file from which the host reads additional variables.
pub(crate) fn env_file<'d>(entry: &Entry<'d>) -> Option<&'d str> {
    entry.map.node(ENV_FILE)?.text().filter(|path| !path.is_empty())
}

/// The variables of an entry.
pub(crate) fn variables<'d>(entry: &Entry<'d>, shape: &Shape) -> Vec<(&'d str, &'d Node)> {
    let inner = entry.map.node(shape.command).and_then(Node::map);
    let maps = [Some(entry.map), inner].into_iter().flatten();
    let variables = maps.filter_map(|map| map.node(shape.environment)?.map());
    variables
        .flat_map(|map| &map.members)
        .map(|member| (member.key.as_str(), &member.node))
        .collect()
}

/// The names of variables that the host passes to the program, or stores for it.
pub(crate) fn handed_on<'d>(entry: &Entry<'d>) -> impl Iterator<Item = &'d str> {
    let lists = HANDED_ON.iter().filter_map(|name| entry.map.node(name)?.list());
    lists.flat_map(|list| &list.items).filter_map(Node::text)
}

/// The address behind a gate, wherever the entry has it.
pub(crate) fn guarded_address<'d>(
    entry: &Entry<'d>,
    guarded: &'d Guarded,
    shape: &Shape,
) -> Option<&'d str> {
    let Behind::Address { url, .. } = &guarded.behind else { return None };
    match url.strip_prefix("env:") {
        None => Some(url),
        Some(name) => {
            let variables = variables(entry, shape);
            variables.into_iter().find(|(key, _)| *key == name).and_then(|(_, node)| node.text())
        }
    }
}

/// Values such as `oauth: false` mean that there is nothing.
fn says_something(member: &Member) -> bool {
    match &member.node.value {
        Value::Other(word) => !matches!(word.as_str(), "false" | "null" | "~" | ""),
        Value::List(list) => !list.items.is_empty(),
        Value::Map(map) => !map.members.is_empty(),
        Value::Text(text) => !text.is_empty(),
    }
}

impl Remote<'_> {
    /// Why it must be left unchanged, if there is a reason. `is_open` means that a person confirmed
    /// that it needs no sign-in.
    pub(crate) fn obstacle(&self, shape: &Shape, is_open: bool) -> Option<Reason> {
        if has_variables(self.url) && !shape.expands_arguments {
            return Some(Reason::Variables);
        }
        let Some(parts) = Parts::of(self.url) else {
            // If the address starts with a variable, nothing is known about it. The prefix `env:`
            // has a meaning for `run`.
            let can_be_anything = has_variables(self.url) && !self.url.starts_with("env:");
            return (!can_be_anything).then_some(Reason::UnknownType);
        };
        if !parts.is_encrypted && !parts.is_loopback() {
            return Some(Reason::PlainHttp);
        }
        if parts.ends_like_events() && self.kind.is_none() {
            return Some(Reason::OldTransport);
        }
        (!self.has_credentials() && !parts.is_loopback() && !is_open).then_some(Reason::SignIn)
    }

    /// Whether the entry contains anything that may be a credential.
    pub(crate) fn has_credentials(&self) -> bool {
        let has_headers = self.headers.is_some_and(|(_, map)| !map.members.is_empty());
        let in_address = Parts::of(self.url).is_some_and(|parts| parts.has_credentials);
        has_headers || self.bearer.is_some() || in_address
    }
}
