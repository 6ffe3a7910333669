//! What to run for a launch once it is confined. Pure: it only depends on the words of the command
//! line.
//!
//! Launchers are not run inside: they need a writable cache, and if servers shared one, each could
//! poison the others. Instead, a separate step installs the package, and the installed program is
//! run.

use contract::origin::{
    FetchedPackage, Registry, UnclearFetch, container_options, find_fetched, find_package,
};

/// How to start a launch confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plan {
    /// The program itself, which may be an interpreter.
    Program(ProgramPlan),
    /// The program of a package, after the package is installed.
    Package(Box<FetchedPackage>),
}

/// The code that a directly started program runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ProgramPlan {
    /// The code file that an interpreter runs.
    pub(super) script: Option<String>,
    /// The Python module that is run.
    pub(super) module: Option<String>,
    /// The project that a launcher (`uv run`) runs it in; empty for the working folder.
    pub(super) project: Option<String>,
}

/// Why a launch cannot be confined, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    #[error(
        "`{engine}` runs the server in a container, so `{engine}` confines it and Holdpoint does not: start it without a sandbox (`danger_unconfined = true` at the gateway)"
    )]
    Container { engine: String },
    #[error(
        "`{program}` runs the server on another machine or in a container that runs already, which Holdpoint cannot confine: start it without a sandbox (`danger_unconfined = true` at the gateway)"
    )]
    Elsewhere { program: String },
    #[error(
        "{0}, so it is not known what would be confined: name the package alone, as in `npx -y PACKAGE` or `uvx PACKAGE`, or install it and start its program"
    )]
    Unclear(#[from] UnclearFetch),
}

/// Options of container engines that give a container access to the machine.
const OPENING: [&str; 8] = [
    "--privileged",
    "--cap-add",
    "--security-opt",
    "--device",
    "--use-api-socket",
    "--volumes-from",
    "--group-add",
    "--gpus",
];

impl Plan {
    pub(super) fn of(program: &str, arguments: &[String]) -> Result<Plan, NoPlan> {
        let base = program.rsplit('/').next().unwrap_or(program);
        if container_options(program, arguments).is_some() {
            return Err(NoPlan::Container { engine: base.to_owned() });
        }
        if let Some(package) = find_fetched(program, arguments)? {
            return Ok(Plan::Package(Box::new(package)));
        }
        let Some(found) = find_package(program, arguments) else {
            return Ok(Plan::Program(ProgramPlan::default()));
        };
        let project_runners = ["uv", "poetry", "pdm", "hatch", "rye", "pipenv"];
        let project = found.project().map(str::to_owned);
        let project = project.or_else(|| project_runners.contains(&base).then(String::new));
        match found.registry {
            "ssh" | "container" => Err(NoPlan::Elsewhere { program: base.to_owned() }),
            "python-module" => {
                let module = Some(found.name);
                Ok(Plan::Program(ProgramPlan { module, project, script: None }))
            }
            "script" => {
                let script = Some(found.name);
                Ok(Plan::Program(ProgramPlan { script, project, module: None }))
            }
            _ => Ok(Plan::Program(ProgramPlan { project, ..ProgramPlan::default() })),
        }
    }
}

/// The option that gives a container access to the machine, if there is one. Also `None` for a
/// command without a container.
pub fn container_opened_by(program: &str, arguments: &[String]) -> Option<String> {
    let options = container_options(program, arguments)?;
    let opens = |word: &&String| {
        let name = word.split('=').next().unwrap_or(word);
        let is_host = *word == "host" || word.ends_with("=host");
        let is_volume =
            word.starts_with("/:") || word.contains("=/:") || word.contains("source=/,");
        OPENING.contains(&name) || is_host || is_volume || word.contains("docker.sock")
    };
    options.iter().find(opens).cloned()
}

/// The name of a launch's package in the table of known packages.
pub(super) fn known_as(fetched: &FetchedPackage) -> (Registry, &str) {
    (fetched.registry, &fetched.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, NoPlan> {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next().unwrap();
        Plan::of(&program, &words.collect::<Vec<_>>())
    }

    #[track_caller]
    fn program(line: &str, script: &str, module: &str, project: Option<&str>) {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let expected = ProgramPlan {
            script: text(script),
            module: text(module),
            project: project.map(str::to_owned),
        };
        assert_eq!(plan(line), Ok(Plan::Program(expected)), "{line}");
    }

    #[test]
    fn programs_and_interpreters_are_started_themselves() {
        program("/opt/server --port 1", "", "", None);
        program("node --no-warnings a/b.js x", "a/b.js", "", None);
        program("python3 -m mcp_server_time", "", "mcp_server_time", None);
        program("/srv/venv/bin/python server.py", "server.py", "", None);
        program("uv run --directory /srv/p server.py", "server.py", "", Some("/srv/p"));
        program("uv run server.py", "server.py", "", Some(""));
        program("java -jar /srv/a.jar", "/srv/a.jar", "", None);
    }

    #[test]
    fn packages_are_installed_first() {
        let found = plan("npx -y @s/files@1.2.3 /srv");
        let Ok(Plan::Package(package)) = found else { panic!("{found:?}") };
        assert_eq!(known_as(&package), (Registry::Npm, "@s/files"));
        assert!(matches!(plan("uvx mcp-server-time"), Ok(Plan::Package(_))));
    }

    #[test]
    fn what_runs_elsewhere_or_is_not_clear_is_refused_with_a_way_out() {
        for line in [
            "docker run -i image",
            "podman run image",
            "ssh host server",
            "docker exec -i box server",
            "npx -c 'a b'",
            "uvx --from git+https://a.example/x pkg",
            "env npx files",
        ] {
            let error = plan(line).unwrap_err().to_string();
            assert!(error.contains("start"), "{line}: {error}");
        }
    }

    #[test]
    fn rights_that_a_container_gets_are_named() {
        let opened = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            container_opened_by("docker", &words)
        };
        for (line, by) in [
            ("run --privileged image", "--privileged"),
            ("run --network host image", "host"),
            ("run --pid=host image", "--pid=host"),
            ("run -v /:/host image", "/:/host"),
            ("run -v /var/run/docker.sock:/s image", "/var/run/docker.sock:/s"),
            ("run --cap-add=SYS_ADMIN image", "--cap-add=SYS_ADMIN"),
        ] {
            assert_eq!(opened(line).as_deref(), Some(by), "{line}");
        }
        for line in ["run -i --rm image", "run -v /srv/data:/data image --privileged", "ps"] {
            assert_eq!(opened(line), None, "{line}");
        }
    }
}
