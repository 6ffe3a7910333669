//! The words that put the gate in front of a server, written and recognized.

/// Where a remote server's address is kept when it must not be seen on a command line.
pub(crate) const ADDRESS_VARIABLE: &str = "HOLDPOINT_URL";
/// What the names of the variables begin with that hold a header's value.
pub(crate) const HEADER_VARIABLE: &str = "HOLDPOINT_HEADER_";
/// The name of our program, whatever folder it is in.
const PROGRAM: &str = "holdpoint";
/// Options of `run` that take a value.
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
];
const SWITCHES: &[&str] = &["--allow-private", "--json", "--quiet", "-q", "--verbose", "-v"];

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

/// Whether an entry's variable decides how the gate runs. Those that `wire` itself puts in are the server's address and
/// headers. On Windows names of variables have no case.
pub fn is_own_variable(name: &str) -> bool {
    let upper = if cfg!(windows) { name.to_ascii_uppercase() } else { name.to_owned() };
    let is_address = upper == ADDRESS_VARIABLE || upper.starts_with(HEADER_VARIABLE);
    OWN_VARIABLES.contains(&upper.as_str()) || upper.starts_with("HOLDPOINT_") && !is_address
}

/// A command that is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guarded {
    /// The id that was written down; a person may have left it to us.
    pub(crate) server: Option<String>,
    /// What else it says of how the gate behaves: options of `run` with their values.
    pub(crate) options: Vec<(String, String)>,
    pub(crate) behind: Behind,
}

/// What is behind the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behind {
    /// A program: which of the arguments is its name.
    Program(usize),
    Address {
        url: String,
        headers: Vec<(String, String)>,
    },
}

/// The arguments that come before what is behind the gate.
///
/// The id is one word with its option: a host may strike each argument of an entry out of the errors that it shows, as
/// if it were a secret, and a refusal says which server a person has to look at.
pub(crate) fn opening(server: &str, home: Option<&str>) -> Vec<String> {
    let mut words = vec!["run".to_owned(), format!("--server={server}")];
    if let Some(home) = home {
        words.extend(["--home".to_owned(), home.to_owned()]);
    }
    words
}

/// Whether a command is our program, wherever it lies.
pub(crate) fn is_program(command: &str) -> bool {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command).to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name) == PROGRAM
}

/// Reads the words of an entry. A word that is no text ends what can be read of it.
pub(crate) fn read(command: &str, arguments: &[Option<&str>]) -> Option<Guarded> {
    let mut words = arguments.iter().enumerate();
    if !is_program(command) {
        return None;
    }
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
                server,
                options,
                behind: Behind::Program(at + 1),
            });
        }
        if SWITCHES.contains(&word) {
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
    Some(Guarded { server, options, behind: Behind::Address { url, headers } })
}

/// The variables for headers of these names, each with a name of its own.
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
