//! `holdpoint gateway`: one authenticated door in front of all servers.

use crate::arguments::Options;
use crate::arguments::gateway::GatewayCommand;
use crate::configuration::receipt_settings;
use crate::failure::{Exit, Failure};
use crate::screen;
use crate::target::home_path;
use gateway::{Node, serve};
use settings::gateway::GatewaySettings;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::Home;

/// How long calls in flight may take to finish when the gateway ends.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) fn run(command: &GatewayCommand, options: &Options) -> Result<Exit, Failure> {
    let home = home_path(options)?;
    let path = command.config.clone().unwrap_or_else(|| home.join("gateway.toml"));
    let settings = Arc::new(read_settings(&path)?);
    if !options.quiet {
        for warning in settings.warnings() {
            screen::remark(format!("holdpoint: note: {warning}"));
        }
    }
    let home = Home::open(&home)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let is_quiet = options.quiet;
    let remark = Arc::new(move |sentence: &str| {
        if !is_quiet {
            screen::remark(format!("holdpoint: {}", screen::readable(sentence)));
        }
    });
    let receipts = receipt_settings(&settings.receipts);
    let node = {
        let _entered = runtime.enter();
        Node::open(settings.clone(), home, receipts, remark, runtime.handle().clone())
            .map_err(Failure::usage)?
    };
    if command.check {
        screen::say(format!("{}: fine", path.display()));
        return Ok(Exit::Fine);
    }
    runtime.block_on(async {
        let (address, _serving) =
            serve(node.clone(), settings.front.listen).await.map_err(Failure::usage)?;
        screen::say(format!("listening on {address}: {}/mcp", settings.front.public_url.as_str()));
        wait_for_end().await;
        node.shut_down(GRACE).await;
        Ok::<(), Failure>(())
    })?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(Exit::Fine)
}

/// Reads the settings, or tells every mistake in them.
fn read_settings(path: &Path) -> Result<GatewaySettings, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("`{shown}`: {error}; `holdpoint gateway init` writes one"))
    })?;
    let folder = std::path::absolute(path)?.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    GatewaySettings::read(&text, &folder).map_err(|mistakes| {
        let lines: Vec<String> = mistakes.iter().map(|mistake| format!("  {mistake}")).collect();
        Failure::usage(format!("`{shown}`:\n{}", lines.join("\n")))
    })
}

/// Waits until the gateway is told to end.
async fn wait_for_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut terminate), Ok(mut interrupt)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
        else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
    #[cfg(not(unix))]
    {
        let _ = tokio::signal::ctrl_c().await;
    }
}
