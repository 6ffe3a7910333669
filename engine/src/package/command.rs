//! Determines what a command starts: a file, or a package that a launcher finds.

use super::NotObserved;
use super::surroundings::{self, SetBy, Surroundings};
use contract::origin::find_package;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use wire::StdioLaunch;

/// How a server's package can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// This file is run.
    File(PathBuf),
    /// A launcher whose arguments name a package to run.
    Launched { name: String, version: Option<String> },
}

/// The registry whose packages have supported records.
const REGISTRY: &str = "npm";

/// Programs that run the file named by their first argument.
const INTERPRETERS: [&str; 3] = ["bun", "node", "nodejs"];

/// Options before the file that load no code and do not change where code is loaded from.
const HARMLESS: [&str; 8] = [
    "--enable-source-maps",
    "--expose-gc",
    "--no-deprecation",
    "--no-warnings",
    "--trace-deprecation",
    "--trace-uncaught",
    "--trace-warnings",
    "--use-system-ca",
];
/// The same, with a value after `=`.
const HARMLESS_WITH_VALUE: [&str; 4] = [
    "--disable-warning=",
    "--max-old-space-size=",
    "--max-semi-space-size=",
    "--stack-trace-limit=",
];

/// Options of launchers that only affect output and fetching.
const HARMLESS_FOR_LAUNCHER: [&str; 8] =
    ["--no-install", "--offline", "--prefer-offline", "--quiet", "--silent", "--yes", "-q", "-y"];
/// Options of launchers that name the package.
const PACKAGE_OPTIONS: [&str; 2] = ["--package", "-p"];

/// What a command runs. `file` is where its program was found, and `ours` this process's
/// environment.
pub(super) fn way_of(
    file: &Path,
    launch: &StdioLaunch,
    ours: &[(OsString, OsString)],
) -> Result<(Way, Surroundings), NotObserved> {
    let surroundings = Surroundings::of(launch, ours)?;
    let program = launch.program.to_string_lossy().into_owned();
    let words: Vec<String> =
        launch.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let vetted = vet_launcher(&program, &words);
    // After an option that takes code, no word can be the package, so report the option as the
    // reason.
    if let Err(refused @ NotObserved::Option { .. }) = vetted {
        return Err(refused);
    }
    if let Some(package) = find_package(&program, &words)
        && package.registry == REGISTRY
    {
        vetted?;
        surroundings.refuse_settings()?;
        let way = Way::Launched { name: package.name, version: package.version };
        return Ok((way, surroundings));
    }
    if let Some(script) = script_of(&program, &words)? {
        vet_interpreter(&program, file)?;
        if base_name(&program) == "bun" {
            surroundings.refuse_bun_settings()?;
        }
        return Ok((Way::File(surroundings.directory.join(script)), surroundings));
    }
    // A package's own program, named by its path or by a link to it.
    if super::place_of(file).is_err() {
        return Err(NotObserved::NoPackage { program });
    }
    if first_line(file).is_none_or(|line| line.windows(3).any(|part| part == b"bun")) {
        surroundings.refuse_bun_settings()?;
    }
    Ok((Way::File(file.to_owned()), surroundings))
}

/// Refuses a launcher with arguments beyond those that name the package to run.
fn vet_launcher(program: &str, words: &[String]) -> Result<(), NotObserved> {
    let unknown = || NotObserved::NoPackage { program: program.to_owned() };
    let refused = |option: &str| {
        let (program, option) = (program.to_owned(), option.to_owned());
        NotObserved::Option { program, option }
    };
    if program.contains('/') && !program.starts_with('/') {
        return Err(NotObserved::Interpreter { program: program.to_owned() });
    }
    // It reads options after the package's name too, up to `--`.
    let (mut reads_on, mut words) = (false, words.iter().map(String::as_str));
    match (base_name(program), words.clone().next()) {
        ("env", _) => {
            let assignment = |word: &&str| word.contains('=') && !word.starts_with('-');
            let count = words.clone().take_while(assignment).count();
            let set: Vec<(&str, &str)> =
                words.by_ref().take(count).filter_map(|word| word.split_once('=')).collect();
            let set = set.into_iter().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
            surroundings::refuse_loading(set, SetBy::Entry)?;
            let inner = words.next().ok_or_else(unknown)?;
            if inner.starts_with('-') {
                return Err(refused(inner));
            }
            let rest: Vec<String> = words.map(str::to_owned).collect();
            return vet_launcher(inner, &rest);
        }
        ("npx" | "bunx" | "pnpx", _) => {}
        ("npm", Some("exec" | "x")) => {
            reads_on = true;
            words.next();
        }
        ("pnpm", Some("dlx" | "exec")) | ("bun", Some("x")) => {
            words.next();
        }
        _ => return Err(unknown()),
    }
    let mut packages = 0;
    while let Some(word) = words.next() {
        let is_package = |option: &&str| {
            word.strip_prefix(*option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        if word == "--" || (!word.starts_with('-') && !reads_on) {
            break;
        }
        if PACKAGE_OPTIONS.iter().any(is_package) {
            packages += 1;
            if !word.contains('=') {
                words.next();
            }
        } else if word.starts_with('-') && !HARMLESS_FOR_LAUNCHER.contains(&word) {
            return Err(refused(word));
        }
        if packages > 1 {
            return Err(refused(word));
        }
    }
    Ok(())
}

/// Refuses a program that only has the name of an interpreter: a script, a link to something else,
/// a file in the working folder. A package cannot tell which interpreter this is.
fn vet_interpreter(program: &str, file: &Path) -> Result<(), NotObserved> {
    let is_of_folder = program.contains('/') && !program.starts_with('/');
    let is_named = file.canonicalize().is_ok_and(|real| is_interpreter(&real));
    let is_script = first_line(file).is_none_or(|line| line.starts_with(b"#!"));
    if is_of_folder || !is_named || is_script {
        return Err(NotObserved::Interpreter { program: program.to_owned() });
    }
    Ok(())
}

/// Whether a file has the name of an interpreter.
pub(super) fn is_interpreter(file: &Path) -> bool {
    file.file_name().is_some_and(|name| INTERPRETERS.iter().any(|known| name == *known))
}

/// The start of a file, up to the end of its first line.
fn first_line(file: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let beginning = std::fs::File::open(file).ok()?;
    std::io::Read::read_to_end(&mut std::io::Read::take(beginning, 256), &mut bytes).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    bytes.truncate(end);
    // If the file is not a script, its start is irrelevant.
    if !bytes.starts_with(b"#!") {
        bytes.clear();
    }
    Some(bytes)
}

/// A program's name without its folder.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether an interpreter's option loads no code.
pub(super) fn is_harmless(word: &str) -> bool {
    HARMLESS.contains(&word) || HARMLESS_WITH_VALUE.iter().any(|option| word.starts_with(option))
}

/// The file that an interpreter runs; `None` if the program is not an interpreter. A word that is
/// not valid text is not a usable path, and after replacing its invalid parts no such file exists.
pub(super) fn script_of<'w>(
    program: &str,
    words: &'w [String],
) -> Result<Option<&'w str>, NotObserved> {
    let name = base_name(program);
    if !INTERPRETERS.contains(&name) {
        return Ok(None);
    }
    let no_script = || NotObserved::NoScript { program: program.to_owned() };
    for word in words {
        if is_harmless(word) {
            continue;
        }
        if word.starts_with('-') {
            let (program, option) = (program.to_owned(), word.clone());
            return Err(NotObserved::Option { program, option });
        }
        // bun interprets a bare word as one of its commands or as a script of the project.
        let is_bare = name == "bun" && !word.contains('/');
        return if is_bare { Err(no_script()) } else { Ok(Some(word)) };
    }
    Err(no_script())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(line: &str) -> Result<Option<String>, String> {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        let words: Vec<String> = words.collect();
        let found = script_of(&program, &words).map_err(|error| error.to_string())?;
        Ok(found.map(str::to_owned))
    }

    #[test]
    fn an_interpreter_runs_its_first_operand() {
        for (line, expected) in [
            ("node a/b.js --import x", Some("a/b.js")),
            ("/usr/bin/node --no-warnings --max-old-space-size=64 b.js", Some("b.js")),
            ("bun ./b.ts", Some("./b.ts")),
            ("mcp-server-files /srv", None),
            ("python3 server.py", None),
        ] {
            assert_eq!(script(line), Ok(expected.map(str::to_owned)), "{line}");
        }
    }

    #[test]
    fn what_may_load_something_else_is_not_taken_for_the_package() {
        for line in [
            "node --import ./evil.js a/b.js",
            "node --import=./evil.js a/b.js",
            "node -r evil a/b.js",
            "node --experimental-loader=x a/b.js",
            "node --env-file=.env a/b.js",
            "node --preserve-symlinks-main a/b.js",
            "node -e code",
            "node -",
            "node -- a/b.js",
            "node --no-warnings-x a/b.js",
            "bun --preload ./evil.js ./b.ts",
            "bun run ./b.ts",
            "bun dev",
            "node",
        ] {
            assert!(script(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_launcher_is_looked_through() {
        let way = |line: &str| {
            let mut words = line.split(' ').map(Into::into);
            let program = words.next().unwrap();
            let arguments = words.collect();
            let launch = StdioLaunch { program, arguments, ..StdioLaunch::default() };
            way_of(Path::new("/nowhere"), &launch, &[]).map(|(way, _)| way)
        };
        for (line, version) in [
            ("npx -y @s/mail@1.2.3 /srv", Some("1.2.3")),
            ("npm exec @s/mail -- /srv", None),
            ("bunx @s/mail@latest", Some("latest")),
            ("pnpm dlx @s/mail", None),
            ("env A=b npx @s/mail", None),
            ("/usr/bin/npx -q --yes --offline -p @s/mail other --port 1", None),
            ("npx @s/mail --node-options=x", None),
            ("npm exec @s/mail -- --call x", None),
        ] {
            let (name, version) = ("@s/mail".to_owned(), version.map(str::to_owned));
            assert_eq!(way(line).unwrap(), Way::Launched { name, version }, "{line}");
        }
        for line in [
            "npx --node-options=x @s/mail",
            "npx --node-options x @s/mail",
            "npx --script-shell=/x @s/mail",
            "npx -c mail @s/mail",
            "npx --call=mail @s/mail",
            "npx -p @s/mail -p other mail",
            "npx --package=@s/mail --package other mail",
            "npm exec @s/mail --node-options=x",
            "npm exec @s/mail -c x",
            "bunx --bun @s/mail",
            "env -S npx @s/mail",
        ] {
            assert!(matches!(way(line), Err(NotObserved::Option { .. })), "{line}");
        }
        for line in ["env NODE_OPTIONS=--require=x npx @s/mail", "env LD_PRELOAD=x npx @s/mail"] {
            assert!(matches!(way(line), Err(NotObserved::Variable { .. })), "{line}");
        }
        for line in ["./tools/npx @s/mail", "env tools/npx @s/mail"] {
            assert!(matches!(way(line), Err(NotObserved::Interpreter { .. })), "{line}");
        }
        for line in [
            "yarn dlx mail",
            "deno run npm:mail",
            "uvx mail",
            "docker run mail",
            "sh -c mail",
            "/nowhere",
        ] {
            assert!(matches!(way(line), Err(NotObserved::NoPackage { .. })), "{line}");
        }
    }
}
