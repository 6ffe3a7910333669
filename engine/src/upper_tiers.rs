//! The tiers above the comparison, the same for every surface: `run`, the gateway and applications'
//! sessions each get one of these, and the judge consults it in one place.
//!
//! By default there are none, and nothing is requested from anyone.

mod access;

pub use access::{Access, ReadKey};

use crate::behavior::{ObservedBehavior, Unobserved};
use crate::consult::{Consult, HeldJudge};
use crate::network::{MetChange, NetworkClient};
use crate::server::Server;
use contract::hash::{DefinitionHash, EntryHash};
use contract::surface::{Entry, Surface};
use gate::behavior::Consent;
use gate::consult::Answer;
use gate::judge::SurfaceJudgement;
use gate::network::{CorpusRow, DriftAdvisory};
use gate::pins::PinBook;
use gate::server::ServerId;
use gate::tiers::{Corpus, Held, Reader};
use gate::time::Timestamp;
use std::sync::Arc;
use std::time::Instant;

/// The corpus and the model, if the operator configured them. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct UpperTiers {
    network: Option<Arc<NetworkClient>>,
    consult: Option<Arc<Consult>>,
}

impl UpperTiers {
    pub fn new(network: Option<Arc<NetworkClient>>, consult: Option<Arc<Consult>>) -> UpperTiers {
        UpperTiers { network, consult }
    }

    /// Whether no tier is configured.
    pub fn are_held(&self) -> bool {
        self.network.is_none() && self.consult.is_none()
    }

    /// Takes a judgement as far up the ladder as there are tiers, and adds what the drift network
    /// knows. Returns what still has to be tested here, excluding what the corpus may be about to
    /// settle.
    pub(crate) fn climb(
        &self,
        server: &ServerId,
        behavior: &ObservedBehavior,
        consent: Consent,
        surface: &Surface,
        judgement: &mut SurfaceJudgement,
    ) -> Vec<Unobserved> {
        let consulted = self.consult.as_ref().map(|consult| consult.of_server(server));
        let corpus: &dyn Corpus = match &self.network {
            Some(network) => network.as_ref(),
            None => &Held,
        };
        let reader: &dyn Reader = match &consulted {
            Some(consulted) => consulted,
            None => &HeldJudge,
        };
        let mut unobserved = behavior.climb(corpus, reader, consent, surface, judgement);
        if let Some(network) = &self.network {
            network.advise(judgement);
            unobserved.retain(|it| {
                let definition = it.tool.definition_hash();
                definition.is_none_or(|definition| network.awaited_until(definition).is_none())
            });
        }
        unobserved
    }

    /// The pins that the directory's crawler saw change.
    pub(crate) fn changed_pins(&self, book: &PinBook) -> Vec<(Entry, DriftAdvisory)> {
        self.network.as_ref().map_or_else(Vec::new, |network| network.changed_pins(book))
    }

    /// Has a server judged again when something is learned.
    pub(crate) fn listen(&self, server: &Arc<Server>) {
        self.network.iter().for_each(|network| network.listen(server));
        self.consult.iter().for_each(|consult| consult.listen(server));
    }

    /// Until when a refusal waits for the corpus.
    pub(crate) fn awaited_until(&self, definition: DefinitionHash) -> Option<Instant> {
        self.network.as_ref()?.awaited_until(definition)
    }

    pub(crate) fn row(&self, definition: DefinitionHash) -> Option<CorpusRow> {
        self.network.as_ref()?.row(definition)
    }

    pub(crate) fn answer(&self, entry: EntryHash) -> Option<Answer> {
        self.consult.as_ref()?.answer(entry)
    }

    /// Called after a surface was judged as a server just showed it.
    pub(crate) fn met(&self, judgement: &SurfaceJudgement, at: Timestamp) {
        if let Some(network) = &self.network {
            let changes = judgement.entries.iter().filter_map(|entry| MetChange::of(entry, at));
            network.met(changes.collect());
        }
    }
}
