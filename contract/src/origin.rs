//! Where a server comes from: the program or the package that a command launches, or the address that is reached.
//!
//! Launchers (`npx`, `uvx`, `docker run` and their like) are looked through, so that another package is noticed and
//! another path to the same launcher is not.

use crate::hash::sha256_hex;
use crate::json::{ReadError, escape_into};
use crate::surface::{Entry, EntryId, EntryType};

/// What a command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOrigin {
    /// The program as it was named.
    pub program: String,
    pub package: Option<Package>,
    /// All arguments; those that look like secrets as hashes.
    pub arguments: Vec<String>,
    /// Whether an argument was hashed.
    pub has_secrets: bool,
    /// SHA-256 of the program's file, where it was taken.
    pub digest: Option<String>,
}

/// A package that a launcher fetches and runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Where it comes from: `npm`, `pypi`, `oci`, `python-module`; `script` for a file, `remote` for an address, `ssh` and
    /// `container` for a program elsewhere.
    pub registry: &'static str,
    pub name: String,
    pub version: Option<String>,
}

impl ProgramOrigin {
    /// Reads a command line.
    pub fn of(program: &str, arguments: &[String]) -> ProgramOrigin {
        let (arguments_shown, has_secrets) = hide_secrets(arguments);
        ProgramOrigin {
            program: program.to_owned(),
            package: find_package(program, arguments),
            arguments: arguments_shown,
            has_secrets,
            digest: None,
        }
    }

    /// The short name that a person would call the server by.
    pub fn short_name(&self) -> String {
        let name = self.package.as_ref().map_or(self.program.as_str(), |package| &package.name);
        let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let endings = [".exe", ".js", ".mjs", ".cjs", ".ts", ".py", ".jar", ".sh", ".rb"];
        let bare = endings.iter().find_map(|ending| last.strip_suffix(ending));
        bare.filter(|bare| !bare.is_empty()).unwrap_or(last).to_owned()
    }

    /// What makes it this server and not another, whatever its version and its other arguments.
    pub fn identity(&self) -> String {
        match &self.package {
            Some(package) => format!("{}:{}", package.registry, package.name),
            None => format!("program:{}", self.program),
        }
    }

    pub fn entry(&self) -> Result<Entry, ReadError> {
        let package = self.package.as_ref();
        let name = package.map(|package| format!("{}:{}", package.registry, package.name));
        let arguments: Vec<String> =
            self.arguments.iter().map(|argument| string(argument)).collect();
        let members = [
            Some(("arguments", format!("[{}]", arguments.join(",")))),
            self.digest.as_deref().map(|digest| ("digest", string(digest))),
            Some(("kind", string("program"))),
            name.map(|name| ("package", string(&name))),
            Some(("program", string(&self.program))),
            package
                .and_then(|package| package.version.as_deref())
                .map(|version| ("version", string(version))),
        ];
        origin_entry(members.into_iter().flatten())
    }
}

/// The origin of a server that is reached at an address. `tls_key` is the hash of its public key.
pub fn address_entry(url: &str, tls_key: Option<&str>) -> Result<Entry, ReadError> {
    let members = [
        Some(("kind", string("address"))),
        tls_key.map(|key| ("tlsKey", string(key))),
        Some(("url", string(url))),
    ];
    origin_entry(members.into_iter().flatten())
}

fn origin_entry(members: impl Iterator<Item = (&'static str, String)>) -> Result<Entry, ReadError> {
    let members: Vec<String> = members.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    Entry::from_raw(EntryId::only(EntryType::Origin), &format!("{{{}}}", members.join(",")))
}

fn string(text: &str) -> String {
    let mut out = Vec::new();
    escape_into(text, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

fn base_name(program: &str) -> String {
    let last = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    let endings = [".exe", ".cmd", ".bat"];
    endings.iter().find_map(|ending| last.strip_suffix(ending)).unwrap_or(&last).to_owned()
}

/// The package that a command line runs, where a launcher we know runs one.
fn find_package(program: &str, arguments: &[String]) -> Option<Package> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match (base_name(program).as_str(), words.as_slice()) {
        // A shell or `env` in front of the launcher itself.
        ("cmd", ["/c" | "/C", inner, rest @ ..]) => find_package(inner, &owned(rest)),
        ("env", rest) => {
            let skipped =
                rest.iter().take_while(|word| word.contains('=') || word.starts_with('-'));
            let (inner, rest) = rest.get(skipped.count()..)?.split_first()?;
            find_package(inner, &owned(rest))
        }
        ("npx" | "bunx" | "pnpx", rest)
        | ("npm", ["exec" | "x", rest @ ..])
        | ("pnpm" | "yarn", ["dlx" | "exec", rest @ ..])
        | ("bun", ["x", rest @ ..]) => npm_package(rest, &["-p", "--package"]),
        ("deno", ["run", rest @ ..]) => {
            let word = rest.iter().find_map(|word| word.strip_prefix("npm:"));
            word.map(npm_name).or_else(|| script(rest, &[]))
        }
        ("uvx", rest) | ("pipx", ["run", rest @ ..]) => python_package(rest),
        ("uv" | "poetry" | "pdm" | "hatch" | "rye" | "pipenv", rest) => in_project(rest),
        // What runs a file of a project, in front of which the project's own launcher stands.
        ("mcp" | "fastmcp", ["run" | "dev", rest @ ..]) => script(rest, &["--with", "-f"]),
        ("ssh", rest) => elsewhere("ssh", rest, &SSH_TAKES_VALUE),
        ("docker" | "podman" | "nerdctl", ["exec", rest @ ..]) => elsewhere(
            "container",
            rest,
            &["-e", "--env", "--env-file", "-u", "--user", "-w", "--workdir"],
        ),
        ("docker" | "podman" | "nerdctl", ["run", rest @ ..])
        | ("docker" | "podman" | "nerdctl", ["container", "run", rest @ ..]) => image(rest),
        (python, rest) if python.starts_with("python") || python == "py" => {
            match rest.iter().position(|word| *word == "-m") {
                Some(at) => {
                    let name = (*rest.get(at + 1)?).to_owned();
                    Some(Package { registry: "python-module", name, version: None })
                }
                None => script(rest, &["-c", "-W", "-X"]),
            }
        }
        ("bun", ["run", rest @ ..]) => script(rest, &[]),
        ("node" | "nodejs" | "bun" | "deno" | "ruby" | "perl" | "php" | "bash" | "sh", rest) => {
            script(rest, &["-e", "-r", "-c", "--require", "--import", "--loader", "--env-file"])
        }
        ("java", rest) => {
            let name = option_value(rest, &["-jar"])?.to_owned();
            Some(Package { registry: "script", name, version: None })
        }
        _ => None,
    }
}

/// Options of `ssh` that a value follows.
const SSH_TAKES_VALUE: [&str; 10] = ["-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-b"];
/// Options of launchers in front of a project that a value follows; those that name the project first.
const PROJECTS: [&str; 4] = ["--directory", "--project", "-C", "-p"];
const PROJECT_TAKES_VALUE: [&str; 14] = [
    "--directory",
    "--project",
    "-C",
    "-p",
    "--config-file",
    "--cache-dir",
    "--python",
    "--with",
    "--with-editable",
    "--with-requirements",
    "--extra",
    "--group",
    "--env-file",
    "--index-url",
];

/// What `uv run`, `poetry run` and their like run in a project: a file of it, or a program that runs one.
fn in_project(words: &[&str]) -> Option<Package> {
    let at = operand_place(words, &PROJECT_TAKES_VALUE)?;
    let (before, rest) = words.split_at_checked(at)?;
    let rest = match rest {
        ["tool", "run", rest @ ..] => return python_package(rest),
        ["run", rest @ ..] => rest,
        _ => return None,
    };
    let package = match option_value(rest, &["-m", "--module"]) {
        Some(module) => {
            Package { registry: "python-module", name: module.to_owned(), version: None }
        }
        None => {
            let at = operand_place(rest, &PROJECT_TAKES_VALUE)?;
            let (program, rest) = rest.get(at..)?.split_first()?;
            let itself =
                || Package { registry: "script", name: (*program).to_owned(), version: None };
            find_package(program, &owned(rest)).unwrap_or_else(itself)
        }
    };
    // The same name in another project is another program.
    let project = option_value(before, &PROJECTS).or_else(|| option_value(rest, &PROJECTS));
    Some(match project {
        Some(project) if !package.name.starts_with(['/', '\\']) => Package {
            name: format!("{}/{}", project.trim_end_matches('/'), package.name),
            ..package
        },
        _ => package,
    })
}

/// A program on another machine or in a container: where, and which.
fn elsewhere(registry: &'static str, words: &[&str], takes_value: &[&str]) -> Option<Package> {
    let at = operand_place(words, takes_value)?;
    let name = words.get(at..)?.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    Some(Package { registry, name, version: None })
}

/// The file that an interpreter runs: another file is another server.
fn script(words: &[&str], takes_value: &[&str]) -> Option<Package> {
    let name = first_operand(words, takes_value)?.to_owned();
    Some(Package { registry: "script", name, version: None })
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The value of one of some options, as `--option value` or `--option=value`.
fn option_value<'a>(words: &[&'a str], options: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(index, word)| {
        if options.contains(word) {
            return words.get(index + 1).copied();
        }
        options.iter().find_map(|option| word.strip_prefix(option)?.strip_prefix('='))
    })
}

fn npm_package(words: &[&str], package_options: &[&str]) -> Option<Package> {
    if let Some(named) = option_value(words, package_options) {
        return Some(npm_name(named));
    }
    let takes_value = ["-c", "--call", "--node-options", "--registry", "--cache"];
    let at = operand_place(words, &takes_value)?;
    let (word, rest) = words.get(at..)?.split_first()?;
    let package = npm_name(word);
    match package.name.as_str() {
        // They bring somebody else's server here: that one is meant.
        "mcp-remote" => {
            let url = first_operand(rest, &[])?;
            Some(Package { registry: "remote", name: hide_url_secrets(url).0, ..package })
        }
        "tsx" | "ts-node" => script(rest, &["--tsconfig", "-P", "--project"]).or(Some(package)),
        _ => Some(package),
    }
}

fn npm_name(word: &str) -> Package {
    let scope = usize::from(word.starts_with('@'));
    let (name, version) = match word.get(scope..).and_then(|rest| rest.find('@')) {
        Some(at) => word.split_at(at + scope),
        None => (word, ""),
    };
    let version = version.strip_prefix('@').filter(|version| !version.is_empty());
    Package { registry: "npm", name: name.to_owned(), version: version.map(str::to_owned) }
}

fn python_package(words: &[&str]) -> Option<Package> {
    let takes_value =
        ["--from", "--with", "--python", "-p", "--index-url", "--directory", "--spec"];
    let word = option_value(words, &["--from", "--spec"])
        .or_else(|| first_operand(words, &takes_value))?;
    let (name, version) =
        match word.find("==").map(|at| (at, 2)).or_else(|| word.find('@').map(|at| (at, 1))) {
            Some((at, length)) => (word.get(..at).unwrap_or(word), word.get(at + length..)),
            None => (word, None),
        };
    // Extras (`name[extra]`) choose among the same package's parts.
    let name = name.split('[').next().unwrap_or(name).trim().to_owned();
    let version = version.filter(|version| !version.is_empty()).map(str::to_owned);
    Some(Package { registry: "pypi", name, version })
}

fn image(words: &[&str]) -> Option<Package> {
    const TAKES_VALUE: [&str; 26] = [
        "-e",
        "--env",
        "-v",
        "--volume",
        "--mount",
        "--name",
        "-p",
        "--publish",
        "--network",
        "--net",
        "-u",
        "--user",
        "-w",
        "--workdir",
        "--entrypoint",
        "--env-file",
        "-l",
        "--label",
        "-m",
        "--memory",
        "--cpus",
        "--platform",
        "--add-host",
        "-h",
        "--hostname",
        "--pull",
    ];
    let word = first_operand(words, &TAKES_VALUE)?;
    let (name, version) = match word.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => match word.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (word, None),
        },
    };
    Some(Package { registry: "oci", name: name.to_owned(), version: version.map(str::to_owned) })
}

/// The first word that is not an option, nor the value of one that takes a value.
fn first_operand<'a>(words: &[&'a str], takes_value: &[&str]) -> Option<&'a str> {
    words.get(operand_place(words, takes_value)?).copied()
}

fn operand_place(words: &[&str], takes_value: &[&str]) -> Option<usize> {
    let mut rest = words.iter().enumerate();
    while let Some((place, word)) = rest.next() {
        if *word == "--" {
            return rest.next().map(|(place, _)| place);
        }
        if !word.starts_with('-') {
            return Some(place);
        }
        if takes_value.contains(word) {
            rest.next();
        }
    }
    None
}

/// An address with the values in its query that look like secrets as hashes, and whether there were any.
pub fn hide_url_secrets(url: &str) -> (String, bool) {
    let Some((before, query)) = url.split_once('?') else { return (url.to_owned(), false) };
    let mut has_secrets = false;
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
            if value.is_empty() || !(names_a_secret(name) || name == "key" || looks_random(value)) {
                return parameter.to_owned();
            }
            has_secrets = true;
            let separator = if parameter.contains('=') { "=" } else { "" };
            format!("{name}{separator}sha256:{}", short_hash(value))
        })
        .collect();
    (format!("{before}?{}", parameters.join("&")), has_secrets)
}

fn short_hash(value: &str) -> String {
    sha256_hex(value.as_bytes()).chars().take(16).collect()
}

/// Replaces what looks like a secret by its hash: kept, it would be in every copy of the pins.
fn hide_secrets(arguments: &[String]) -> (Vec<String>, bool) {
    let mut hidden = Vec::with_capacity(arguments.len());
    let mut has_secrets = false;
    let mut is_next_secret = false;
    for argument in arguments {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (Some(name), value),
            None => (None, argument.as_str()),
        };
        let is_named = name.is_some_and(names_a_secret);
        let is_value = !argument.starts_with('-') && is_next_secret;
        if is_named || is_value || looks_random(value) {
            has_secrets = true;
            let hash = short_hash(value);
            hidden.push(match name {
                Some(name) => format!("{name}=sha256:{hash}"),
                None => format!("sha256:{hash}"),
            });
        } else {
            hidden.push(argument.clone());
        }
        is_next_secret = name.is_none() && argument.starts_with('-') && names_a_secret(argument);
    }
    (hidden, has_secrets)
}

fn names_a_secret(option: &str) -> bool {
    let lower = option.to_ascii_lowercase();
    [
        "token",
        "secret",
        "password",
        "passwd",
        "apikey",
        "api-key",
        "api_key",
        "access-key",
        "access_key",
        "credential",
        "auth",
        "bearer",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

/// Well-known prefixes of keys, and long words of letters and digits as no person types them.
fn looks_random(value: &str) -> bool {
    const PREFIXES: [&str; 9] =
        ["sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "eyJ"];
    if PREFIXES.iter().any(|prefix| value.starts_with(prefix)) && value.len() >= 16 {
        return true;
    }
    let is_key_character = |byte: u8| byte.is_ascii_alphanumeric() || b"+_-=".contains(&byte);
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    value.len() >= 28
        && value.bytes().all(is_key_character)
        && digits >= 5
        && letters >= 5
        && !value.contains("--")
}

#[cfg(test)]
mod tests;
