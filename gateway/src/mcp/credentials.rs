//! The credentials stage of a call: the caller's own token is never forwarded, and the server gets
//! the credential configured for it.
//!
//! It comes after authorization and before the engine's session: the session's greeting, and the
//! lists that the call is judged by, already need the credential.

use super::given_state::RequestBinding;
use super::{Asked, Visit};
use crate::node::Node;
use crate::presented::Presented;
use crate::reply::{self, Reply};
use crate::server::{GatewayServer, LinkError, LinkKey, ReadyLink};
use crate::sign_in::{as_elicitation, as_input_required};
use engine::credentials::Unavailable;
use engine::decide::Denial;
use engine::reason::ReasonCode;
use engine::server::Unlinked;
use http::StatusCode;
use std::sync::Arc;
use wire::envelope::Envelope;

const WORDS_OF_PASSTHROUGH: &str = "○ holdpoint — your own token is in the message; it is not passed on to servers, so the call was not made";

impl Node {
    /// The credential for the server, or the response to a call that must not be made.
    pub(super) async fn present(
        &self,
        visit: &Visit,
        asked: Asked<'_>,
        server: &Arc<GatewayServer>,
        unlinked: &Unlinked<'_>,
        bound: Option<&RequestBinding>,
    ) -> Result<Option<Presented>, Box<Reply>> {
        // INVARIANT: everything in the outgoing message that the caller can influence is searched
        // for the caller's tokens. The URL and other headers are the operator's; headers with
        // copied arguments repeat the message.
        let is_passed_on = visit.inbound.occurs_in(asked.envelope.raw)
            || visit.forwardable.iter().any(|(_, value)| visit.inbound.occurs_in(value.as_bytes()));
        if is_passed_on {
            return Err(refuse_passthrough(server, unlinked));
        }
        if server.broker.is_none() {
            return Ok(None);
        }
        let credential = match server.broker.ready(&visit.inbound) {
            Some(credential) => credential,
            None => {
                // INVARIANT: no authorization server is contacted for a caller that may not make
                // the call.
                if let Some(refusal) = server.engine.refuse_unpermitted(unlinked) {
                    return Err(answer(refusal));
                }
                match Box::pin(server.broker.obtain(&visit.inbound)).await {
                    Ok(Some(credential)) => credential,
                    Ok(None) => return Ok(None),
                    Err(why) => {
                        return Err(self.refuse_unavailable(visit, server, unlinked, &why, bound));
                    }
                }
            }
        };
        if visit.inbound.is_in_credential(credential.value()) {
            return Err(refuse_passthrough(server, unlinked));
        }
        let (server, inbound) = (server.clone(), visit.inbound.clone());
        Ok(Some(Presented { server, inbound, credential }))
    }

    /// Refuses a call for which there is no credential. If the caller has to sign in, the response
    /// says where; with `bound`, which the retry returns, it may be a question to the client
    /// instead of an error.
    pub(super) fn refuse_unavailable(
        &self,
        visit: &Visit,
        server: &GatewayServer,
        unlinked: &Unlinked<'_>,
        why: &Unavailable,
        bound: Option<&RequestBinding>,
    ) -> Box<Reply> {
        let is_asked = matches!(why, Unavailable::SignInNeeded);
        if !why.needs_person() {
            self.remark(&format!("`{}`: no credential for a caller: {why}", server.id()));
        }
        if why.is_passthrough() {
            return refuse_passthrough(server, unlinked);
        }
        let sign_in = is_asked.then(|| self.sign_in_link(visit, server)).flatten();
        let words = match (is_asked, &sign_in) {
            (true, None) => Unavailable::NoPerson.words(),
            (_, _) => why.words(),
        };
        let denial = Denial::new(ReasonCode::CredentialUnavailable, words);
        let Some(link) = sign_in else {
            return answer(server.engine.deny_unlinked(unlinked, denial));
        };
        let denial = Denial { sign_in: Some(link.as_str().into()), ..denial };
        let refusal = server.engine.deny_unlinked(unlinked, denial);
        let id = server.id().as_str();
        answer(match bound.and_then(|bound| bound.sign_in_state(visit, &self.shared.sealer)) {
            Some(state) => as_input_required(refusal, id, &link, &state),
            None => as_elicitation(refusal, visit, id, &link),
        })
    }

    /// The caller's link to a server. If the server rejects the credential in the greeting, it is
    /// renewed once.
    pub(crate) async fn link(
        self: &Arc<Self>,
        visit: &Visit,
        server: &Arc<GatewayServer>,
        key: &LinkKey,
        presented: &mut Option<Presented>,
    ) -> Result<Arc<ReadyLink>, LinkError> {
        let listener = || self.listener(visit, server);
        let open = async |presented: &Option<Presented>| {
            let credential = presented.as_ref().map(|presented| &presented.credential);
            server.link(key, &visit.principal, credential, listener).await
        };
        let refused = match open(presented).await {
            Err(error) if error.is_credential_refused() => error,
            outcome => return outcome,
        };
        let Some(Ok(renewed)) = (match &*presented {
            Some(presented) => Some(presented.renewed().await),
            None => None,
        }) else {
            return Err(refused);
        };
        *presented = Some(renewed);
        open(presented).await
    }

    /// The credential for observing a server on behalf of a caller.
    pub(crate) async fn present_for_look(
        &self,
        visit: &Visit,
        server: &Arc<GatewayServer>,
    ) -> Result<Option<Presented>, Unavailable> {
        let Some(credential) = server.broker.obtain(&visit.inbound).await? else { return Ok(None) };
        if visit.inbound.is_in_credential(credential.value()) {
            return Err(Unavailable::SameToken);
        }
        let (server, inbound) = (server.clone(), visit.inbound.clone());
        Ok(Some(Presented { server, inbound, credential }))
    }

    /// Forwards a client's answer to a server's question, unless it contains the client's own
    /// token.
    pub(super) fn take_answer(&self, visit: &Visit, envelope: &Envelope<'_>) {
        let Some(session) = &visit.session else { return };
        if visit.inbound.occurs_in(envelope.raw) {
            return self.note_refused(visit, ReasonCode::PassthroughBlocked, envelope.raw.len());
        }
        self.questions.answer(session.number, envelope);
    }
}

fn refuse_passthrough(server: &GatewayServer, unlinked: &Unlinked<'_>) -> Box<Reply> {
    // A caller that may not make the call must not learn that the tool exists.
    if let Some(refusal) = server.engine.refuse_unpermitted(unlinked) {
        return answer(refusal);
    }
    let denial = Denial::new(ReasonCode::PassthroughBlocked, WORDS_OF_PASSTHROUGH);
    answer(server.engine.deny_unlinked(unlinked, denial))
}

fn answer(refusal: Vec<u8>) -> Box<Reply> {
    Box::new(reply::json(StatusCode::OK, [refusal.into()]))
}
