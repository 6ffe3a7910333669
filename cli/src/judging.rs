//! Reads what the home of this command has recorded about a server.

use crate::failure::Failure;
use crate::target::Workplace;
use engine::acts::{RecordedServer, Review};
use gate::posture::Settings;
use gate::server::ServerId;
use gate::time::Timestamp;
use store::Witnessed;

impl Workplace {
    /// A server, which may be unknown.
    pub(crate) fn recorded(&self, id: &ServerId, at: Timestamp) -> Result<RecordedServer, Failure> {
        let settings = self.configuration.settings(Some(id), None);
        Ok(RecordedServer::read(&self.store, id, settings, at)?)
    }

    /// The store, and the settings of each of its servers, as needed to write an act.
    pub(crate) fn acting(&mut self) -> (&mut Witnessed, impl Fn(&ServerId) -> Settings) {
        let Workplace { store, configuration, .. } = self;
        (store, |id: &ServerId| configuration.settings(Some(id), None))
    }

    /// What a person has to review of a known server.
    pub(crate) fn review(&self, id: &ServerId, at: Timestamp) -> Result<Review, Failure> {
        let settings = self.configuration.settings(Some(id), None);
        Ok(Review::of(RecordedServer::known(&self.store, id, settings, at)?)?)
    }
}
