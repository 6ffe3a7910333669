//! Launchers: which package, image, module or script a command line runs.

use super::redact::is_bare_name;

/// A package that a launcher fetches and runs, as the command line names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Where it comes from: `npm`, `pypi`, `oci`, `python-module`; `script` for a file, `remote` for an address, `ssh` and
    /// `container` for a program elsewhere.
    pub registry: &'static str,
    pub name: String,
    pub version: Option<String>,
    /// The folder of the project that it is run in, where the launcher names one.
    pub(super) project: Option<String>,
    /// The words of the command line that name it.
    pub(super) words: Vec<String>,
}

/// What an npm package's name begins with for Deno.
const NPM_PREFIX: &str = "npm:";
/// The longest package name, and the longest version, that is kept in clear.
const MAX_PACKAGE_BYTES: usize = 128;

impl Package {
    fn read(registry: &'static str, name: &str, version: Option<&str>, word: &str) -> Package {
        let words = vec![word.to_owned()];
        let version = version.map(str::to_owned);
        Package { registry, name: name.to_owned(), version, project: None, words }
    }

    /// One that has no version, and whose name is a word of its own.
    fn named(registry: &'static str, name: &str) -> Package {
        Package::read(registry, name, None, name)
    }
}

/// Whether a word is a package's, image's, module's or script's name, with or without a version, and nothing else.
pub(super) fn is_plain_word(registry: &str, word: &str) -> bool {
    let Package { name, version, .. } = match registry {
        "npm" => npm_name(word),
        "pypi" => match python_package(&[word]) {
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
        // Extras (`name[extra]`) are no part of the name.
        _ => made_of(&name, b"-_.") && made_of(word, b"-_.[],@+~^*<>=!"),
    };
    let marks: &[u8] = if registry == "oci" { b"-_.:" } else { b"-_.+~^*<>=!," };
    is_name && version.is_none_or(|version| made_of(&version, marks))
}

fn base_name(program: &str) -> String {
    let last = program.rsplit(['/', '\\']).next().unwrap_or(program).to_ascii_lowercase();
    let endings = [".exe", ".cmd", ".bat"];
    endings.iter().find_map(|ending| last.strip_suffix(ending)).unwrap_or(&last).to_owned()
}

/// The package that a command line runs; `None` if the program is no launcher that is known here.
pub fn find_package(program: &str, arguments: &[String]) -> Option<Package> {
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
        | ("pnpm" | "yarn", ["dlx" | "exec", rest @ ..])
        | ("bun", ["x", rest @ ..]) => npm_package(rest, options_of(rest, &NPM_TAKES_VALUE)),
        // It looks for its options behind the package's name too.
        ("npm", ["exec" | "x", rest @ ..]) => npm_package(rest, rest),
        ("deno", ["run", rest @ ..]) => {
            let word = rest.iter().find(|word| word.starts_with(NPM_PREFIX));
            word.map(|word| npm_name(word)).or_else(|| script(rest, &[]))
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
            let options = options_of(rest, &["-c", "-W", "-X"]);
            match options.iter().position(|word| *word == "-m") {
                Some(at) => Some(Package::named("python-module", rest.get(at + 1)?)),
                None => script(rest, &["-c", "-W", "-X"]),
            }
        }
        ("bun", ["run", rest @ ..]) => script(rest, &[]),
        ("node" | "nodejs" | "bun" | "deno" | "ruby" | "perl" | "php" | "bash" | "sh", rest) => {
            script(rest, &["-e", "-r", "-c", "--require", "--import", "--loader", "--env-file"])
        }
        ("java", rest) => option_value(rest, &["-jar"]).map(|name| Package::named("script", name)),
        _ => None,
    }
}

/// Options of `npx` and its like that a value follows.
const NPM_TAKES_VALUE: [&str; 7] =
    ["-c", "--call", "--node-options", "--registry", "--cache", "-p", "--package"];
/// Options of `ssh` that a value follows.
const SSH_TAKES_VALUE: [&str; 10] = ["-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-b"];
/// Options of launchers in front of a project that a value follows; those that name the project first.
const PROJECTS: [&str; 4] = ["--directory", "--project", "-C", "-p"];
const PROJECT_TAKES_VALUE: [&str; 16] = [
    "-m",
    "--module",
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
    let options = options_of(rest, &PROJECT_TAKES_VALUE);
    let package = match option_value(options, &["-m", "--module"]) {
        Some(module) => Package::named("python-module", module),
        None => {
            let at = operand_place(rest, &PROJECT_TAKES_VALUE)?;
            let (program, rest) = rest.get(at..)?.split_first()?;
            let itself = || Package::named("script", program);
            find_package(program, &owned(rest)).unwrap_or_else(itself)
        }
    };
    // The same name in another project is another program.
    let project = option_value(before, &PROJECTS).or_else(|| option_value(options, &PROJECTS));
    let is_inside = !package.name.starts_with(['/', '\\']);
    Some(Package { project: project.filter(|_| is_inside).map(str::to_owned), ..package })
}

/// A program on another machine or in a container: where, and which.
fn elsewhere(registry: &'static str, words: &[&str], takes_value: &[&str]) -> Option<Package> {
    let at = operand_place(words, takes_value)?;
    let words = owned(words.get(at..)?.get(..2).or_else(|| words.get(at..))?);
    Some(Package { words: words.clone(), ..Package::named(registry, &words.join(" ")) })
}

/// The file that an interpreter runs: another file is another server.
fn script(words: &[&str], takes_value: &[&str]) -> Option<Package> {
    Some(Package::named("script", first_operand(words, takes_value)?))
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

fn npm_package(words: &[&str], options: &[&str]) -> Option<Package> {
    if let Some(named) = option_value(options, &["-p", "--package"]) {
        return Some(npm_name(named));
    }
    let at = operand_place(words, &NPM_TAKES_VALUE)?;
    let (word, rest) = words.get(at..)?.split_first()?;
    let package = npm_name(word);
    match package.name.as_str() {
        // They bring somebody else's server here: that one is meant.
        "mcp-remote" => Some(Package::named("remote", first_operand(rest, &[])?)),
        "tsx" | "ts-node" => script(rest, &["--tsconfig", "-P", "--project"]).or(Some(package)),
        _ => Some(package),
    }
}

fn npm_name(word: &str) -> Package {
    let spec = word.strip_prefix(NPM_PREFIX).unwrap_or(word);
    let scope = usize::from(spec.starts_with('@'));
    let (name, version) = match spec.get(scope..).and_then(|rest| rest.find('@')) {
        Some(at) => spec.split_at(at + scope),
        None => (spec, ""),
    };
    let version = version.strip_prefix('@').filter(|version| !version.is_empty());
    Package::read("npm", name, version, word)
}

fn python_package(words: &[&str]) -> Option<Package> {
    let takes_value =
        ["--from", "--with", "--python", "-p", "--index-url", "--directory", "--spec"];
    let word = option_value(options_of(words, &takes_value), &["--from", "--spec"])
        .or_else(|| first_operand(words, &takes_value))?;
    let (name, version) =
        match word.find("==").map(|at| (at, 2)).or_else(|| word.find('@').map(|at| (at, 1))) {
            Some((at, length)) => (word.get(..at).unwrap_or(word), word.get(at + length..)),
            None => (word, None),
        };
    // Extras (`name[extra]`) choose among the same package's parts.
    let name = name.split('[').next().unwrap_or(name).trim().to_owned();
    let version = version.filter(|version| !version.is_empty());
    Some(Package::read("pypi", &name, version, word))
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
    Some(Package::read("oci", name, version, word))
}

/// A launcher's own options: those behind the first operand are for what it runs.
fn options_of<'w, 'a>(words: &'w [&'a str], takes_value: &[&str]) -> &'w [&'a str] {
    let end = operand_place(words, takes_value).unwrap_or(words.len());
    words.get(..end).unwrap_or(words)
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
