//! The requests that the network would cause for this home, and what the feed says about it. Sends
//! only what a caller asks for.

use crate::configuration::Configuration;
use crate::failure::Failure;
use crate::people_events::people_events;
use crate::screen;
use crate::target::Workplace;
use crate::upper_tiers;
use contract::hash::DefinitionHash;
use contract::surface::{Entry, EntryId, Surface};
use contract::time::Timestamp;
use engine::consult::ConfiguredJudge;
use engine::network::{
    ContributionsSince, DirectoryClient, FeedFile, KeptAdvisories, MetChange, NetworkFolder,
    NetworkRequest, NetworkSettings, ReportQueue, VerdictCache,
};
use gate::judge::{Judgement, SurfaceJudgement};
use gate::naming::shown_name;
use gate::network::{Bucket, DriftAdvisory, DriftFeed, MAX_BUCKET_BITS, ReportBucket, bucket_of};
use gate::verdict::Verdict;
use serde::Serialize;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use store::Store;

/// How long a command waits for a directory.
const PATIENCE: Duration = Duration::from_secs(3);

/// A request, and when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Announced {
    pub(super) purpose: &'static str,
    pub(super) when: String,
    pub(super) request: String,
}

/// All requests that the state of this home causes.
pub(super) fn announced(
    workplace: &Workplace,
    settings: &NetworkSettings,
    at: Timestamp,
) -> Result<Vec<Announced>, Failure> {
    let folder = NetworkFolder::of(workplace.home.path());
    let url = settings.url.as_str();
    let directory = DirectoryClient::new(settings.clone(), &folder);
    let (cache, feed) = (VerdictCache::read(&folder, url), FeedFile::read(&folder, url));
    let mut all = Vec::new();
    let mut add = |when: &str, request: &NetworkRequest| -> Result<(), Failure> {
        let printed = directory.printed(request).map_err(Failure::usage)?;
        let when = when.to_owned();
        let announced = Announced { purpose: request.purpose(), when, request: printed };
        if !all.contains(&announced) {
            all.push(announced);
        }
        Ok(())
    };
    let hourly = "once an hour while a gate runs, and by `check`, `pin` and `review` if it is due";
    add(hourly, &NetworkRequest::Parameters)?;
    add(hourly, &NetworkRequest::Drift { after: feed.asks_after(at) })?;
    let advisories = KeptAdvisories::read(&folder, url);
    let when = "once an hour while a gate runs, and by `network advisories`";
    add(when, &NetworkRequest::Advisories { after: advisories.asks_after(at) })?;
    let waiting = waiting(workplace, at)?;
    let queue = ReportQueue::read(&folder, url);
    let bits = cache.bits().unwrap_or(0);
    for judgement in waiting.iter().filter(|entry| entry.verdict == Verdict::Inconclusive) {
        let definition = judgement.after.as_ref().and_then(Entry::definition_hash);
        if let Some(definition) = definition {
            let bucket = bucket_of(definition.as_bytes(), bits);
            let when = when_met(definition, cache.bits());
            add(&when, &NetworkRequest::Corpus(bucket))?;
        }
    }
    let salt = cache.salt();
    let unknown = match salt {
        Some(_) => "",
        None => "; the salt is not known yet, so fingerprints and their bucket are shown as zeros",
    };
    for change in waiting.iter().filter_map(|judgement| MetChange::of(judgement, at)) {
        let bucket = bucket_of(change.report(salt).fp_before.as_bytes(), bits);
        let when = format!("when `holdpoint review` shows this change{unknown}");
        add(&when, &NetworkRequest::Reports(bucket))?;
        if settings.contribute && !queue.is_told(&change) {
            let when = format!("when a gate meets this change, once{unknown}");
            add(&when, &NetworkRequest::Report(change.report(salt)))?;
        }
    }
    for change in queue.waiting().into_iter().filter(|_| settings.contribute) {
        let when = format!("within a minute while a gate runs, once: it was met before{unknown}");
        add(&when, &NetworkRequest::Report(change.report(salt)))?;
    }
    if settings.contribute
        && let Some(since) = ContributionsSince::read(&folder, url)
    {
        for contribution in since.waiting(&people_events(workplace)?) {
            let request = NetworkRequest::Contribute(contribution.row);
            add("within a minute while a gate runs, once", &request)?;
        }
    }
    Ok(all)
}

/// When a definition is looked up, and how much the lookup may reveal if that is not known yet.
fn when_met(definition: DefinitionHash, bits: Option<u8>) -> String {
    let when = "when a gate meets this change";
    match bits {
        Some(_) => when.to_owned(),
        None => {
            let most = bucket_of(definition.as_bytes(), MAX_BUCKET_BITS);
            format!(
                "{when}; the number of bits is not known yet: 0 is shown, and the most revealing path possible is `{}`",
                NetworkRequest::Corpus(most).path()
            )
        }
    }
}

/// The questions that the configured model would be asked.
pub(super) fn questions(workplace: &Workplace, at: Timestamp) -> Result<Vec<Announced>, Failure> {
    let access = upper_tiers::access(workplace.home.path(), &workplace.configuration);
    let Some(settings) = access.consult else { return Ok(Vec::new()) };
    let folder = NetworkFolder::of(workplace.home.path());
    let judge = ConfiguredJudge::new(settings, folder)?;
    let open = waiting(workplace, at)?;
    let open = open.iter().filter(|entry| entry.verdict == Verdict::Inconclusive);
    let printed = open.filter_map(|judgement| judge.printed(judgement));
    let announced = |request| Announced {
        purpose: "an opinion on a change, of the model that `[judge]` names; the marker is random each time",
        when: "when a gate meets this change, once".to_owned(),
        request,
    };
    Ok(printed.map(announced).collect())
}

/// Every change of every server that waits for a decision.
fn waiting(workplace: &Workplace, at: Timestamp) -> Result<Vec<Judgement>, Failure> {
    let mut waiting = Vec::new();
    for server in workplace.store.servers()? {
        let review = workplace.review(&server.id, at)?;
        waiting.extend(review.judgement.entries.iter().filter(|it| it.is_waiting()).cloned());
    }
    Ok(waiting)
}

/// What this home knows from the network, for commands that show pins and changes. Empty if the
/// network is off.
pub(crate) struct LocalNetwork {
    settings: Option<NetworkSettings>,
    folder: NetworkFolder,
    feed: DriftFeed,
    /// The report buckets asked for so far; `None` if the directory did not answer.
    asked: RefCell<HashMap<Bucket, Option<ReportBucket>>>,
}

/// How many other installs report the same change. Unconfirmed: anyone with a key can report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct UnconfirmedReports {
    pub(crate) installs: u32,
}

impl UnconfirmedReports {
    pub(crate) fn words(self) -> String {
        let installs = crate::report::count(self.installs as usize, "install says", "installs say");
        format!("unconfirmed: {installs} that they met the same change")
    }
}

impl LocalNetwork {
    /// Reads the stored state.
    pub(crate) fn open(home: &Path, configuration: &Configuration) -> LocalNetwork {
        let settings = match configuration.network().is_named() {
            true => upper_tiers::access(home, configuration).network,
            false => None,
        };
        let folder = NetworkFolder::of(home);
        let feed = settings.as_ref().map(|settings| FeedFile::read(&folder, &settings.url).feed());
        let feed = feed.unwrap_or_default();
        LocalNetwork { settings, folder, feed, asked: RefCell::default() }
    }

    /// Updates the feed if it is older than an hour. Does not wait for a slow directory.
    pub(crate) fn refreshed(mut self) -> LocalNetwork {
        let at = crate::observation::now();
        if let Some(settings) = &self.settings {
            let mut file = FeedFile::read(&self.folder, &settings.url);
            if !file.is_young(at) {
                let directory = self.directory(settings);
                let read = async {
                    let parameters = directory.parameters().await?;
                    let (folder, url) = (&self.folder, &settings.url);
                    let mut cache = VerdictCache::read(folder, url);
                    cache.take_parameters(folder, url, parameters, at);
                    file.refresh(&directory, folder, parameters.salt, at).await
                };
                if !matches!(block_on(read), Some(Ok(_))) {
                    // Do not wait for the directory again.
                    self.asked.borrow_mut().extend(Bucket::new(0, 0).map(|all| (all, None)));
                }
                self.feed = file.feed();
            }
        }
        self
    }

    fn directory(&self, settings: &NetworkSettings) -> DirectoryClient {
        DirectoryClient::new(settings.clone(), &self.folder).within(PATIENCE)
    }

    /// The crawler's observation of the same change.
    pub(crate) fn advisory(&self, judgement: &Judgement) -> Option<DriftAdvisory> {
        self.feed.of_change(judgement)
    }

    /// Prints what the crawler observed of these changes.
    pub(crate) fn remark_changes(&self, judgement: &SurfaceJudgement) {
        for entry in &judgement.entries {
            if let Some(advisory) = self.advisory(entry) {
                remark(&entry.id, entry.before.is_some(), &advisory);
            }
        }
    }

    /// Prints which of these newly pinned entries the crawler has seen change.
    pub(crate) fn remark_pinned(&self, surface: &Surface) {
        for entry in surface.entries() {
            if let Some(advisory) = self.feed.pin_changed(entry.entry_hash()) {
                remark(entry.id(), true, &advisory);
            }
        }
    }

    /// How many installs reported a change; `None` if unknown or zero.
    pub(crate) fn reports(&self, judgement: &Judgement) -> Option<UnconfirmedReports> {
        let settings = self.settings.as_ref()?;
        let change = MetChange::of(judgement, crate::observation::now())?;
        let cache = VerdictCache::read(&self.folder, &settings.url);
        let salt = cache.salt()?;
        let (before, after) = (salt.fingerprint(change.before), salt.fingerprint(change.after));
        let bucket: Bucket = bucket_of(before.as_bytes(), cache.bits()?);
        let mut asked = self.asked.borrow_mut();
        // Do not wait again for a directory that failed to answer once.
        if !asked.contains_key(&bucket) && asked.values().all(Option::is_some) {
            let answer = block_on(self.directory(settings).reports(bucket));
            asked.insert(bucket, answer.and_then(Result::ok));
        }
        let reports = asked.get(&bucket)?.as_ref()?;
        let is_it = |report: &&gate::network::InstallReport| {
            report.fp_before == before && report.fp_after == after
        };
        let installs = reports.reports.iter().filter(is_it).map(|report| report.installs);
        // Saturate: the directory may send any numbers.
        let installs = installs.fold(0, u32::saturating_add);
        (installs > 0).then_some(UnconfirmedReports { installs })
    }
}

fn remark(id: &EntryId, is_accepted: bool, advisory: &DriftAdvisory) {
    let name = screen::readable(&shown_name(&id.key, is_accepted));
    screen::remark(format!("network: {} `{name}`: {}", id.entry_type, advisory.sentence()));
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    Some(runtime.block_on(future))
}
