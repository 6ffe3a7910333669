//! Finds the server that a command is about: by its id, by how to start or reach it, or from a
//! capture.

use crate::arguments::{Options, TargetArguments, UpstreamArguments};
use crate::configuration::Configuration;
use crate::confinement::{ConfinedIn, Otherwise};
use crate::failure::Failure;
use crate::relaunch::{self, Again};
use crate::sign_in::Recording;
use contract::client::ClientCapabilities;
use contract::hash::sha256_hex;
use contract::origin::{Way, host_of, renew_entry};
use engine::acts::ActError;
use engine::confinement::Confiner;
use engine::origin::{Origin, with_redactor, words_of};
use gate::server::ServerId;
use settings::{SecretError, SecretName};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Home, Launch, LaunchKey, Store, Witnessed};
use wire::{EndpointUrl, HttpEndpoint, ObserveLimits, StdioLaunch, Upstream};

/// The folder in the home that holds the data for `unwire`.
pub(crate) const JOURNAL: &str = "wiring";
/// The largest capture file that is read.
const MAX_CAPTURE_BYTES: u64 = 80 * 1024 * 1024;
/// The largest header value that is read from a file.
const MAX_HEADER_BYTES: usize = 64 * 1024;

/// The largest edit distance at which an id may count as a misspelling of another; at most a third
/// of its length.
const MISTYPED: usize = 3;

/// The home that a command works in.
#[derive(Debug)]
pub(crate) struct Workplace {
    pub(crate) home: Home,
    pub(crate) store: Witnessed,
    pub(crate) configuration: Configuration,
    /// Hashes the words of launches.
    pub(crate) launch_key: LaunchKey,
}

impl Workplace {
    pub(crate) fn open(options: &Options) -> Result<Workplace, Failure> {
        Workplace::open_with(options, false)
    }

    /// Opens the home for a command that records how a server is started. The hashes are compared
    /// later, so the key must be stored.
    pub(crate) fn open_to_record(options: &Options) -> Result<Workplace, Failure> {
        Workplace::open_with(options, true)
    }

    fn open_with(options: &Options, may_create_key: bool) -> Result<Workplace, Failure> {
        let home = Home::open(&home_path(options)?)?;
        // A journal that cannot be redacted now is tried again at the next opening.
        let _ = hosts::redact_journal(&home.path().join(JOURNAL));
        let configuration = Configuration::read(&home.config_path())?;
        let mut store = Witnessed::new(store::open(&home, &configuration.store()?)?, &home);
        let launch_key = store.launch_key(may_create_key)?;
        Ok(Workplace { home, store, configuration, launch_key })
    }
}

impl Workplace {
    /// How servers are confined that a command inspects.
    pub(crate) fn confined_in(&self) -> ConfinedIn<'_> {
        let (home, configuration) = (self.home.path(), &self.configuration);
        ConfinedIn { home, configuration, is_quiet: false }
    }
}

/// `--home`, `$HOLDPOINT_HOME`, or `.holdpoint` in the user's home.
pub(crate) fn home_path(options: &Options) -> Result<PathBuf, Failure> {
    let named = options.home.clone().or_else(|| non_empty("HOLDPOINT_HOME").map(PathBuf::from));
    if let Some(path) = named {
        return Ok(path);
    }
    match std::env::home_dir() {
        Some(home) => Ok(home.join(".holdpoint")),
        None => Err(Failure::usage("no home directory is known: name one with `--home DIR`")),
    }
}

fn non_empty(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// Where to read a surface from.
#[derive(Debug)]
pub(crate) enum Source {
    Server(Box<Reach>),
    Capture(PathBuf),
}

/// How to start or reach a server.
#[derive(Debug)]
pub(crate) struct Reach {
    pub(crate) upstream: Upstream,
    pub(crate) limits: ObserveLimits,
    /// The capabilities that are declared to the server.
    pub(crate) client: ClientCapabilities,
    /// Confines the server, if it is confined.
    pub(crate) confiner: Option<Arc<Confiner>>,
    /// Records the events of the sign-in, if there is one.
    pub(crate) sign_in: Option<Arc<Recording>>,
}

#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) id: ServerId,
    pub(crate) source: Source,
    /// How to repeat the launch, in recorded form.
    pub(crate) launch: Option<Launch>,
}

impl Target {
    pub(crate) fn of(
        arguments: &TargetArguments,
        workplace: &mut Workplace,
    ) -> Result<Target, Failure> {
        if let Some(id) = &arguments.id {
            return Target::recorded(id, workplace, &arguments.upstream);
        }
        if let Some(file) = &arguments.file {
            let id = match &arguments.server {
                Some(id) => id.clone(),
                None => id_of_file(file)?,
            };
            return Ok(Target { id, source: Source::Capture(file.clone()), launch: None });
        }
        let reach = Reach::of(&arguments.upstream)?;
        let id = match &arguments.server {
            Some(id) => id.clone(),
            None => server_id(&reach.origin(&workplace.launch_key))?,
        };
        let Workplace { store, launch_key, .. } = workplace;
        renew_origin(store, &id, &reach.upstream, launch_key)?;
        let client = known_client(&id, workplace)?;
        let origin = reach.origin(&workplace.launch_key);
        let posture = known_launch(&id, workplace)?.and_then(|launch| launch.posture());
        let launch = origin
            .launch(header_names(&arguments.upstream))
            .for_client(client.clone())
            .under(posture);
        let reach = reach.for_client(client);
        let reach =
            reach.configured_by(&id, &workplace.configuration, &arguments.upstream).confined(
                &id,
                &arguments.upstream.sandbox,
                workplace.confined_in(),
                Otherwise::AsBefore,
            )?;
        let reach = reach.signed_in(&id, &arguments.upstream, workplace, false)?;
        Ok(Target::of_reach(&id, reach, launch))
    }

    /// A server that was pinned before, started or reached the same way.
    pub(crate) fn recorded(
        id: &ServerId,
        workplace: &Workplace,
        arguments: &UpstreamArguments,
    ) -> Result<Target, Failure> {
        let Some(server) = workplace.store.server(id)? else {
            let unknown = unknown_server(id, workplace);
            if engine::program::find_program(id.as_str(), None).is_none() {
                return Err(unknown);
            }
            return Err(Failure::usage(format!(
                "{unknown}; to start the program `{id}`, put `--` before it: `-- {id} …`"
            )));
        };
        let again = |what: &str| {
            Failure::unreachable(format!(
                "server `{id}` cannot be started or reached again as it was: {what}; name it as you did before, with `--server {id}` and `-- CMD…`, `--url URL` (and `--header`) or `--file FILE`"
            ))
        };
        if let Some(lost) = server.lost {
            return Err(Failure::held(format!(
                "the record of server `{id}` cannot be trusted: {lost}"
            )));
        }
        let launch = match server.launch {
            Some(launch) => launch,
            None => return Err(again("it was pinned from a capture")),
        };
        let Again { arguments, environment, directory } =
            relaunch::again(id, &launch, arguments, workplace).map_err(|what| again(&what))?;
        let reach = Reach::with(&arguments, directory.as_deref(), &environment)?
            .for_client(launch.client_capabilities().cloned())
            .configured_by(id, &workplace.configuration, &arguments)
            .confined(id, &arguments.sandbox, workplace.confined_in(), Otherwise::AsBefore)?
            .signed_in(id, &arguments, workplace, false)?;
        Ok(Target::of_reach(id, reach, launch))
    }

    fn of_reach(id: &ServerId, reach: Reach, launch: Launch) -> Target {
        Target { id: id.clone(), source: Source::Server(Box::new(reach)), launch: Some(launch) }
    }
}

/// The recorded capabilities of the client of a server, so that every command that contacts the
/// server declares the same ones. Empty if the capabilities are unknown or cannot be trusted.
pub(crate) fn known_client(
    id: &ServerId,
    workplace: &Workplace,
) -> Result<Option<ClientCapabilities>, Failure> {
    Ok(known_launch(id, workplace)?.and_then(|launch| launch.client_capabilities().cloned()))
}

/// How a server was last launched, if the record exists and authenticates.
fn known_launch(id: &ServerId, workplace: &Workplace) -> Result<Option<Launch>, Failure> {
    let server = workplace.store.server(id)?.filter(|server| server.lost.is_none());
    Ok(server.and_then(|server| server.launch))
}

/// The failure for an unknown server. Suggests the server that was probably meant.
pub(crate) fn unknown_server(id: &ServerId, workplace: &Workplace) -> Failure {
    ActError::unknown_server(&workplace.store, id).into()
}

/// The id that was probably meant: the only one with this prefix, or one with nearly the same
/// spelling.
pub(crate) fn near<'a>(typed: &str, ids: &[&'a str]) -> Option<&'a str> {
    let distance = |id: &&str| strsim::damerau_levenshtein(id, typed);
    let most = MISTYPED.min(typed.len() / 3);
    let longer: Vec<&str> = ids.iter().copied().filter(|id| id.starts_with(typed)).collect();
    match longer.as_slice() {
        [only] => Some(*only),
        _ => ids.iter().copied().min_by_key(distance).filter(|id| distance(id) <= most),
    }
}

impl Reach {
    pub(crate) fn of(arguments: &UpstreamArguments) -> Result<Reach, Failure> {
        Reach::with(arguments, None, &[])
    }

    /// Like [`Reach::of`], with additional variables.
    fn with(
        arguments: &UpstreamArguments,
        directory: Option<&str>,
        environment: &[(String, String)],
    ) -> Result<Reach, Failure> {
        let upstream = match &arguments.url {
            Some(url) => Reach::address(url, arguments, environment)?,
            None => Reach::program(arguments, directory, environment)?,
        };
        let (limits, client) = (Reach::limits(arguments), ClientCapabilities::default());
        Ok(Reach { upstream, limits, client, confiner: None, sign_in: None })
    }

    /// The origin of the server, in recorded form.
    pub(crate) fn origin(&self, key: &LaunchKey) -> Origin {
        Origin::of(&self.upstream, key)
    }

    /// Applies the start timeout that is configured for the server, unless the command line sets
    /// one.
    pub(crate) fn configured_by(
        mut self,
        id: &ServerId,
        configuration: &Configuration,
        arguments: &UpstreamArguments,
    ) -> Reach {
        self.limits.start_timeout = configuration.start_timeout(id, arguments.start_timeout);
        self
    }

    /// Acts in place of this client.
    pub(crate) fn for_client(mut self, client: Option<ClientCapabilities>) -> Reach {
        self.client = client.unwrap_or_default();
        self
    }

    fn limits(arguments: &UpstreamArguments) -> ObserveLimits {
        let usual = ObserveLimits::default();
        let start_timeout = arguments.start_timeout.map(Duration::from_secs);
        ObserveLimits { start_timeout: start_timeout.unwrap_or(usual.start_timeout), ..usual }
    }

    fn program(
        arguments: &UpstreamArguments,
        directory: Option<&str>,
        environment: &[(String, String)],
    ) -> Result<Upstream, Failure> {
        let Some((program, rest)) = arguments.command.split_first() else {
            return Err(Failure::usage(
                "which server? name its id, `-- CMD…` to start one, `--url URL` or `--file FILE`",
            ));
        };
        let variable = |(name, value): &(String, String)| (name.into(), value.into());
        Ok(Upstream::Stdio(StdioLaunch {
            program: program.clone(),
            arguments: rest.to_vec(),
            environment: environment.iter().map(variable).collect(),
            directory: directory.map(PathBuf::from),
            confinement: None,
        }))
    }

    fn address(
        url: &str,
        arguments: &UpstreamArguments,
        environment: &[(String, String)],
    ) -> Result<Upstream, Failure> {
        let url = read_address(url, environment)?;
        // Do not repeat the URL: it may contain a password.
        let endpoint: EndpointUrl =
            url.parse().map_err(|error| Failure::usage(format!("`--url`: {error}")))?;
        let headers = arguments.header.iter().map(|header| read_header(header, environment));
        let mut headers: Vec<_> = headers.collect::<Result<_, _>>()?;
        // A blank value, as in a bundle's form, means that the header is not wanted.
        headers.retain(|(_, value)| !value.is_empty());
        let allow_private = arguments.allow_private;
        Ok(Upstream::Http(HttpEndpoint { url: endpoint, headers, allow_private, authorizer: None }))
    }
}

/// Updates the pinned origin to the current form, if an earlier version hashed a word of this same
/// launch.
pub(crate) fn renew_origin(
    store: &mut Witnessed,
    id: &ServerId,
    upstream: &Upstream,
    key: &LaunchKey,
) -> Result<(), Failure> {
    with_redactor(upstream, key, |redactor| match upstream {
        Upstream::Stdio(launch) => {
            let (program, arguments) = words_of(launch);
            let way = Way::Program { program: &program, arguments: &arguments };
            store.renew_origin(id, &|raw| renew_entry(raw, way, redactor))
        }
        Upstream::Http(endpoint) => {
            let way = Way::Address(endpoint.url.as_str());
            store.renew_origin(id, &|raw| renew_entry(raw, way, redactor))
        }
    })
    .map_err(Failure::from)
}

/// A variable of the host's entry, or else of our own environment.
fn variable_of(name: &str, environment: &[(String, String)]) -> Option<String> {
    let entry = environment.iter().find(|(known, _)| known == name);
    entry.map(|(_, value)| value.clone()).or_else(|| std::env::var(name).ok())
}

/// Reads an address, or the value of `env:VARIABLE`: an address with a key in it would be visible
/// in the process list.
pub(crate) fn read_address(
    argument: &str,
    environment: &[(String, String)],
) -> Result<String, Failure> {
    match argument.strip_prefix("env:") {
        None => Ok(argument.to_owned()),
        Some(variable) => variable_of(variable, environment).ok_or_else(|| {
            Failure::usage(format!("`--url`: the variable `{variable}` is not set"))
        }),
    }
}

/// Parses a header given as `NAME=env:VARIABLE`, `NAME=bearer-env:VARIABLE` or `NAME=file:PATH`: a
/// value on the command line would be visible in the process list.
fn read_header(
    argument: &str,
    environment: &[(String, String)],
) -> Result<(http::HeaderName, http::HeaderValue), Failure> {
    let wrong = |what: &str| {
        Failure::usage(format!(
            "`--header`: {what}; expected NAME=env:VARIABLE, NAME=bearer-env:VARIABLE or NAME=file:PATH"
        ))
    };
    let Some((name, source)) = argument.split_once('=') else { return Err(wrong("no `=`")) };
    let (scheme, source) = match source.strip_prefix("bearer-") {
        Some(source) if source.starts_with("env:") => ("Bearer ", source),
        _ => ("", source),
    };
    let secret = source
        .parse()
        .and_then(|secret: SecretName| secret.read(|variable| variable_of(variable, environment)));
    let value = match secret {
        Ok(secret) => format!("{scheme}{secret}"),
        Err(SecretError::NotAName) => return Err(wrong("a secret cannot be given directly")),
        Err(error) => return Err(wrong(&error.to_string())),
    };
    if value.len() > MAX_HEADER_BYTES {
        return Err(wrong("the value is too long"));
    }
    // Do not repeat the argument: it may be a header with its value.
    let name = name.parse().map_err(|_| wrong("what is before `=` is not a header's name"))?;
    let mut value = http::HeaderValue::from_str(&value)
        .map_err(|_| wrong("the value cannot be sent in a header"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// The id of a server without `--server`: a short name, and a hash of its origin.
pub(crate) fn server_id(origin: &Origin) -> Result<ServerId, Failure> {
    match origin {
        Origin::Program(origin) => make_id(&origin.short_name(), &origin.identity()),
        Origin::Address { url, .. } => make_id(host_of(url).unwrap_or("server"), url),
    }
}

/// The names of the headers on a command line.
pub(crate) fn header_names(arguments: &UpstreamArguments) -> Vec<String> {
    let name = |header: &String| header.split('=').next().unwrap_or_default().to_owned();
    arguments.header.iter().map(name).collect()
}

fn id_of_file(file: &Path) -> Result<ServerId, Failure> {
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let path = std::path::absolute(file)?;
    make_id(&name.unwrap_or_default(), &format!("file:{}", path.display()))
}

fn make_id(name: &str, identity: &str) -> Result<ServerId, Failure> {
    let mut plain: String = name
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '-' })
        .take(48)
        .collect();
    plain = plain.trim_matches(['-', '.']).to_owned();
    let plain = if plain.is_empty() { "server" } else { &plain };
    let digits: String = sha256_hex(identity.as_bytes()).chars().take(6).collect();
    format!("{plain}-{digits}").parse().map_err(Failure::usage)
}

/// Reads a capture, up to a size limit.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    use std::io::Read;
    let named = |error: std::io::Error| Failure::usage(format!("`{}`: {error}", path.display()));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(named)?;
    file.take(MAX_CAPTURE_BYTES + 1).read_to_end(&mut bytes).map_err(named)?;
    if bytes.len() as u64 > MAX_CAPTURE_BYTES {
        return Err(Failure::usage(format!(
            "`{}` is larger than {MAX_CAPTURE_BYTES} bytes",
            path.display()
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_name_and_origin() {
        let id = make_id("Server Files!", "npm:x").unwrap();
        assert!(
            id.as_str().starts_with("server-files-")
                && id.as_str().len() == "server-files-".len() + 6
        );
        assert_eq!(make_id("x", "a").unwrap(), make_id("x", "a").unwrap());
        assert_ne!(make_id("x", "a").unwrap(), make_id("x", "b").unwrap());
        assert!(make_id("__", "a").unwrap().as_str().starts_with("server-"));
        assert!(make_id(&"long".repeat(50), "a").is_ok());
    }

    #[test]
    fn the_server_that_was_probably_meant_is_named_and_no_other() {
        let ids = ["claude-code.files-e65217", "cursor.files", "cursor.git"];
        assert_eq!(near("claude-code.files", &ids), Some("claude-code.files-e65217"));
        assert_eq!(near("cursor.fiels", &ids), Some("cursor.files"));
        assert_eq!(near("cursor.filesabc", &ids), Some("cursor.files"));
        assert_eq!(near("cursor.filesabcd", &ids), None);
        assert_eq!(near("cursor", &ids), None);
        assert_eq!(near("unheard-of", &ids), None);
        assert_eq!(near("x", &[]), None);
        assert_eq!((near("foo", &["m"]), near("git", &["gut"])), (None, Some("gut")));
    }

    #[test]
    fn a_header_that_was_left_blank_is_not_sent() {
        let sent = |value: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), value).unwrap();
            let arguments = UpstreamArguments {
                url: Some("https://example.com/mcp".to_owned()),
                header: vec![format!("Authorization=file:{}", file.path().display())],
                allow_private: false,
                sign_in: crate::arguments::sign_in::SignInArguments::default(),
                start_timeout: None,
                sandbox: crate::arguments::sandbox::SandboxArguments::default(),
                command: Vec::new(),
            };
            match Reach::of(&arguments).unwrap().upstream {
                Upstream::Http(endpoint) => endpoint.headers.len(),
                Upstream::Stdio(_) => panic!("an address is reached over HTTP"),
            }
        };
        assert_eq!((sent(""), sent("\n"), sent("Bearer x")), (0, 0, 1));
    }
}
