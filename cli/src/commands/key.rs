//! `holdpoint key`: manages the static keys of the gateway's callers. A key is printed when it is
//! created and never again.

use crate::approver;
use crate::arguments::Options;
use crate::arguments::key::{
    CreateKeyCommand, Expiry, KeyCommand, KeySubcommand, RevokeKeyCommand,
};
use crate::commands::stats::date;
use crate::configuration::Configuration;
use crate::failure::{Exit, Failure};
use crate::gateway_file;
use crate::observation::now;
use crate::screen::{self, BOLD, DIM, GREEN, YELLOW, styled};
use crate::target::home_path;
use contract::time::Timestamp;
use gateway::identity::StaticKey;
use serde::Serialize;
use std::path::Path;
use store::{ActorType, ApiKey, ApiKeyId, ApiKeyStore, Home, NewApiKey, Signed, Witnessed};

/// The number of random bytes in a key's id.
const ID_BYTES: usize = 4;

pub(crate) fn run(command: &KeyCommand, options: &Options) -> Result<Exit, Failure> {
    let mut keys = KeyStore::open(options, command.config.as_deref())?;
    match &command.command {
        KeySubcommand::Create(command) => create(command, &mut keys, options),
        KeySubcommand::List => list(&keys, options),
        KeySubcommand::Revoke(command) => revoke(command, &mut keys, options),
    }
}

/// The store that holds the keys.
struct KeyStore {
    store: Witnessed,
    configuration: Configuration,
    /// Whether there is a gateway configuration that does not accept keys.
    is_disabled: bool,
}

impl KeyStore {
    fn open(options: &Options, config: Option<&Path>) -> Result<KeyStore, Failure> {
        let home = Home::open(&home_path(options)?)?;
        let configuration = Configuration::read(&home.config_path())?;
        let path = gateway_file::path(home.path(), config);
        // Keys may be created before a gateway is configured, but a file that is named must exist.
        let gateway = match config.is_some() || path.exists() {
            true => Some(gateway_file::read(&path)?.0),
            false => None,
        };
        let location = match &gateway {
            Some(gateway) => gateway_file::location(gateway, &configuration)?,
            None => configuration.store()?,
        };
        let store = Witnessed::new(store::open(&home, &location)?, &home);
        let is_disabled = gateway.is_some_and(|gateway| !gateway.auth.keys);
        Ok(KeyStore { store, configuration, is_disabled })
    }

    fn find(&self, id: &ApiKeyId) -> Result<ApiKey, Failure> {
        let found = self.store.api_keys()?.into_iter().find(|key| key.key.id == *id);
        found.ok_or_else(|| {
            let known = "`holdpoint key list` lists those that are";
            Failure::usage(format!("no key `{id}` is known here: {known}"))
        })
    }
}

fn create(
    command: &CreateKeyCommand,
    keys: &mut KeyStore,
    options: &Options,
) -> Result<Exit, Failure> {
    if command.admin {
        // An admin key can approve changes of a server, so an agent with a shell must not be able
        // to create one for itself.
        let sub = screen::readable(&command.sub);
        let question = format!("Create an admin key for {sub}, which can approve and revoke?");
        approver::confirm_yes(&keys.configuration, &question)?;
    }
    let key = StaticKey::generate(command.admin).map_err(Failure::internal)?;
    let moment = now();
    let new = NewApiKey {
        id: new_id()?,
        hash: key.hash(),
        sub: command.sub.clone(),
        actor_type: command.actor,
        org: command.org.clone(),
        groups: command.group.clone(),
        clearance: command.clearance.clone(),
        admin: command.admin,
        expires_at: match command.expires {
            Expiry::Never => None,
            Expiry::After { milliseconds } => {
                Some(Timestamp(moment.0.saturating_add(milliseconds)))
            }
        },
    };
    let name = approver::name();
    keys.store.add_api_key(&new, approver::by(&name))?;
    let recorded = keys.find(&new.id)?;
    if options.json {
        let document = CreatedDocument { secret: key.reveal(), key: document(&recorded, moment) };
        screen::print_json(&document)?;
        return Ok(Exit::Fine);
    }
    screen::say(key.reveal());
    if !options.quiet {
        let ends = new.expires_at.map_or("it has no end".to_owned(), |at| format!("it ends {at}"));
        let id = styled(BOLD, &new.id);
        screen::remark(format!("This is the only time that key {id} is shown; {ends}."));
        let command = styled(DIM, format!("revoke it: holdpoint key revoke {}", new.id));
        screen::remark(command);
    }
    warn_if_disabled(keys);
    Ok(Exit::Fine)
}

fn list(keys: &KeyStore, options: &Options) -> Result<Exit, Failure> {
    let (recorded, moment) = (keys.store.api_keys()?, now());
    if options.json {
        let keys = recorded.iter().map(|key| document(key, moment)).collect();
        screen::print_json(&ListDocument { keys })?;
        return Ok(Exit::Fine);
    }
    if recorded.is_empty() {
        screen::say("no keys; make one: holdpoint key create --sub NAME");
    }
    for key in &recorded {
        print_result(key, moment);
    }
    warn_if_disabled(keys);
    Ok(Exit::Fine)
}

fn revoke(
    command: &RevokeKeyCommand,
    keys: &mut KeyStore,
    options: &Options,
) -> Result<Exit, Failure> {
    keys.find(&command.id)?;
    let name = approver::name();
    keys.store.revoke_api_key(&command.id, approver::by(&name))?;
    let (recorded, moment) = (keys.find(&command.id)?, now());
    if options.json {
        screen::print_json(&document(&recorded, moment))?;
    } else {
        print_result(&recorded, moment);
    }
    Ok(Exit::Fine)
}

fn new_id() -> Result<ApiKeyId, Failure> {
    let mut bytes = [0; ID_BYTES];
    getrandom::fill(&mut bytes).map_err(Failure::internal)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("k-{digits}").parse().map_err(Failure::internal)
}

fn warn_if_disabled(keys: &KeyStore) {
    if keys.is_disabled {
        screen::remark(
            "warning: the gateway accepts no keys: set `enabled = true` under `[auth.keys]`",
        );
    }
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum KeyState {
    Valid,
    Expired,
    Revoked,
}

impl KeyState {
    fn of(key: &ApiKey, moment: Timestamp) -> KeyState {
        match &key.revoked {
            Some(_) => KeyState::Revoked,
            None if key.is_valid(moment) => KeyState::Valid,
            None => KeyState::Expired,
        }
    }
}

#[derive(Debug, Serialize)]
struct CreatedDocument<'a> {
    #[serde(rename = "key")]
    secret: &'a str,
    #[serde(flatten)]
    key: KeyDocument<'a>,
}

#[derive(Debug, Serialize)]
struct ListDocument<'a> {
    keys: Vec<KeyDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct KeyDocument<'a> {
    id: &'a ApiKeyId,
    state: KeyState,
    sub: &'a str,
    actor_type: &'static str,
    org: Option<&'a str>,
    groups: &'a [String],
    clearance: Option<&'a str>,
    admin: bool,
    created: &'a Signed,
    expires_at: Option<Timestamp>,
    revoked: Option<&'a Signed>,
    last_used: Option<String>,
}

fn document(recorded: &ApiKey, moment: Timestamp) -> KeyDocument<'_> {
    let ApiKey { key, created, revoked, last_used } = recorded;
    KeyDocument {
        id: &key.id,
        state: KeyState::of(recorded, moment),
        sub: &key.sub,
        actor_type: actor_word(key.actor_type),
        org: key.org.as_deref(),
        groups: &key.groups,
        clearance: key.clearance.as_deref(),
        admin: key.admin,
        created,
        expires_at: key.expires_at,
        revoked: revoked.as_ref(),
        last_used: last_used.map(date),
    }
}

fn actor_word(actor: ActorType) -> &'static str {
    match actor {
        ActorType::User => "user",
        ActorType::Agent => "agent",
        ActorType::System => "system",
    }
}

fn print_result(recorded: &ApiKey, moment: Timestamp) {
    let ApiKey { key, created, revoked, last_used } = recorded;
    let state = match KeyState::of(recorded, moment) {
        KeyState::Valid => styled(GREEN.bold(), "valid"),
        KeyState::Expired => styled(YELLOW.bold(), "expired"),
        KeyState::Revoked => styled(YELLOW.bold(), "revoked"),
    };
    let kind = if key.admin { "admin key" } else { "key" };
    let of = format!("{kind} of {} {}", actor_word(key.actor_type), screen::readable(&key.sub));
    let org = key.org.as_ref().map(|org| format!(", org {}", screen::readable(org)));
    let groups = match key.groups.as_slice() {
        [] => String::new(),
        groups => {
            let names: Vec<String> = groups.iter().map(|group| screen::readable(group)).collect();
            format!(", in {}", names.join(", "))
        }
    };
    let org = org.unwrap_or_default();
    screen::say(format!("{}  {state}  {of}{org}{groups}", styled(BOLD, &key.id)));
    let ends = match (revoked, key.expires_at) {
        (Some(signed), _) => {
            format!("revoked {} by {}", signed.at, screen::readable(&signed.by))
        }
        (None, Some(at)) if at <= moment => format!("ended {at}"),
        (None, Some(at)) => format!("ends {at}"),
        (None, None) => "no end".to_owned(),
    };
    let used = last_used.map_or("never used".to_owned(), |day| format!("last used {}", date(day)));
    let made = format!("made {} by {}", created.at, screen::readable(&created.by));
    screen::say(styled(DIM, format!("    {made}; {ends}; {used}")));
}
