//! People's decisions on servers: approve, quarantine, release, and recheck. The acts are those of
//! the engine, as on the command line. When one returns, callers already see its effect.

use super::AdminVisit;
use super::body::{ApproveBody, Reviewed, read};
use super::refusal::AdminError;
use crate::server::GatewayServer;
use engine::acts::{self, Decided, Quarantine, Review, Shared};
use engine::server::looked_surface;
use gate::server::{ServerId, ServerStatus};
use serde_json::{Value, json};
use std::sync::Arc;
use store::Store;

impl AdminVisit {
    pub(super) fn approve(&self, id: &ServerId, body: &[u8]) -> Result<Value, AdminError> {
        let reviewed = read::<ApproveBody>(body)?.reviewed()?;
        let mut store = self.node.shared.open_store()?;
        let review = self.review(&store, id)?;
        let choice = match &reviewed {
            Reviewed::All(hash) => {
                if review.surface_hash().as_ref() != Some(hash) {
                    // Report first if nothing can be approved.
                    review.choose(&[], hash)?;
                    return Err(acts::ActError::OtherHash { server: id.clone() }.into());
                }
                review.choose(&[], hash)?
            }
            Reviewed::Entries(entries) => review.choose_entries(entries)?,
        };
        let configured = |id: &ServerId| self.node.judging(id);
        let Decided { status, shared } =
            self.by(|by| acts::approve(&mut store, &choice, &configured, by))?;
        self.node.refresh();
        let approved: Vec<String> =
            choice.entries.iter().map(|entry| entry.id.to_string()).collect();
        Ok(decided(id, status, &shared, json!({"approved": approved})))
    }

    pub(super) fn quarantine(&self, id: &ServerId) -> Result<Value, AdminError> {
        let mut store = self.node.shared.open_store()?;
        if store.server(id)?.is_none() {
            self.by(|by| acts::quarantine_unseen(&mut store, id, by))?;
            self.node.refresh();
            return Ok(decided(id, ServerStatus::Quarantined, &[], json!({"already": false})));
        }
        let review = self.review(&store, id).ok();
        let configured = |id: &ServerId| self.node.judging(id);
        let stopped =
            self.by(|by| acts::quarantine(&mut store, id, review.as_ref(), &configured, by))?;
        self.node.refresh();
        let was_stopped = stopped.outcome == Quarantine::Already;
        let more = json!({"already": was_stopped});
        Ok(decided(id, ServerStatus::Quarantined, &stopped.shared, more))
    }

    /// Ends a quarantine: a new check of the server decides its status.
    pub(super) async fn release(self, id: ServerId) -> Result<Value, AdminError> {
        let server = self.configured_server(&id).await?;
        let checked = id.clone();
        let visit = self.clone();
        visit
            .blocking(move |visit| {
                let store = visit.node.shared.open_store()?;
                visit.review(&store, &checked)?.server.check_release()?;
                Ok(Value::Null)
            })
            .await?;
        let (observed, origin) = self.node.look(&server).await?;
        self.blocking(move |visit| {
            let surface = looked_surface(&observed, origin)?;
            let mut store = visit.node.shared.open_store()?;
            let Review { server, .. } = visit.review(&store, &id)?;
            let configured = |id: &ServerId| visit.node.judging(id);
            let Decided { status, shared } =
                visit.by(|by| acts::release(&mut store, &server, &surface, &configured, by))?;
            visit.node.refresh();
            Ok(decided(&id, status, &shared, json!({})))
        })
        .await
    }

    /// Checks the server now, so that a change is found without waiting for a call.
    pub(super) async fn recheck(self, id: ServerId) -> Result<Value, AdminError> {
        let server = self.configured_server(&id).await?;
        let (visit, looked) = (self.clone(), server.clone());
        let checked = visit.blocking(move |_| match looked.engine.status()? {
            ServerStatus::Quarantined => Err(engine::server::LookError::Quarantined.into()),
            _ => Ok(Value::Null),
        });
        checked.await?;
        let status = self.node.recheck(&server).await?;
        self.blocking(move |visit| {
            let data = json!({"status": status});
            let recorder = &visit.node.shared.recorder;
            visit.by(|by| recorder.event(id.as_str(), "server.recheck", Some(by.name), &data));
            Ok(decided(&id, status, &[], json!({})))
        })
        .await
    }

    async fn configured_server(&self, id: &ServerId) -> Result<Arc<GatewayServer>, AdminError> {
        let catalog = self.node.catalog();
        let known = catalog.servers.get(id);
        let known = known.ok_or_else(|| AdminError::UnknownServer(id.to_string()))?;
        match known.server.may_be_contacted(known.situation.as_deref()).await {
            true => Ok(known.server.clone()),
            false => Err(AdminError::Conflict(format!("server `{id}` is not admitted"))),
        }
    }
}

/// The result of a decision, with the names that the commands print with `--json`.
fn decided(id: &ServerId, status: ServerStatus, shared: &[Shared], more: Value) -> Value {
    let mut document = json!({"server": id, "status": status});
    let of_one = |shared: &Shared| match &shared.outcome {
        Ok(status) => json!({"server": shared.server, "status": status}),
        Err(error) => json!({"server": shared.server, "error": error.to_string()}),
    };
    if let Value::Object(members) = &mut document {
        if let Value::Object(more) = more {
            members.extend(more);
        }
        if !shared.is_empty() {
            members.insert("shared".to_owned(), shared.iter().map(of_one).collect());
        }
    }
    document
}
