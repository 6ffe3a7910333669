//! What a command starts: a file, or a package that a launcher finds.

use super::NotObserved;
use contract::origin::ProgramOrigin;
use std::path::{Path, PathBuf};
use wire::StdioLaunch;

/// How a server's package can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// This file is run.
    File(PathBuf),
    /// A launcher was told to run a package.
    Launched { name: String, version: Option<String> },
}

/// The registry whose packages have records that are read.
const REGISTRY: &str = "npm";

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
/// The same with a value behind `=`.
const HARMLESS_WITH_VALUE: [&str; 4] = [
    "--disable-warning=",
    "--max-old-space-size=",
    "--max-semi-space-size=",
    "--stack-trace-limit=",
];

/// What a command runs. `file` is where its program was found.
pub(super) fn way_of(file: &Path, launch: &StdioLaunch) -> Result<Way, NotObserved> {
    let program = launch.program.to_string_lossy().into_owned();
    let words: Vec<String> =
        launch.arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(package) = ProgramOrigin::of(&program, &words).package
        && package.registry == REGISTRY
    {
        return Ok(Way::Launched { name: package.name, version: package.version });
    }
    if let Some(script) = script_of(&program, &words)? {
        let script = PathBuf::from(script);
        return Ok(Way::File(match &launch.directory {
            Some(directory) => directory.join(script),
            None => script,
        }));
    }
    // A package's own program, by its path or by the name of a link to it.
    match super::place_of(file) {
        Ok(_) => Ok(Way::File(file.to_owned())),
        Err(_) => Err(NotObserved::NoPackage { program }),
    }
}

/// The file that an interpreter runs; nothing where the program is none. A word that is not text is not a path that could
/// be looked through, so what was replaced in it is not found.
pub(super) fn script_of<'w>(
    program: &str,
    words: &'w [String],
) -> Result<Option<&'w str>, NotObserved> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let is_bun = name == "bun";
    if !is_bun && !matches!(name, "node" | "nodejs") {
        return Ok(None);
    }
    let no_script = || NotObserved::NoScript { program: program.to_owned() };
    for word in words {
        let is_harmless = HARMLESS.contains(&word.as_str())
            || HARMLESS_WITH_VALUE.iter().any(|option| word.starts_with(option));
        if is_harmless {
            continue;
        }
        if word.starts_with('-') {
            let (program, option) = (program.to_owned(), word.clone());
            return Err(NotObserved::Option { program, option });
        }
        // bun takes a bare word for one of its commands or for a script of the project.
        return if is_bun && !word.contains('/') { Err(no_script()) } else { Ok(Some(word)) };
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
            let launch =
                StdioLaunch { program, arguments, environment: Vec::new(), directory: None };
            way_of(Path::new("/nowhere"), &launch)
        };
        for (line, version) in [
            ("npx -y @s/mail@1.2.3 /srv", Some("1.2.3")),
            ("npm exec @s/mail -- /srv", None),
            ("bunx @s/mail@latest", Some("latest")),
            ("pnpm dlx @s/mail", None),
            ("env A=b npx @s/mail", None),
        ] {
            let (name, version) = ("@s/mail".to_owned(), version.map(str::to_owned));
            assert_eq!(way(line).unwrap(), Way::Launched { name, version }, "{line}");
        }
        for line in ["uvx mail", "docker run mail", "sh -c mail", "/nowhere"] {
            assert!(matches!(way(line), Err(NotObserved::NoPackage { .. })), "{line}");
        }
    }
}
