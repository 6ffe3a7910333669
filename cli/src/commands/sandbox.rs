//! `holdpoint sandbox`: tries a program under a server's profile; reports what was denied, proposes
//! a profile, and lists the packages whose hosts are known.

mod findings;

use crate::arguments::Options;
use crate::arguments::sandbox::{
    SandboxArguments, SandboxCommand, SandboxProfile, SandboxSubcommand,
};
use crate::configuration::Configuration;
use crate::confinement::{ConfinedIn, asked, confiner};
use crate::failure::{Exit, Failure};
use crate::screen::{self, BOLD, DIM, readable, styled};
use crate::target::home_path;
use engine::confinement::{ConfineError, KnownPackages, PACKAGES_FILE, Prepared, TableSource};
use findings::Findings;
use gate::server::ServerId;
use sandbox::{Confined, Embedder};
use serde_json::json;
use settings::{ConfinedPath, Parsed, Sandbox};
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use wire::StdioLaunch;
use wire::process::Environment;

/// The server id for trials of programs that belong to no server.
const TRIED: &str = "sandbox-trial";
/// How long the last output may take to be copied after the program has ended.
const COPY_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) fn run(command: &SandboxCommand, options: &Options) -> Result<Exit, Failure> {
    match command.command {
        Some(SandboxSubcommand::Packages) => packages(options),
        None => try_program(command, options),
    }
}

fn packages(options: &Options) -> Result<Exit, Failure> {
    let home = home_path(options)?;
    let known = KnownPackages::read(&home).map_err(Failure::usage)?;
    if options.json {
        let packages: Vec<_> = known
            .iter()
            .map(|(package, source)| {
                json!({
                    "registry": package.registry,
                    "name": package.name,
                    "hosts": package.hosts,
                    "why": package.why,
                    "source": source,
                })
            })
            .collect();
        screen::print_json(&json!({ "file": home.join(PACKAGES_FILE), "packages": packages }))?;
        return Ok(Exit::Fine);
    }
    for (package, source) in known.iter() {
        let hosts: Vec<String> = package.hosts.iter().map(ToString::to_string).collect();
        let own = match source {
            TableSource::Shipped => "",
            TableSource::Yours => " (yours)",
        };
        screen::say(format!(
            "{} {}{own}  {}",
            package.registry,
            styled(BOLD, readable(&package.name)),
            hosts.join(" ")
        ));
        screen::say(styled(DIM, format!("    {}", readable(&package.why))));
    }
    let own = home.join(PACKAGES_FILE);
    screen::say(styled(DIM, format!("add or replace packages in {}", own.display())));
    Ok(Exit::Fine)
}

fn try_program(command: &SandboxCommand, options: &Options) -> Result<Exit, Failure> {
    let Some((program, arguments)) = command.program.split_first() else {
        return Err(Failure::usage(
            "which program? put it behind `--`: `holdpoint sandbox -- CMD…`",
        ));
    };
    let home = home_path(options)?;
    let configuration = Configuration::read(&home.join("holdpoint.toml"))?;
    let id = match &command.server {
        Some(id) => id.clone(),
        None => TRIED.parse::<ServerId>().map_err(Failure::internal)?,
    };
    let keys = keys(command, configuration.sandbox(&id))?;
    let place = ConfinedIn { home: &home, configuration: &configuration, is_quiet: options.quiet };
    let confiner = confiner(&id, keys, place)?;
    let launch = StdioLaunch {
        program: program.clone(),
        arguments: arguments.to_vec(),
        ..StdioLaunch::default()
    };
    let refused = |error: ConfineError| Failure::usage(error.to_string());
    let Prepared { mut profile, launch } =
        confiner.prepare(&launch, Environment::Named).map_err(refused)?;
    profile.observe = command.explain || command.learn;
    let findings = Arc::new(Mutex::new(Findings::default()));
    let heard = findings.clone();
    let embedder = Embedder {
        events: Arc::new(move |event| {
            heard.lock().unwrap_or_else(PoisonError::into_inner).hear(event);
        }),
        ..confiner.embedder()
    };
    let Confined { command: mut start, watch } = sandbox::confine(&profile, &launch, &embedder)
        .map_err(|source| refused(ConfineError::Refused { source }))?;
    // Hand over only a terminal. A program could read and truncate a file.
    let is_piped = options.json || !std::io::stdout().is_terminal();
    let output = if is_piped { Stdio::piped() } else { Stdio::inherit() };
    start.stdin(Stdio::inherit()).stdout(output).stderr(Stdio::piped());
    let not_started = |error: std::io::Error| Failure::unreachable(error.to_string());
    let mut child = start.spawn().map_err(not_started)?;
    drop(start);
    let output = child.stdout.take().map(|output| match options.json {
        true => copy(output, std::io::stderr()),
        false => copy(output, std::io::stdout()),
    });
    let errors = child.stderr.take().map(|errors| copy(errors, std::io::stderr()));
    let status = child.wait().map_err(not_started)?;
    let level = watch.level();
    drop((watch, embedder));
    for copied in [output, errors].into_iter().flatten() {
        // A process that outlives the program, which only `partial` allows, may still hold the
        // pipe.
        let _ = copied.recv_timeout(COPY_TIMEOUT);
    }
    let code = u8::try_from(status.code().unwrap_or(1) & 0xff).unwrap_or(1);
    let findings = findings.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = &findings.failed {
        return Err(Failure::unreachable(format!("the program was not started: {why}")));
    }
    if options.json {
        screen::print_json(&findings.document(level, code, &profile))?;
    } else if command.explain || command.learn {
        findings.show(&id, &profile, command.learn);
    }
    Ok(Exit::Server(code))
}

/// Copies a program's output until it ends, then notifies the receiver.
fn copy(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
) -> mpsc::Receiver<()> {
    let (sender, copied) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.flush();
        drop(sender);
    });
    copied
}

/// The profile to try: the configuration, overridden by the command line.
fn keys(command: &SandboxCommand, configured: &Sandbox) -> Result<Sandbox, Failure> {
    let wanted = SandboxArguments {
        sandbox: Some(SandboxProfile::Isolated),
        workspace: command.workspace.clone(),
        net_allow: command.net_allow.clone(),
        pass_env: command.pass_env.clone(),
    };
    let mut keys = asked(&wanted, configured)?.unwrap_or_default();
    let files = command.fs.map(Parsed);
    keys.fs = files.or(configured.fs).or(keys.fs);
    keys.net = command.net.map(Parsed).or(keys.net);
    let absolute = |paths: &[PathBuf]| -> Result<Vec<ConfinedPath>, Failure> {
        let absolute = paths.iter().map(|path| {
            path.canonicalize()
                .map(ConfinedPath::new)
                .map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))
        });
        absolute.collect()
    };
    keys.read.get_or_insert_default().extend(absolute(&command.read)?);
    keys.write.get_or_insert_default().extend(absolute(&command.write)?);
    Ok(keys)
}
