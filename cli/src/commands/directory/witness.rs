//! `holdpoint directory witness`: cosigns checkpoints of logs.

use super::log::key_text;
use crate::arguments::Options;
use crate::arguments::directory::WitnessCommand;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::screen;
use crate::target::home_path;
use bytes::Bytes;
use directory::log::publish::{create_private_folder, write_durably};
use directory::log::signer::FileSigner;
use directory::log::witness::{MAX_REQUEST_BYTES, Witness};
use directory::serve::http::{Answer, Asked, Handler, answer, serve, text};
use http::StatusCode;
use ledger::note::Keyring;
use std::sync::Arc;
use store::Home;
use tokio::net::TcpListener;
use tokio::sync::watch;

const PATH: &str = "/add-checkpoint";

pub(super) fn run(command: &WitnessCommand, options: &Options) -> Result<Exit, Failure> {
    let home = Home::open(&home_path(options)?)?;
    let keys = home.keys_path().join("witness");
    let key = FileSigner::open(&keys, &command.name).map_err(Failure::usage)?.into_key();
    let mut logs = String::new();
    for named in &command.logs {
        logs.push_str(key_text(named)?.trim_end());
        logs.push('\n');
    }
    let logs = Keyring::from_text(&logs).map_err(Failure::usage)?;
    let folder = keys.join("seen");
    create_private_folder(&folder)?;
    let witness = Witness::new(key, logs.clone(), &folder);
    let public = witness.public_key().map(|key| key.to_string()).unwrap_or_default();
    write_durably(&keys.join("witness.pub"), format!("{public}\n").as_bytes())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(command.listen)
            .await
            .map_err(|error| Failure::usage(format!("`{}`: {error}", command.listen)))?;
        screen::say(format!("witness on {}{PATH}, for {logs}", listener.local_addr()?));
        screen::say(format!("public key {public}"));
        let (stop, stopped) = watch::channel(false);
        let serving = tokio::spawn(serve(listener, Arc::new(Front(witness)), stopped));
        super::ended().await;
        let _ = stop.send(true);
        let _ = serving.await;
        Ok(Exit::Fine)
    })
}

struct Front(Witness);

impl Handler for Front {
    fn answer(&self, asked: &Asked) -> Answer {
        if asked.path != PATH {
            return text(StatusCode::NOT_FOUND, "POST /add-checkpoint\n");
        }
        if asked.method != http::Method::POST {
            return text(StatusCode::METHOD_NOT_ALLOWED, "POST /add-checkpoint\n");
        }
        let seconds = u64::try_from(now().0 / 1_000).unwrap_or(0);
        let said = self.0.add_checkpoint(&asked.body, seconds);
        let status = StatusCode::from_u16(said.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        answer(status, said.media_type, Bytes::from(said.body))
    }

    fn is_slow(&self, _: &str) -> bool {
        true
    }

    fn max_body(&self, path: &str) -> usize {
        if path == PATH { MAX_REQUEST_BYTES } else { 0 }
    }
}
