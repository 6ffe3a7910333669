//! Tier 2 of the ladder: asks a model chosen by the operator for an opinion on a change that the
//! comparison cannot settle. Without a model every answer is an abstention ([`HeldJudge`]), and
//! nothing is sent.
//!
//! A question is asked on a separate thread, costs a budget, and is asked once per definition. The
//! answer can make a hold firmer and do nothing else; its rationale is shown only to people.

mod budget;
mod opinions;

pub use budget::{Budget, DAILY, DAILY_PER_SERVER};
pub use opinions::{KeptOpinion, Opinions};

use crate::network::{Listeners, NetworkFolder, SentLog};
use crate::server::Server;
use contract::hash::EntryHash;
use contract::surface::Entry;
use gate::consult::{Answer, ChatApi, Delimiter, MAX_CONTENT_BYTES, Question};
use gate::judge::Judgement;
use gate::server::ServerId;
use gate::tiers::{Miss, Opinion, Reader};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use wire::attestation::FetchLimits;
use wire::dialer::{Bearer, Call, DialError, Dialer};
use wire::service::ServiceBody;
use zeroize::Zeroizing;

/// The timeout for a model's answer.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The version of the Anthropic API in use.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// The most questions that wait. Further ones are not asked.
const MAX_WAITING: usize = 64;
/// The most questions per server that are remembered as asked in this process.
const MAX_FAILED: usize = 1_000;

/// The configured model, and how to reach it.
#[derive(Clone)]
pub struct ConsultSettings {
    pub api: ChatApi,
    pub url: String,
    pub model: String,
    pub key: Zeroizing<String>,
    pub allow_private: bool,
    pub budget: Budget,
}

impl fmt::Debug for ConsultSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = formatter.debug_struct("ConsultSettings");
        out.field("url", &self.url).field("model", &self.model).finish_non_exhaustive()
    }
}

/// Why a model could not be asked, or gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ConsultError {
    #[error("the model's budget for today is spent")]
    Spent,
    #[error("there is no randomness for the delimiter")]
    NoRandomness,
    #[error("only tools are asked about")]
    NotATool,
    #[error("nothing was sent: {0}")]
    Unrecorded(std::io::Error),
    #[error(transparent)]
    Dial(#[from] DialError),
}

/// A judge that always abstains. This is the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeldJudge;

impl Reader for HeldJudge {}

/// Asks the configured model.
pub struct ConfiguredJudge {
    settings: ConsultSettings,
    dialer: Dialer,
    folder: NetworkFolder,
    runtime: Runtime,
}

impl fmt::Debug for ConfiguredJudge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(formatter)
    }
}

impl ConfiguredJudge {
    pub fn new(
        settings: ConsultSettings,
        folder: NetworkFolder,
    ) -> std::io::Result<ConfiguredJudge> {
        let limits = FetchLimits { bytes: MAX_CONTENT_BYTES, patience: PATIENCE };
        let dialer = Dialer::new(settings.allow_private, None).with_pause(Duration::ZERO);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(ConfiguredJudge { settings, dialer: dialer.with_limits(limits), folder, runtime })
    }

    /// Shortens the timeout.
    #[must_use]
    pub fn within(self, patience: Duration) -> ConfiguredJudge {
        let limits = FetchLimits { bytes: MAX_CONTENT_BYTES, patience };
        ConfiguredJudge { dialer: self.dialer.with_limits(limits), ..self }
    }

    /// The opinion stored from an earlier question. Nothing is sent.
    pub fn known(&self, entry: EntryHash) -> Option<Answer> {
        let opinions = Opinions::read(&self.folder);
        opinions.get(entry, &self.settings.model).map(|known| known.answer.clone())
    }

    /// What a question about a change would send.
    pub fn printed(&self, judgement: &Judgement) -> Option<String> {
        let question = Question::about_change(judgement, &Delimiter::from_random([0; 16]))?;
        let bytes = self.dialer.printed(&self.call(&question)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn call(&self, question: &Question) -> Call<'_> {
        let ConsultSettings { api, url, model, key, .. } = &self.settings;
        let body = serde_json::to_vec(&question.body(*api, model)).unwrap_or_default();
        let call = Call {
            url,
            accept: Some("application/json"),
            body: Some(ServiceBody::Json(body)),
            once: true,
            ..Call::default()
        };
        match api {
            ChatApi::OpenAi => Call { bearer: Some(Bearer(key)), ..call },
            ChatApi::Anthropic => Call {
                key_header: Some(("x-api-key", Bearer(key))),
                version_header: Some(("anthropic-version", ANTHROPIC_VERSION)),
                ..call
            },
        }
    }

    /// The opinion on a change. A known opinion is not requested again.
    pub fn ask_about_change(
        &self,
        server: &ServerId,
        judgement: &Judgement,
    ) -> Result<Answer, ConsultError> {
        let after = judgement.after.as_ref().ok_or(ConsultError::NotATool)?;
        self.ask(server, after.entry_hash(), |delimiter| {
            Question::about_change(judgement, delimiter)
        })
    }

    /// The opinion on a tool in its current state.
    pub fn ask_about_entry(
        &self,
        server: &ServerId,
        entry: &Entry,
    ) -> Result<Answer, ConsultError> {
        self.ask(server, entry.entry_hash(), |delimiter| Question::about_entry(entry, delimiter))
    }

    fn ask(
        &self,
        server: &ServerId,
        entry: EntryHash,
        question: impl FnOnce(&Delimiter) -> Option<Question>,
    ) -> Result<Answer, ConsultError> {
        if let Some(known) = self.known(entry) {
            return Ok(known);
        }
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|_| ConsultError::NoRandomness)?;
        let question = question(&Delimiter::from_random(random)).ok_or(ConsultError::NotATool)?;
        let now = crate::recorder::now();
        let may_ask = self.settings.budget.spend(&self.folder, server, now);
        if !may_ask.map_err(ConsultError::Unrecorded)? {
            return Err(ConsultError::Spent);
        }
        let call = self.call(&question);
        let (bytes, place) = (self.dialer.printed(&call)?, self.dialer.endpoint(call.url)?);
        let sent = SentLog::of(&self.folder);
        sent.note(now, &place.host_and_port(), &bytes).map_err(ConsultError::Unrecorded)?;
        let answered = self.runtime.block_on(self.dialer.call(call))?;
        // Anything but an exact answer is an abstention, and the question is not repeated.
        let answer =
            Answer::of_chat(self.settings.api, &answered).unwrap_or_else(|_| Answer::abstention());
        Opinions::add(&self.folder, entry, &self.settings.model, &answer, now);
        Ok(answer)
    }
}

/// The tier as the call path consults it: an unknown opinion is requested on a separate thread.
pub struct Consult {
    state: Arc<ConsultState>,
    questions: SyncSender<(ServerId, Box<Judgement>)>,
}

#[derive(Debug, Default)]
struct ConsultState {
    known: Mutex<HashMap<EntryHash, Answer>>,
    /// Definitions whose question is pending, or failed in this process.
    asked: Mutex<HashMap<ServerId, HashSet<EntryHash>>>,
    listeners: Listeners,
}

impl fmt::Debug for Consult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Consult").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Consult {
    pub fn start(
        settings: ConsultSettings,
        folder: NetworkFolder,
    ) -> std::io::Result<Arc<Consult>> {
        let known = Opinions::read(&folder).of_model(&settings.model);
        let judge = ConfiguredJudge::new(settings, folder)?;
        let state = Arc::new(ConsultState { known: Mutex::new(known), ..ConsultState::default() });
        let (questions, asked) = sync_channel(MAX_WAITING);
        let shared = state.clone();
        let thread = std::thread::Builder::new().name("consult".to_owned());
        thread.spawn(move || answer_all(&judge, &shared, &asked))?;
        Ok(Arc::new(Consult { state, questions }))
    }

    pub(crate) fn listen(&self, server: &Arc<Server>) {
        self.state.listeners.add(server);
    }

    /// The model's answer about a definition.
    pub(crate) fn answer(&self, entry: EntryHash) -> Option<Answer> {
        lock(&self.state.known).get(&entry).cloned()
    }

    /// The tier for one server.
    pub(crate) fn of_server<'a>(&'a self, server: &'a ServerId) -> ConsultOf<'a> {
        ConsultOf { consult: self, server }
    }
}

fn answer_all(
    judge: &ConfiguredJudge,
    state: &ConsultState,
    asked: &Receiver<(ServerId, Box<Judgement>)>,
) {
    while let Ok((server, judgement)) = asked.recv() {
        let Some(entry) = judgement.after.as_ref().map(Entry::entry_hash) else { continue };
        let asking = || judge.ask_about_change(&server, &judgement);
        // A panic counts as a miss, like any other failure.
        if let Ok(Ok(answer)) = catch_unwind(AssertUnwindSafe(asking)) {
            lock(&state.known).insert(entry, answer);
            state.listeners.tell();
        }
    }
}

pub(crate) struct ConsultOf<'a> {
    consult: &'a Consult,
    server: &'a ServerId,
}

impl Reader for ConsultOf<'_> {
    fn read(&self, judgement: &Judgement) -> Result<Opinion, Miss> {
        let state = &self.consult.state;
        let entry = judgement.after.as_ref().map(Entry::entry_hash).ok_or(Miss)?;
        if let Some(answer) = lock(&state.known).get(&entry) {
            return Ok(answer.opinion.to_tier());
        }
        let mut asked = lock(&state.asked);
        let asked = asked.entry(self.server.clone()).or_default();
        if asked.len() >= MAX_FAILED || asked.contains(&entry) {
            return Err(Miss);
        }
        let question = (self.server.clone(), Box::new(judgement.clone()));
        if self.consult.questions.try_send(question).is_ok() {
            asked.insert(entry);
        }
        Err(Miss)
    }
}

#[cfg(test)]
mod tests;
