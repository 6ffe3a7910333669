//! Finds the package, image, module or script that a launcher's command line runs.

use super::launchers::{
    CONTAINER_EXEC, CONTAINER_RUN, DENO, ENV, INTERPRETER, MCP, MCP_REMOTE, NODE, NPM, Options,
    PIPX, PROJECT, PYTHON, SHELL, SSH, TYPESCRIPT, UV, is_launcher,
};
use super::redact::is_bare_name;

/// A package that a launcher fetches and runs, as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its source: `npm`, `pypi`, `oci` or `python-module`; `script` for a file, `remote` for an
    /// address, `ssh` and `container` for a program elsewhere.
    pub registry: &'static str,
    pub name: String,
    pub version: Option<String>,
    /// The folder of the project that it is run in, if the launcher names one.
    pub(super) project: Option<String>,
    /// The words of the command line that name the package.
    pub(super) words: Vec<String>,
}

/// The prefix of an npm package's name in Deno.
const NPM_PREFIX: &str = "npm:";
/// The longest package name, and the longest version, stored in clear.
const MAX_PACKAGE_BYTES: usize = 128;

impl Package {
    /// The words of the command line that name the package.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The folder of the project that it is run in, if the launcher names one.
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    fn read(registry: &'static str, name: &str, version: Option<&str>, word: &str) -> Package {
        let words = vec![word.to_owned()];
        let version = version.map(str::to_owned);
        Package { registry, name: name.to_owned(), version, project: None, words }
    }

    /// A package without a version, named by a whole word.
    fn named(registry: &'static str, name: &str) -> Package {
        Package::read(registry, name, None, name)
    }
}

/// Whether a word is just the name of a package, image, module or script, with or without a
/// version.
pub(super) fn is_plain_word(registry: &str, word: &str) -> bool {
    let Package { name, version, .. } = match registry {
        "npm" => npm_name(word),
        "pypi" => match python_package(&[word], &UV) {
            Some(package) => package,
            None => return false,
        },
        "oci" => match image(&[word]) {
            Some(package) => package,
            None => return false,
        },
        "python-module" | "script" | "ssh" | "container" => return is_bare_name(word),
        _ => return false,
    };
    let made_of = |text: &str, marks: &[u8]| {
        (1..=MAX_PACKAGE_BYTES).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || marks.contains(&byte))
    };
    let is_name = match registry {
        "npm" => {
            let (scope, name) = match name.strip_prefix('@').and_then(|name| name.split_once('/')) {
                Some((scope, name)) => (scope, name.to_owned()),
                None => ("scope", name),
            };
            made_of(scope, b"-_.~") && made_of(&name, b"-_.~")
        }
        "oci" => made_of(&name, b"-_./:") && !name.bytes().any(|byte| byte.is_ascii_uppercase()),
        // Extras (`name[extra]`) are not part of the name.
        _ => made_of(&name, b"-_.") && made_of(word, b"-_.[],@+~^*<>=!"),
    };
    let marks: &[u8] = if registry == "oci" { b"-_.:" } else { b"-_.+~^*<>=!," };
    is_name && version.is_none_or(|version| made_of(&version, marks))
}

pub(super) fn base_name(program: &str) -> String {
    let last = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    let endings = [".exe", ".cmd", ".bat"];
    endings.iter().find_map(|ending| last.strip_suffix(ending)).unwrap_or(&last).to_owned()
}

/// Whether a program runs what its arguments name. A different package, file or line of code there
/// is a different server.
pub(super) fn runs_another(program: &str) -> bool {
    is_launcher(&base_name(program))
}

/// The package that a command line runs. Returns `None` if the program is not a known launcher or
/// if the command line has an unknown option: in that case no word can safely be taken for the
/// package.
pub fn find_package(program: &str, arguments: &[String]) -> Option<Package> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match (base_name(program).as_str(), words.as_slice()) {
        // A shell or `env` before the actual launcher.
        ("cmd", ["/c" | "/C", inner, rest @ ..]) => behind(inner, rest),
        ("env", rest) => {
            let at = ENV.operand_place(rest)?;
            let rest = rest.get(at..)?;
            let variables = rest.iter().take_while(|word| word.contains('='));
            let (inner, rest) = rest.get(variables.count()..)?.split_first()?;
            behind(inner, rest)
        }
        ("npx" | "bunx" | "pnpx", rest)
        | ("pnpm" | "yarn", ["dlx" | "exec", rest @ ..])
        | ("bun", ["x", rest @ ..]) => npm_package(rest, options_of(rest, &NPM)?),
        // It reads its options after the package's name too.
        ("npm", ["exec" | "x", rest @ ..]) => {
            npm_package(rest, rest.split(|word| *word == "--").next().unwrap_or_default())
        }
        ("deno", ["run", rest @ ..]) => {
            let word = first_operand(rest, &DENO)?;
            let is_npm = word.starts_with(NPM_PREFIX);
            Some(if is_npm { npm_name(word) } else { Package::named("script", word) })
        }
        ("uvx", rest) => python_package(rest, &UV),
        ("pipx", ["run", rest @ ..]) => python_package(rest, &PIPX),
        ("uv", rest) => in_project(rest, &UV, &["--directory", "--project"]),
        ("poetry" | "pdm" | "hatch" | "rye" | "pipenv", rest) => {
            in_project(rest, &PROJECT, &["--directory", "--project", "-C", "-P", "-p"])
        }
        // Tools that run a file of a project, often started by the project's own launcher.
        ("mcp" | "fastmcp", ["run" | "dev", rest @ ..]) => script(rest, &MCP),
        ("mcp-remote", rest) => remote(rest),
        ("tsx" | "ts-node", rest) => typescript(rest),
        ("ssh", rest) => elsewhere("ssh", rest, &SSH),
        ("docker" | "podman" | "nerdctl", ["exec", rest @ ..]) => {
            elsewhere("container", rest, &CONTAINER_EXEC)
        }
        ("docker" | "podman" | "nerdctl", ["run", rest @ ..])
        | ("docker" | "podman" | "nerdctl", ["container", "run", rest @ ..]) => image(rest),
        (python, rest) if python.starts_with("python") || python == "py" => {
            module_or_script(rest, &PYTHON)
        }
        ("bun", ["run", rest @ ..]) | ("node" | "nodejs" | "bun", rest) => script(rest, &NODE),
        ("bash" | "sh" | "zsh" | "dash" | "ksh", rest) => script(rest, &SHELL),
        ("ruby" | "perl" | "php", rest) => script(rest, &INTERPRETER),
        ("java", rest) => {
            let options = rest.iter().take_while(|word| word.starts_with('-') && **word != "-jar");
            match rest.get(options.count()..)? {
                ["-jar", file, ..] => Some(Package::named("script", file)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// What a launcher runs when another command is put before it.
fn behind(program: &str, arguments: &[&str]) -> Option<Package> {
    match runs_another(program) {
        true => find_package(program, &owned(arguments)),
        false => Some(Package::named("script", program)),
    }
}

/// What `uv run`, `poetry run` and the like run in a project: one of its files, or a program that
/// runs one.
fn in_project(words: &[&str], options: &Options, projects: &[&str]) -> Option<Package> {
    let at = options.operand_place(words)?;
    let (before, rest) = words.split_at_checked(at)?;
    let rest = match rest {
        ["tool", "run", rest @ ..] => return python_package(rest, options),
        ["run", rest @ ..] => rest,
        _ => return None,
    };
    let at = options.operand_place(rest)?;
    let (own, run) = rest.split_at_checked(at)?;
    let package = match own.last() {
        Some(option) if options.last.contains(option) => module_or_script(rest, options)?,
        _ => {
            let (program, rest) = run.split_first()?;
            behind(program, rest)?
        }
    };
    // The same name in another project is a different program.
    let project = option_value(before, projects).or_else(|| option_value(own, projects));
    let is_inside = !package.name.starts_with(['/', '\\']);
    Some(Package { project: project.filter(|_| is_inside).map(str::to_owned), ..package })
}

/// A program on another machine or in a container: the place and the program.
fn elsewhere(registry: &'static str, words: &[&str], options: &Options) -> Option<Package> {
    let (place, rest) = words.get(options.operand_place(words)?..)?.split_first()?;
    let mut words = vec![(*place).to_owned()];
    if let Some((program, rest)) = rest.split_first() {
        // An option here may belong to the launcher.
        if program.starts_with('-') {
            return None;
        }
        let inner = behind(program, rest)?;
        words.extend(inner.project);
        words.extend(inner.words);
    }
    Some(Package { words: words.clone(), ..Package::named(registry, &words.join(" ")) })
}

/// The file that an interpreter runs. A different file is a different server.
fn script(words: &[&str], options: &Options) -> Option<Package> {
    Some(Package::named("script", first_operand(words, options)?))
}

fn module_or_script(words: &[&str], options: &Options) -> Option<Package> {
    let at = options.operand_place(words)?;
    let option = at.checked_sub(1).and_then(|before| words.get(before));
    let is_module = option.is_some_and(|option| options.last.contains(option));
    Some(Package::named(if is_module { "python-module" } else { "script" }, words.get(at)?))
}

fn typescript(words: &[&str]) -> Option<Package> {
    match words {
        ["watch", rest @ ..] => script(rest, &TYPESCRIPT),
        _ => script(words, &TYPESCRIPT),
    }
}

fn remote(words: &[&str]) -> Option<Package> {
    Some(Package::named("remote", first_operand(words, &MCP_REMOTE)?))
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The value of the first of these options, as `--option value` or `--option=value`.
fn option_value<'a>(words: &[&'a str], options: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(index, word)| {
        if options.contains(word) {
            return words.get(index + 1).copied();
        }
        options.iter().find_map(|option| word.strip_prefix(option)?.strip_prefix('='))
    })
}

fn npm_package(words: &[&str], options: &[&str]) -> Option<Package> {
    let at = NPM.operand_place(words)?;
    if let Some(named) = option_value(options, &["-p", "--package"]) {
        return Some(npm_name(named));
    }
    let (word, rest) = words.get(at..)?.split_first()?;
    let package = npm_name(word);
    match package.name.as_str() {
        // These start another program's server, and that server is the one to identify.
        "mcp-remote" => remote(rest),
        "tsx" | "ts-node" => typescript(rest),
        _ => Some(package),
    }
}

pub(super) fn npm_name(word: &str) -> Package {
    let spec = word.strip_prefix(NPM_PREFIX).unwrap_or(word);
    let scope = usize::from(spec.starts_with('@'));
    let (name, version) = match spec.get(scope..).and_then(|rest| rest.find('@')) {
        Some(at) => spec.split_at(at + scope),
        None => (spec, ""),
    };
    let version = version.strip_prefix('@').filter(|version| !version.is_empty());
    Package::read("npm", name, version, word)
}

fn python_package(words: &[&str], options: &Options) -> Option<Package> {
    let operand = first_operand(words, options)?;
    let word = option_value(options_of(words, options)?, &["--from", "--spec"]).unwrap_or(operand);
    let (name, version) =
        match word.find("==").map(|at| (at, 2)).or_else(|| word.find('@').map(|at| (at, 1))) {
            Some((at, length)) => (word.get(..at).unwrap_or(word), word.get(at + length..)),
            None => (word, None),
        };
    // Extras (`name[extra]`) select parts of the same package.
    let name = name.split('[').next().unwrap_or(name).trim().to_owned();
    let version = version.filter(|version| !version.is_empty());
    Some(Package::read("pypi", &name, version, word))
}

fn image(words: &[&str]) -> Option<Package> {
    let word = first_operand(words, &CONTAINER_RUN)?;
    let (name, version) = match word.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => match word.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (word, None),
        },
    };
    Some(Package::read("oci", name, version, word))
}

/// A launcher's own options. Those after the first operand belong to the program it runs.
pub(super) fn options_of<'w, 'a>(words: &'w [&'a str], options: &Options) -> Option<&'w [&'a str]> {
    words.get(..options.operand_place(words)?)
}

/// The first word that is neither an option nor an option's value.
fn first_operand<'a>(words: &[&'a str], options: &Options) -> Option<&'a str> {
    words.get(options.operand_place(words)?).copied()
}
