//! Builds and recognizes the command line that puts the gate in front of a server.

/// Holds a remote server's address if the address must not be visible on a command line.
pub(crate) const ADDRESS_VARIABLE: &str = "HOLDPOINT_URL";
/// The prefix of variables that hold a header's value.
pub(crate) const HEADER_VARIABLE: &str = "HOLDPOINT_HEADER_";
/// The name of our program, in any folder.
const PROGRAM: &str = "holdpoint";
/// Options of `run` with a value.
const OPTIONS: &[&str] = &[
    "--server",
    "--home",
    "--posture",
    "--relist-max-age",
    "--start-timeout",
    "--trust-root",
    "--required",
    "--attestation",
    "--allow-tool",
    "--flavor",
    "--url",
    "--header",
    "--sandbox",
    "--workspace",
    "--net-allow",
    "--pass-env",
    "--client-id",
    "--client-secret",
    "--issuer",
    "--callback-port",
];
/// The possible values of `--sandbox`, whose value is optional.
const SANDBOX_PROFILES: [&str; 3] = ["isolated", "workspace", "read-only"];
const SWITCHES: &[&str] = &["--allow-private", "--json", "--quiet", "-q", "--verbose", "-v"];
/// Makes the gate sign in to a remote server.
pub const SIGN_IN_SWITCH: &str = "--sign-in";

/// Variables that the gate reads, or that the system reads when it starts the gate.
const OWN_VARIABLES: &[&str] = &[
    "HOME",
    "USERPROFILE",
    "USER",
    "LOGNAME",
    "USERNAME",
    "PATH",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "DYLD_FRAMEWORK_PATH",
];

/// Whether an entry's variable affects how the gate runs. This excludes those that `wire` itself
/// adds, which belong to the server's address and headers. On Windows, variable names are
/// case-insensitive.
pub fn is_own_variable(name: &str) -> bool {
    let upper = if cfg!(windows) { name.to_ascii_uppercase() } else { name.to_owned() };
    let is_address = upper == ADDRESS_VARIABLE || upper.starts_with(HEADER_VARIABLE);
    OWN_VARIABLES.contains(&upper.as_str()) || upper.starts_with("HOLDPOINT_") && !is_address
}

/// A program that fetches a package and runs its command.
struct Fetcher {
    program: &'static str,
    /// The words that must follow the program.
    words: &'static [&'static str],
    switches: &'static [&'static str],
    /// Options that name the package.
    packages: &'static [&'static str],
}

/// The ways in which a person may start our package. Other options may fetch it from elsewhere, so
/// an entry that has one is not recognized.
const FETCHERS: [Fetcher; 5] = [
    Fetcher {
        program: "npx",
        words: &[],
        switches: &["-y", "--yes", "-q", "--quiet", "--prefer-offline", "--offline", "--"],
        packages: &["-p", "--package"],
    },
    Fetcher {
        program: "bunx",
        words: &[],
        switches: &["--bun", "--silent"],
        packages: &["-p", "--package"],
    },
    Fetcher { program: "pnpm", words: &["dlx"], switches: &["--silent"], packages: &["--package"] },
    Fetcher { program: "uvx", words: &[], switches: UV_SWITCHES, packages: &["--from"] },
    Fetcher {
        program: "uv",
        words: &["tool", "run"],
        switches: UV_SWITCHES,
        packages: &["--from"],
    },
];
const UV_SWITCHES: &[&str] = &["-q", "--quiet", "--offline", "--isolated"];

/// A command that starts our gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guarded {
    /// A package manager fetches and starts it.
    pub(crate) is_fetched: bool,
    /// The id, if it is written there. A person may have omitted it.
    pub(crate) server: Option<String>,
    /// Its other options of `run`, with their values.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) behind: Behind,
}

/// The launch or address behind the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behind {
    /// A program, whose name is the argument with this index.
    Program(usize),
    Address {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// The arguments that precede what is behind the gate.
///
/// The id is in the same word as its option. A host may redact each separate argument of an entry
/// from the errors that it shows, as if it were a secret, but a refusal must show which server a
/// person has to review.
pub(crate) fn opening(server: &str, home: Option<&str>, sandbox: Option<&str>) -> Vec<String> {
    let mut words = vec!["run".to_owned(), format!("--server={server}")];
    if let Some(home) = home {
        words.extend(["--home".to_owned(), home.to_owned()]);
    }
    words.extend(sandbox.map(|profile| format!("--sandbox={profile}")));
    words
}

/// Whether a command is our program, in any folder.
pub(crate) fn is_program(command: &str) -> bool {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command).to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name) == PROGRAM
}

/// Parses the words of an entry. Parsing stops at a word that is not a text.
pub(crate) fn read(command: &str, arguments: &[Option<&str>]) -> Option<Guarded> {
    let is_fetched = !is_program(command);
    let first = if is_fetched { fetched(command, arguments)? } else { 0 };
    let mut words = arguments.iter().enumerate().skip(first);
    let mut is_run = false;
    let (mut server, mut url, mut headers) = (None, None, Vec::new());
    let mut options = Vec::new();
    while let Some((at, word)) = words.next() {
        let word = (*word)?;
        if word == "run" && !is_run {
            is_run = true;
            continue;
        }
        if word == "--" && is_run {
            let is_there = arguments.get(at + 1).is_some();
            return (url.is_none() && is_there).then_some(Guarded {
                is_fetched,
                server,
                options,
                behind: Behind::Program(at + 1),
            });
        }
        if SWITCHES.contains(&word) {
            continue;
        }
        if word == SIGN_IN_SWITCH {
            options.push((word.to_owned(), String::new()));
            continue;
        }
        if word == "--sandbox" {
            let next = arguments.get(at + 1).copied().flatten();
            let profile = next.filter(|next| SANDBOX_PROFILES.contains(next));
            if profile.is_some() {
                words.next();
            }
            options.push((word.to_owned(), profile.unwrap_or_default().to_owned()));
            continue;
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, value),
            _ => (word, (*words.next()?.1)?),
        };
        match name {
            "--server" => server = Some(value.to_owned()),
            "--url" => url = Some(value.to_owned()),
            "--header" => {
                let (name, source) = value.split_once('=')?;
                headers.push((name.to_owned(), source.to_owned()));
            }
            _ if OPTIONS.contains(&name) => options.push((name.to_owned(), value.to_owned())),
            _ => return None,
        }
    }
    let url = url.filter(|_| is_run)?;
    Some(Guarded { is_fetched, server, options, behind: Behind::Address { url, headers } })
}

/// The index of our own arguments, if a package manager starts our command from our package.
fn fetched(command: &str, arguments: &[Option<&str>]) -> Option<usize> {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command).to_ascii_lowercase();
    let name = [".exe", ".cmd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let has_words = |fetcher: &&Fetcher| {
        let mut given = arguments.iter();
        fetcher.words.iter().all(|word| given.next() == Some(&Some(*word)))
    };
    let fetcher = FETCHERS.iter().filter(|fetcher| fetcher.program == name).find(has_words)?;
    let mut words = arguments.iter().enumerate().skip(fetcher.words.len());
    while let Some((at, word)) = words.next() {
        let word = (*word)?;
        if fetcher.switches.contains(&word) {
            continue;
        }
        let package = match word.split_once('=') {
            Some((name, package)) if fetcher.packages.contains(&name) => Some(package),
            _ if fetcher.packages.contains(&word) => Some((*words.next()?.1)?),
            _ => None,
        };
        match package {
            Some(package) if is_package(package) => {}
            Some(_) => return None,
            None => return is_package(word).then_some(at + 1),
        }
    }
    None
}

/// Whether a word names our package, in any version.
fn is_package(word: &str) -> bool {
    let version = word.strip_prefix(PROGRAM);
    version.is_some_and(|version| version.is_empty() || version.starts_with(['@', '=']))
}

/// Unique variable names for the given headers.
pub(crate) fn header_variables(names: &[&str]) -> Vec<String> {
    let mut variables: Vec<String> = Vec::new();
    for name in names {
        let upper = name.to_ascii_uppercase();
        let plain: String =
            upper.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let mut variable = format!("{HEADER_VARIABLE}{plain}");
        let mut number = 2;
        while variables.contains(&variable) {
            variable = format!("{HEADER_VARIABLE}{plain}_{number}");
            number += 1;
        }
        variables.push(variable);
    }
    variables
}

#[cfg(test)]
mod tests;
