//! `holdpoint gateway`: one authenticated endpoint in front of all servers.

mod found;
mod init;
mod process_file;
mod reload;
mod requirements;

use crate::arguments::Options;
use crate::arguments::gateway::{GatewayCommand, GatewaySubcommand};
use crate::configuration::{Configuration, export_settings, receipt_settings, start_export};
use crate::failure::{Exit, Failure};
use crate::target::home_path;
use crate::{gateway_file, screen};
use gateway::{ADMIN_PATH, Node, serve, serve_admin, serve_metrics, serve_peers};
use process_file::ProcessFile;
use settings::gateway::GatewaySettings;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::Home;
use tokio::runtime::Runtime;

/// How long calls in progress may take to finish when the gateway shuts down.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) fn run(command: &GatewayCommand, options: &Options) -> Result<Exit, Failure> {
    let home = home_path(options)?;
    match command.command {
        Some(GatewaySubcommand::Init) => {
            return init::run(&home, command.config.as_deref(), options);
        }
        Some(GatewaySubcommand::Reload) => {
            return reload::run(&home, command.config.as_deref(), options);
        }
        None => {}
    }
    let path = gateway_file::path(&home, command.config.as_deref());
    let settings = Arc::new(read_settings(&path, &home)?);
    if !options.quiet {
        for warning in settings.warnings() {
            screen::remark(format!("holdpoint: note: {warning}"));
        }
    }
    let home = Home::open(&home)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let node = open(&settings, &home, &runtime, options)?;
    if command.check {
        screen::say(format!("{}: fine", path.display()));
        if !options.quiet {
            screen::say("requirements of an MCP gateway:");
            for line in requirements::lines(&settings) {
                screen::say(format!("  {line}"));
            }
        }
        return Ok(Exit::Fine);
    }
    let _export = start_export(export_settings(&settings.export)?, &home, options)?;
    let running = Running { node, path: std::path::absolute(&path)?, home };
    runtime.block_on(running.serve(&settings, options))?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(Exit::Fine)
}

fn open(
    settings: &Arc<GatewaySettings>,
    home: &Home,
    runtime: &Runtime,
    options: &Options,
) -> Result<Arc<Node>, Failure> {
    let is_quiet = options.quiet;
    let remark = Arc::new(move |sentence: &str| {
        if !is_quiet {
            screen::remark(format!("holdpoint: {}", screen::readable(sentence)));
        }
    });
    let receipts = receipt_settings(&settings.receipts);
    let _entered = runtime.enter();
    Node::open(settings.clone(), home.clone(), receipts, remark, runtime.handle().clone())
        .map_err(Failure::usage)
}

/// Reads the settings, or reports every mistake in them. If they name no store, the gateway uses
/// that of `holdpoint.toml`.
fn read_settings(path: &Path, home: &Path) -> Result<GatewaySettings, Failure> {
    if !path.exists() {
        let shown = path.display();
        return Err(Failure::usage(format!(
            "`{shown}` does not exist: `holdpoint gateway init` writes one"
        )));
    }
    let (mut settings, _) = gateway_file::read(path)?;
    let configuration = Configuration::read(&home.join("holdpoint.toml"))?;
    gateway_file::location(&settings, &configuration)?;
    settings.store.get_or_insert_with(|| configuration.store_text().to_owned());
    Ok(settings)
}

/// A running gateway.
struct Running {
    node: Arc<Node>,
    path: PathBuf,
    home: Home,
}

impl Running {
    async fn serve(self, settings: &GatewaySettings, options: &Options) -> Result<(), Failure> {
        // Sessions that start here name this node, so the other nodes must know it first.
        let peers = match &settings.front.peers {
            Some(peers) => {
                Some(serve_peers(self.node.clone(), peers.listen).await.map_err(Failure::usage)?)
            }
            None => None,
        };
        let (address, _serving) =
            serve(self.node.clone(), settings.front.listen).await.map_err(Failure::usage)?;
        let process = ProcessFile::create(self.home.path(), &self.path)?;
        if process.is_none() && !options.quiet {
            screen::remark(
                "holdpoint: note: another gateway runs from this home, so that `gateway reload` reaches that one",
            );
        }
        screen::say(format!("listening on {address}: {}/mcp", settings.front.public_url.as_str()));
        self.serve_separate_addresses(settings).await?;
        if let Some(address) = peers {
            screen::say(format!("other nodes on {address}"));
        }
        let mut signals = Signals::new()?;
        let mut process = process;
        while signals.next().await == Signal::Reload {
            let outcome = self.reload().await;
            let sentence = match &outcome {
                Ok(done) => done.clone(),
                Err(failure) => format!("nothing was changed: {failure}"),
            };
            screen::remark(format!("holdpoint: reload: {sentence}"));
            if let Some(process) = &mut process {
                process.note_reload(outcome.is_ok(), &sentence);
            }
        }
        self.node.shut_down(GRACE).await;
        Ok(())
    }

    /// Serves the admin API and the metrics on their own addresses, if they have any.
    async fn serve_separate_addresses(&self, settings: &GatewaySettings) -> Result<(), Failure> {
        if let Some(address) = settings.front.admin_listen {
            let (address, _) =
                serve_admin(self.node.clone(), address).await.map_err(Failure::usage)?;
            screen::say(format!("admin API on {address}{ADMIN_PATH}"));
        }
        if let Some(address) = settings.front.metrics_listen {
            let (address, _) =
                serve_metrics(self.node.clone(), address).await.map_err(Failure::usage)?;
            screen::say(format!("metrics on {address}/metrics"));
        }
        Ok(())
    }

    async fn reload(&self) -> Result<String, Failure> {
        let (node, path) = (self.node.clone(), self.path.clone());
        let home = self.home.path().to_owned();
        let reloading = tokio::task::spawn_blocking(move || {
            let settings = read_settings(&path, &home)?;
            node.reload(settings).map(|done| done.to_string()).map_err(Failure::usage)
        });
        reloading.await.map_err(Failure::internal)?
    }
}

/// What a signal asks the gateway to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Reload,
    End,
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::End,
            _ = self.interrupt.recv() => Signal::End,
            _ = self.hang_up.recv() => Signal::Reload,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) -> Signal {
        let _ = tokio::signal::ctrl_c().await;
        Signal::End
    }
}
