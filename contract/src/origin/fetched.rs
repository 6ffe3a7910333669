//! Launchers that fetch a package before running it: what to pass to an installer, so that the
//! package's own program can then be run without the launcher.

use super::launchers::{CONTAINER_RUN, NPM, Options, PIPX, UV};
use super::package::{base_name, is_plain_word, npm_name, options_of, runs_another};

/// Where a package is fetched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Registry {
    Npm,
    Pypi,
}

impl Registry {
    pub fn as_str(self) -> &'static str {
        match self {
            Registry::Npm => "npm",
            Registry::Pypi => "pypi",
        }
    }
}

/// A package that a launcher would fetch, and which of its programs it would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPackage {
    pub registry: Registry,
    /// The package's name, without its version.
    pub name: String,
    /// Everything to install, in an installer's syntax. The package comes first.
    pub requirements: Vec<String>,
    /// The program to run. `None` means the package's only program.
    pub program: Option<String>,
    /// The Python interpreter that the command line asks for.
    pub python: Option<String>,
    /// Where the program's own arguments begin in the command line.
    pub arguments_at: usize,
}

/// Why it is unclear which package a launcher would fetch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnclearFetch {
    #[error("`{0}` changes what `{1}` fetches or runs")]
    Option(String, String),
    #[error("`{0}` is not the name of a registry package, with or without a version")]
    Word(String),
    #[error("`{0}` names no package to run")]
    NoPackage(String),
}

/// Options of the npm family that do not affect what is run.
const NPM_HARMLESS: [&str; 9] = [
    "--no-install",
    "--offline",
    "--prefer-offline",
    "--prefer-online",
    "--quiet",
    "--silent",
    "--yes",
    "-q",
    "-y",
];
const UV_HARMLESS: [&str; 14] = [
    "--isolated",
    "--no-cache",
    "--no-progress",
    "--offline",
    "--quiet",
    "--refresh",
    "--upgrade",
    "--verbose",
    "--native-tls",
    "--system-certs",
    "-U",
    "-n",
    "-q",
    "-v",
];

/// The package that a command line fetches and runs; `None` if the program does not fetch one.
pub fn find_fetched(
    program: &str,
    arguments: &[String],
) -> Result<Option<FetchedPackage>, UnclearFetch> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let base = base_name(program);
    let (skipped, registry) = match (base.as_str(), words.as_slice()) {
        ("npx" | "bunx" | "pnpx", _) => (0, Registry::Npm),
        ("pnpm" | "yarn", ["dlx", ..]) | ("bun", ["x", ..]) | ("npm", ["exec" | "x", ..]) => {
            (1, Registry::Npm)
        }
        ("uvx", _) => (0, Registry::Pypi),
        ("uv", ["tool", "run", ..]) => (2, Registry::Pypi),
        ("pipx", ["run", ..]) => (1, Registry::Pypi),
        // These may run a launcher, whose package would then be fetched unnoticed.
        ("env" | "cmd" | "nice" | "nohup" | "timeout" | "stdbuf" | "setsid", rest) => {
            let fetches = |word: &&&str| {
                ["npx", "bunx", "pnpx", "uvx", "pipx"].contains(&base_name(word).as_str())
            };
            return match rest.iter().find(fetches) {
                Some(inner) => Err(UnclearFetch::Option(base, (*inner).to_owned())),
                None => Ok(None),
            };
        }
        _ => return Ok(None),
    };
    let words = words.get(skipped..).unwrap_or_default();
    let found = match registry {
        Registry::Npm => npm(&base, words, base == "npm")?,
        Registry::Pypi if base == "pipx" => python(&base, words, &PIPX)?,
        Registry::Pypi => python(&base, words, &UV)?,
    };
    Ok(Some(FetchedPackage { arguments_at: found.arguments_at + skipped, ..found }))
}

/// The options of a container engine that precede the image; `None` if the command runs no
/// container.
pub fn container_options(program: &str, arguments: &[String]) -> Option<Vec<String>> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let rest = match (base_name(program).as_str(), words.as_slice()) {
        ("docker" | "podman" | "nerdctl", ["run", rest @ ..] | ["container", "run", rest @ ..]) => {
            rest
        }
        _ => return None,
    };
    // An unknown option could mean anything, so all words count as options.
    let options = options_of(rest, &CONTAINER_RUN).unwrap_or(rest);
    Some(options.iter().map(|word| (*word).to_owned()).collect())
}

/// Whether a program, judged by its name, runs what its arguments name.
pub fn is_launcher(program: &str) -> bool {
    runs_another(program)
}

fn npm(launcher: &str, words: &[&str], reads_on: bool) -> Result<FetchedPackage, UnclearFetch> {
    let options = read_options(launcher, words, &NPM, &NPM_HARMLESS, &["-p", "--package"])?;
    let operand = words.get(options.operand_at).copied().unwrap_or_default();
    let mut arguments_at = options.operand_at + 1;
    if reads_on {
        // `npm exec` reads its own options anywhere before `--`.
        let rest = words.get(arguments_at..).unwrap_or_default();
        let own = rest.iter().take_while(|word| **word != "--");
        if let Some(option) = own.clone().find(|word| word.starts_with('-')) {
            return Err(UnclearFetch::Option((*option).to_owned(), launcher.to_owned()));
        }
        if own.count() == 0 && !rest.is_empty() {
            arguments_at += 1;
        }
    }
    let named = options.values;
    let (requirements, program) = match named.is_empty() {
        true => (vec![operand.to_owned()], None),
        false => (named, Some(operand.to_owned())),
    };
    if let Some(word) = requirements.iter().find(|word| !is_plain_word("npm", word)) {
        return Err(UnclearFetch::Word(word.clone()));
    }
    let name = requirements.first().map(|word| npm_name(word).name).unwrap_or_default();
    Ok(FetchedPackage {
        registry: Registry::Npm,
        name,
        requirements,
        program,
        python: None,
        arguments_at,
    })
}

fn python(
    launcher: &str,
    words: &[&str],
    options: &Options,
) -> Result<FetchedPackage, UnclearFetch> {
    let valued = ["--from", "--spec", "--with", "--python", "-p", "-w"];
    let read = read_options(launcher, words, options, &UV_HARMLESS, &valued)?;
    let operand = words.get(read.operand_at).copied().unwrap_or_default();
    let own = words.get(..read.operand_at).unwrap_or_default();
    let from = values_of(own, &["--from", "--spec"]);
    let package = from.last().copied().unwrap_or(operand);
    let with = values_of(own, &["--with", "-w"]);
    let with = with.iter().flat_map(|value| value.split(','));
    let mut requirements = Vec::new();
    for word in std::iter::once(package).chain(with) {
        if !is_plain_word("pypi", word) {
            return Err(UnclearFetch::Word(word.to_owned()));
        }
        requirements.push(requirement(word));
    }
    let name = |word: &str| {
        word.split(['[', '=', '@', '<', '>', '~', '!']).next().unwrap_or(word).to_owned()
    };
    Ok(FetchedPackage {
        registry: Registry::Pypi,
        name: name(package),
        requirements,
        program: Some(name(operand)),
        python: values_of(own, &["--python", "-p"]).last().map(|value| (*value).to_owned()),
        arguments_at: read.operand_at + 1,
    })
}

/// Converts `name@1.2` to pip's syntax.
fn requirement(word: &str) -> String {
    match word.split_once('@') {
        Some((name, "latest" | "")) => name.to_owned(),
        Some((name, version)) => format!("{name}=={version}"),
        None => word.to_owned(),
    }
}

/// What the options before the operand specify.
struct ReadOptions {
    operand_at: usize,
    values: Vec<String>,
}

/// Reads a launcher's options. Refuses any option that is neither harmless nor in `valued`.
fn read_options(
    launcher: &str,
    words: &[&str],
    options: &Options,
    harmless: &[&str],
    valued: &[&str],
) -> Result<ReadOptions, UnclearFetch> {
    let unclear = |option: &str| UnclearFetch::Option(option.to_owned(), launcher.to_owned());
    let (mut at, mut values) = (0, Vec::new());
    while let Some(word) = words.get(at) {
        let (name, value) = word.split_once('=').map_or((*word, None), |(n, v)| (n, Some(v)));
        if *word == "--" {
            at += 1;
            break;
        } else if !word.starts_with('-') {
            break;
        } else if harmless.contains(word) {
            at += 1;
        } else if valued.contains(&name) {
            let value = value.or_else(|| words.get(at + 1).copied());
            values.extend(value.map(str::to_owned));
            at += if word.contains('=') { 1 } else { 2 };
        } else {
            return Err(unclear(word));
        }
    }
    if words.get(at).is_none_or(|word| word.is_empty()) {
        return Err(UnclearFetch::NoPackage(launcher.to_owned()));
    }
    // INVARIANT: this is the same word that everything else treats as the package.
    if options.operand_place(words) != Some(at) {
        return Err(unclear(words.first().copied().unwrap_or_default()));
    }
    Ok(ReadOptions { operand_at: at, values })
}

/// The values of some options, as `--option value` or `--option=value`.
fn values_of<'a>(words: &[&'a str], options: &[&str]) -> Vec<&'a str> {
    let value = |(at, word): (usize, &&'a str)| {
        if options.contains(word) {
            return words.get(at + 1).copied();
        }
        options.iter().find_map(|option| word.strip_prefix(option)?.strip_prefix('='))
    };
    words.iter().enumerate().filter_map(value).collect()
}

#[cfg(test)]
mod tests;
