//! `holdpoint network status`: shows what was sent and what would be sent, byte for byte. Sends
//! nothing.

use super::announced::{Announced, announced, questions};
use super::named;
use crate::arguments::Options;
use crate::arguments::network::NetworkStatus;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::screen::{self, BOLD, DIM, styled};
use crate::target::Workplace;
use crate::upper_tiers;
use engine::network::{
    FeedFile, KeptAdvisories, NetworkFolder, NetworkSettings, SentLog, SentRequest, VerdictCache,
};
use serde::Serialize;

/// Shown in place of a directory if none is named.
const EXAMPLE_URL: &str = "https://directory.example.com";
/// How many sent requests are shown without `--all`.
const SHOWN: usize = 10;

/// The note shown before the first request.
const FIRST_REQUEST: &str = "  The first request is the first one below. Its answer says how many bits of a hash name a bucket (0 to 14),
  and has the salt of fingerprints. Until then both are shown as zeros.";

#[derive(Debug, Serialize)]
struct Document<'a> {
    state: &'static str,
    veto: Option<String>,
    url: Option<&'a str>,
    key: Option<String>,
    allow_private: bool,
    contribute: bool,
    model: Option<&'a str>,
    problems: &'a [String],
    bucket_bits: Option<u8>,
    feed_entries: usize,
    advisories: usize,
    would_send: &'a [Announced],
    sent: &'a [SentRequest],
}

pub(super) fn run(command: &NetworkStatus, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    let network = named(workplace.configuration.network(), &command.directory)?;
    let access = upper_tiers::access(workplace.home.path(), &workplace.configuration);
    let folder = NetworkFolder::of(workplace.home.path());
    let url = network.url.as_deref().unwrap_or(EXAMPLE_URL).trim_end_matches('/');
    let settings = NetworkSettings {
        url: url.to_owned(),
        key: zeroize::Zeroizing::new(String::from("key")),
        allow_private: network.allow_private,
        contribute: network.contribute,
    };
    let at = now();
    let mut would_send = announced(&workplace, &settings, at)?;
    would_send.extend(questions(&workplace, at)?);
    let sent = SentLog::of(&folder).read();
    let is_named = workplace.configuration.network().is_named();
    let state = match (&access.veto, is_named || workplace.configuration.judge().is_named()) {
        (Some(_), _) => "vetoed",
        (None, false) => "off",
        (None, true) => "on",
    };
    let document = Document {
        state,
        veto: access.veto.as_ref().map(ToString::to_string),
        url: network.url.as_deref(),
        key: network.key.as_ref().map(ToString::to_string),
        allow_private: network.allow_private,
        contribute: network.contribute,
        model: workplace.configuration.judge().model.as_deref(),
        problems: &access.problems,
        bucket_bits: VerdictCache::read(&folder, url).bits(),
        feed_entries: FeedFile::read(&folder, url).len(),
        advisories: KeptAdvisories::read(&folder, url).advisories().len(),
        would_send: &would_send,
        sent: &sent,
    };
    if options.json {
        screen::print_json(&document)?;
    } else {
        print(&document, is_named, command.all);
    }
    Ok(Exit::Fine)
}

fn print(document: &Document<'_>, is_named: bool, is_all: bool) {
    let heading = match (document.state, &document.veto, document.url) {
        (_, Some(veto), _) => format!("off: {veto}"),
        ("on", None, Some(url)) if is_named => format!("on: {url}"),
        ("on", None, _) => "on for the model alone".to_owned(),
        _ => "off: no directory is configured, and nothing is sent".to_owned(),
    };
    screen::say(styled(BOLD, heading));
    for problem in document.problems {
        screen::say(format!("  ! {}", screen::readable(problem)));
    }
    if let Some(key) = &document.key {
        screen::say(format!("  key: {}, sent in place of `<secret>` below", screen::readable(key)));
    }
    let told = if document.contribute { "yes" } else { "no" };
    screen::say(format!("  contributes: {told}"));
    screen::say(format!(
        "  known: {} changes of the drift feed, {} advisories",
        document.feed_entries, document.advisories
    ));
    screen::say("");
    let asked = if document.state == "on" { "is sent" } else { "would be sent if it were on" };
    screen::say(styled(BOLD, format!("What {asked}, as this home is now:")));
    if document.url.is_none() {
        screen::say(styled(DIM, format!("  ({EXAMPLE_URL} is a placeholder for the directory)")));
    }
    if document.bucket_bits.is_none() {
        screen::say(FIRST_REQUEST);
    }
    for announced in document.would_send {
        screen::say(format!("  {} ({}):", announced.purpose, announced.when));
        say_request(&announced.request);
    }
    screen::say(
        "  Later changes and decisions may cause other kinds of requests: docs/network.md lists them.",
    );
    screen::say("");
    let sent = crate::report::count(document.sent.len(), "request", "requests");
    screen::say(styled(BOLD, format!("What was sent: {sent}")));
    let shown = if is_all { document.sent.len() } else { SHOWN };
    let skipped = document.sent.len().saturating_sub(shown);
    if skipped > 0 {
        screen::say(styled(DIM, format!("  the newest {shown}; `--all` shows all")));
    }
    for sent in document.sent.iter().skip(skipped) {
        screen::say(format!("  {} to {}:", sent.at, screen::readable(&sent.to)));
        say_request(&sent.request);
    }
}

fn say_request(request: &str) {
    for line in request.split("\r\n") {
        screen::say(format!("    | {}", screen::readable(line)));
    }
}
