//! `holdpoint directory claim`: the operator's commands for claims of ownership. Owners use the
//! API.

use super::place::Place;
use crate::arguments::Options;
use crate::arguments::directory::{
    ClaimCheck, ClaimCommand, ClaimStart, ClaimSubcommand, ClaimVerify, DirectoryPlace,
};
use crate::commands::crawl::registries;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::screen;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use directory::claim::check::{Checker, Sought};
use directory::claim::dns::Resolver;
use directory::claim::ownership::{self, Checked};
use directory::claim::{ClaimKey, Method, NonceSecret, line, signed_text};
use directory::database::{Database, StoredClaim};
use directory::secret_file;
use directory::serve::claims::ClaimDesk;
use directory::subject::SubjectId;
use directory::writer::read_model;
use serde_json::{Value, json};
use std::path::Path;
use wire::dialer::Dialer;

/// The file, in the folder of keys, that holds the secret for nonces.
const CLAIMS_SECRET: &str = "claims.secret";
/// The largest public key file.
const MAX_KEY_BYTES: u64 = 64 * 1024;
/// The most claims that one command checks.
const MAX_CHECKED: usize = 1_000;
/// The length of the Ed25519 key at the end of its DER form.
const KEY_BYTES: usize = 32;

pub(super) fn run(command: &ClaimCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        ClaimSubcommand::List(place) => list(place, options),
        ClaimSubcommand::Start(command) => start(command, options),
        ClaimSubcommand::Verify(command) => verify(command, options),
        ClaimSubcommand::Check(command) => check(command, options),
        ClaimSubcommand::Suspend(command) => suspend(command, options),
    }
}

/// The checker for claims, made from the settings.
pub(super) fn checker(place: &Place) -> Result<Checker, Failure> {
    let settings = &place.settings;
    let mut publishers = Vec::new();
    for publisher in &settings.claims.publisher {
        let wrong = |problem: &dyn std::fmt::Display| {
            Failure::usage(format!("`claims.publisher` of `{}`: {problem}", &*publisher.server))
        };
        let server: SubjectId = publisher.server.parse().map_err(|error| wrong(&error))?;
        publishers.push((server, key(&publisher.key)?));
    }
    let dialer = Dialer::new(settings.network.allow_private, Some(settings.contact()));
    let resolver = Resolver::new(&settings.claims.resolvers);
    Ok(Checker::new(dialer, resolver, registries(place), publishers))
}

pub(super) fn desk(place: &Place) -> Result<ClaimDesk, Failure> {
    Ok(ClaimDesk::new(checker(place)?, secret(place)?))
}

fn secret(place: &Place) -> Result<NonceSecret, Failure> {
    let bytes = secret_file::read_or_make(&place.folders.keys, CLAIMS_SECRET);
    bytes.map(NonceSecret).map_err(|error| Failure::usage(format!("the secret of claims: {error}")))
}

/// Parses a key: `ed25519:…`, or a file with a public key in PEM.
fn key(named: &str) -> Result<ClaimKey, Failure> {
    if named.starts_with("ed25519:") {
        return named.parse().map_err(Failure::usage);
    }
    let path = Path::new(named);
    let wrong = |problem: &dyn std::fmt::Display| Failure::usage(format!("`{named}`: {problem}"));
    let found = std::fs::metadata(path).map_err(|error| wrong(&error))?;
    if found.len() > MAX_KEY_BYTES {
        return Err(wrong(&"too large for a public key"));
    }
    let pem = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    // Parse as strictly as for a trust root first. The key is then the last 32 bytes.
    let pem = attest::PublicKey::from_pem(&pem).map_err(|error| wrong(&error))?.to_pem();
    let pem = pem.map_err(|error| wrong(&error))?;
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body).map_err(|error| wrong(&error))?;
    let bytes: Option<[u8; KEY_BYTES]> = der.last_chunk().copied();
    let bytes = bytes.ok_or_else(|| wrong(&"not an Ed25519 key"))?;
    ClaimKey::from_bytes(bytes).map_err(|error| wrong(&error))
}

/// The server, which must be listed, and the key.
fn claimed(command: &ClaimStart, database: &Database) -> Result<(SubjectId, ClaimKey), Failure> {
    let server: SubjectId = command.server.parse().map_err(Failure::usage)?;
    let key = key(&command.key)?;
    let model = read_model(database).map_err(Failure::usage)?;
    if !model.servers.contains_key(&server) {
        return Err(Failure::usage(format!("`{server}` is not listed: crawl it first")));
    }
    Ok((server, key))
}

fn claim_value(claim: &StoredClaim) -> Value {
    json!({
        "server_id": claim.server.as_str(),
        "key": claim.key.to_string(),
        "key_hash": claim.key.hash(),
        "domain": claim.domain,
        "method": claim.method.as_str(),
        "state": claim.state.as_str(),
        "since": claim.since.to_string(),
        "counts_from": claim.counts_from.map(|moment| moment.to_string()),
        "failures": claim.failures,
        "checked_again": claim.due.to_string(),
    })
}

fn claim_line(claim: &StoredClaim) -> String {
    let from = claim.counts_from.map(|from| format!(", counts from {from}")).unwrap_or_default();
    let failures = match claim.failures {
        0 => String::new(),
        failures => format!(", not found {failures} times"),
    };
    let (domain, method) = (screen::name(&claim.domain), claim.method.as_str());
    format!("{}: {} by {domain} ({method}){from}{failures}", claim.server, claim.state.as_str())
}

fn print_result(claims: &[StoredClaim], options: &Options) -> Result<Exit, Failure> {
    if options.json {
        let claims: Vec<Value> = claims.iter().map(claim_value).collect();
        screen::print_json(&json!({ "claims": claims }))?;
        return Ok(Exit::Fine);
    }
    if claims.is_empty() {
        screen::say("there are no claims");
    }
    for claim in claims {
        screen::say(claim_line(claim));
        screen::say(format!("  {}", claim.key));
    }
    Ok(Exit::Fine)
}

fn list(named: &DirectoryPlace, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(named, options)?;
    let claims = place.database()?.claims(None).map_err(Failure::usage)?;
    print_result(&claims, options)
}

fn start(command: &ClaimStart, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(&command.place, options)?;
    let database = place.database()?;
    let (server, key) = claimed(command, &database)?;
    let places = ownership::places_of(&database, &server).map_err(Failure::usage)?;
    let offers = checker(&place)?.offers(&server, &key, &places);
    if offers.is_empty() {
        return Err(Failure::usage(
            "this server cannot be claimed: no domain, package or attestation key of it is known",
        ));
    }
    let (nonce, expires_at) = secret(&place)?.nonce(&server, &key, now());
    let said = line(&server, &key, &nonce);
    if options.json {
        let offers: Vec<Value> = offers
            .iter()
            .map(|(method, place)| json!({ "method": method.as_str(), "place": place }))
            .collect();
        screen::print_json(&json!({
            "line": said,
            "nonce": nonce,
            "expires_at": expires_at.to_string(),
            "signed_text": signed_text(&said),
            "offers": offers,
        }))?;
        return Ok(Exit::Fine);
    }
    screen::say(format!("publish this line until {expires_at}, in one of these places:"));
    screen::say(&said);
    for (method, place) in &offers {
        screen::say(match method {
            Method::Dns => format!("  dns: a TXT record of {place}"),
            Method::WellKnown => format!("  well-known: {place}, as {{\"claims\": [\"…\"]}}"),
            Method::Manifest => format!(
                "  manifest: the newest release of {place}: the member `holdpoint` of package.json, or a line `holdpoint: …` of the description"
            ),
            Method::AttestationKey => {
                "  attestation-key: sign `holdpoint-claim ` and the line with the publisher's key"
                    .to_owned()
            }
        });
    }
    Ok(Exit::Fine)
}

fn verify(command: &ClaimVerify, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(&command.claim.place, options)?;
    let mut database = place.database()?;
    let (server, key) = claimed(&command.claim, &database)?;
    let method = Method::from_word(&command.method)
        .ok_or_else(|| Failure::usage("there is no such method"))?;
    let nonce = command.nonce.as_str();
    secret(&place)?.check(&server, &key, nonce, now()).map_err(Failure::usage)?;
    let sought = Sought { server: &server, key: &key, nonce, method };
    let checker = checker(&place)?;
    let found = match method {
        Method::AttestationKey => {
            checker.signature(sought, command.signature.as_deref().unwrap_or_default())
        }
        Method::Dns | Method::WellKnown | Method::Manifest => {
            let places = ownership::places_of(&database, &server).map_err(Failure::usage)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(checker.find(sought, &places))
        }
    };
    let domain = found.map_err(|error| Failure::denied("claim_not_shown", error))?;
    let claim = ownership::accept(&mut database, sought, &domain, now()).map_err(Failure::usage)?;
    drop(database);
    let saying = place.say_waiting()?;
    if !options.json && !options.quiet {
        screen::remark(saying.sentence());
    }
    print_result(&[claim], options)
}

fn check(command: &ClaimCheck, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(&command.place, options)?;
    let mut database = place.database()?;
    let claims = match &command.server {
        Some(server) => {
            let server: SubjectId = server.parse().map_err(Failure::usage)?;
            let mut claims = database.claims(Some(&server)).map_err(Failure::usage)?;
            claims.retain(|claim| claim.state != directory::entry::ClaimState::Suspended);
            claims
        }
        None => database.due_claims(now(), MAX_CHECKED).map_err(Failure::usage)?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let checker = checker(&place)?;
    let checked = runtime
        .block_on(ownership::check_again(&mut database, &checker, claims, now()))
        .map_err(Failure::usage)?;
    drop(database);
    let _ = place.say_waiting()?;
    for Checked { claim, problem } in &checked {
        if let Some(problem) = problem.as_ref().filter(|_| !options.quiet) {
            screen::remark(format!("{}: {}", claim.server, screen::readable(problem)));
        }
    }
    let claims: Vec<StoredClaim> = checked.into_iter().map(|it| it.claim).collect();
    if claims.is_empty() && !options.json {
        screen::say("no claim is due");
        return Ok(Exit::Fine);
    }
    print_result(&claims, options)
}

fn suspend(command: &ClaimStart, options: &Options) -> Result<Exit, Failure> {
    let place = Place::read(&command.place, options)?;
    let server: SubjectId = command.server.parse().map_err(Failure::usage)?;
    let key = key(&command.key)?;
    let suspended = ownership::suspend(&mut place.database()?, &server, &key);
    let suspended = suspended.map_err(Failure::usage)?;
    let Some(claim) = suspended else {
        return Err(Failure::usage("no active or waiting claim matches"));
    };
    let saying = place.say_waiting()?;
    if !options.json && !options.quiet {
        screen::remark(saying.sentence());
    }
    print_result(&[claim], options)
}
