//! Unsolicited messages from a server, and who gets them.

use crate::asking;
use crate::mcp::Visit;
use crate::node::Node;
use crate::peer::told::{Told, updated_uri};
use crate::pending::{Listener, Unasked};
use crate::relay::has_one_owner;
use crate::server::GatewayServer;
use crate::sessions::PrincipalId;
use bytes::Bytes;
use contract::surface::EntryType;
use engine::call::{Call, Subject, Target};
use engine::decide::{Authorization, Authorizer};
use engine::principal::Principal;
use gate::server::ServerId;
use std::sync::Arc;

/// The owner of the link on which a message arrived.
struct Hearer {
    principal: Arc<Principal>,
    principal_id: PrincipalId,
    session: Option<u64>,
    server: ServerId,
    /// Whether only this node receives the message, so that it must forward it to the others.
    is_only_here: bool,
}

impl Node {
    /// The listener for unsolicited messages from a server to a caller.
    pub(crate) fn listener(
        self: &Arc<Self>,
        visit: &Visit,
        server: &Arc<GatewayServer>,
    ) -> Box<Listener> {
        let node = Arc::downgrade(self);
        let hearer = Hearer {
            principal: visit.principal.clone(),
            principal_id: visit.principal_id,
            session: visit.session.as_ref().map(|session| session.number),
            server: server.id().clone(),
            is_only_here: has_one_owner(visit, server),
        };
        Box::new(move |unasked: &Unasked<'_>| {
            let Some(node) = node.upgrade() else { return };
            match unasked.method {
                // Callers are notified of a changed list once the catalog has it.
                method if method.ends_with("/list_changed") => {}
                // Only sent on the stream of the subscription that asked for it.
                "notifications/tasks" => {}
                "notifications/resources/updated" => node.notify_updated(&hearer, unasked),
                _ => node.forward_unasked(&hearer, unasked),
            }
        })
    }

    fn forward_unasked(&self, hearer: &Hearer, unasked: &Unasked<'_>) {
        let Some(link) = &unasked.link else { return };
        let Some(passed) = self.questions.pass(hearer.session, link, unasked.bytes) else { return };
        match (unasked.id, hearer.session) {
            (Some(id), Some(session)) => {
                if !self.sessions.send_to_session(session, &passed.message) {
                    asking::refuse(link, id);
                }
            }
            (Some(_), None) => {}
            (None, _) => {
                let (principal, server) = (&hearer.principal_id, &hearer.server);
                self.sessions.send_to_caller(principal, server, &passed.message);
                self.forward_to_nodes(hearer, &passed.message);
            }
        }
    }

    /// Reports a changed resource. Callers that may not read it are not told.
    fn notify_updated(&self, hearer: &Hearer, unasked: &Unasked<'_>) {
        let Hearer { principal, principal_id, server, .. } = hearer;
        let Some(uri) = updated_uri(unasked.bytes) else { return };
        let target = Target { entry_type: EntryType::Resource, key: &uri };
        let call = Call::about(Subject::Entry(target));
        let authorization = self.shared.authorizer.authorize(principal, server, &call);
        if let Authorization::Permit { .. } = authorization {
            self.sessions.send_to_caller(principal_id, server, unasked.bytes);
            self.sessions.notify_updated(principal_id, server, &uri);
            self.forward_to_nodes(hearer, unasked.bytes);
        }
    }

    fn forward_to_nodes(&self, hearer: &Hearer, message: &[u8]) {
        let Some(cluster) = self.cluster.as_ref().filter(|_| hearer.is_only_here) else { return };
        let (principal, server) = (hearer.principal_id, hearer.server.clone());
        cluster.forward_to_nodes(Told {
            principal,
            server,
            message: Bytes::copy_from_slice(message),
        });
    }
}
