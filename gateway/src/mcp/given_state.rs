//! What a request of the stateless era is bound to, and the state it returned: the server's own, or
//! that of a request by the gateway to show the person a sign-in link.

use super::forward::{Destination, is_ambiguous};
use super::{Asked, Visit};
use crate::call_slots::{ServerCalls, SlotLimits};
use crate::catalog::Catalog;
use crate::frame::member;
use crate::greeting::Era;
use crate::node::Node;
use crate::request_state::{self, GivenState, NotOurState, StateBinding};
use crate::sealed::Sealer;
use crate::server::GatewayServer;
use crate::sign_in::{INPUT_REQUEST, shows_urls};
use engine::call::Call;
use engine::credentials::Unavailable;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The requests whose answer may ask the client for input.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
/// How often to check whether a person has signed in.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// A call may only wait for a sign-in if the caller has fewer calls in flight than this: each
/// waiting call polls the store.
const MAX_WAITING: usize = 8;

/// What a request is bound to, and the state that it returned.
#[derive(Debug)]
pub(super) struct RequestBinding {
    /// What the `requestState` in the answer is bound to. `None` for sessions, which have no such
    /// states.
    pub(super) binding: Option<StateBinding>,
    pub(super) given: Option<GivenState>,
    /// Whether the answer may ask the client to show a link, judging by the request.
    may_ask: bool,
}

impl RequestBinding {
    /// The state for asking the client to show its user a link; `None` if the client must not be
    /// asked.
    pub(super) fn sign_in_state(&self, visit: &Visit, sealer: &Sealer) -> Option<String> {
        let binding = self.binding.as_ref().filter(|_| self.may_ask)?;
        shows_urls(&visit.askable).then(|| request_state::seal_sign_in(sealer, binding)).flatten()
    }
}

/// What the person did with a link that the client was asked to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Accepted,
    Declined,
    /// The client does not report it.
    Unsaid,
}

fn shown(responses: Option<&[u8]>) -> Shown {
    let response = responses.and_then(|responses| member(responses, INPUT_REQUEST));
    match response.and_then(|response| member(response, "action")) {
        Some(br#""accept""#) => Shown::Accepted,
        Some(_) => Shown::Declined,
        None => Shown::Unsaid,
    }
}

fn responses(asked: Asked<'_>) -> Option<&[u8]> {
    member(asked.params()?.raw, "inputResponses")
}

impl Node {
    /// What a request is bound to. Fails if its state was given for a different request.
    pub(super) fn bind(
        &self,
        visit: &Visit,
        asked: Asked<'_>,
        server: &GatewayServer,
        call: &Call<'_>,
    ) -> Result<RequestBinding, NotOurState> {
        let given = asked.params().and_then(|params| params.request_state);
        // Only compute the binding if needed: it hashes all arguments.
        let binding = (given.is_some() || visit.era == Era::Stateless).then(|| {
            let target = call.target.map(|target| target.key);
            StateBinding::of(&visit.principal_id, server.id(), asked.method, target, call.arguments)
        });
        let given = given.zip(binding.as_ref()).map(|(given, binding)| {
            let revoked = self.authenticator().revoked().principal(visit.caller.identity());
            request_state::open(&self.shared.sealer, binding, given, revoked)
        });
        let given = given.transpose()?;
        // A client that is already answering the server cannot answer the gateway too.
        let is_free = || match &given {
            None => responses(asked).is_none(),
            Some(GivenState::SignIn) => shown(responses(asked)) != Shown::Declined,
            Some(GivenState::Servers(_)) => false,
        };
        let may_ask = visit.era == Era::Stateless && ASKING.contains(&asked.method) && is_free();
        Ok(RequestBinding { binding, given, may_ask })
    }

    /// Waits for a person who was shown the link, since clients repeat the request as soon as the
    /// browser is open. Later, the decision on the request finds out whether the person has signed
    /// in.
    pub(super) async fn await_sign_in(&self, visit: &Visit, asked: Asked<'_>, catalog: &Catalog) {
        let has_state = asked.params().is_some_and(|params| params.request_state.is_some());
        let is_accepted = shown(responses(asked)) == Shown::Accepted;
        if visit.era != Era::Stateless || !has_state || !is_accepted || is_ambiguous(asked) {
            return;
        }
        let Some(destination) = self.destination(visit, asked, catalog) else { return };
        let Destination { known, name, .. } = &destination;
        let server = &known.server;
        if !server.broker.is_per_person()
            || !self.shared.authorizer.could_use(&visit.caller, server.id())
        {
            return;
        }
        let call = visit.call_of(asked, name.as_deref());
        let bound = self.bind(visit, asked, server, &call);
        if !bound.is_ok_and(|bound| bound.given == Some(GivenState::SignIn)) {
            return;
        }
        let limits = &self.shared.settings().front.limits;
        // Counts against the caller's limit, but not yet against the server's.
        let per_caller = limits.calls_per_caller.min(MAX_WAITING);
        let slots = SlotLimits { per_caller, per_server: usize::MAX };
        let slot = self.call_slots.take(&visit.principal_id, &ServerCalls::default(), slots);
        let Ok(_slot) = slot else { return };
        let patience = Duration::from_secs(limits.approval_wait_seconds);
        let until = Instant::now() + visit.expires.map_or(patience, |left| left.min(patience));
        while let Err(Unavailable::SignInNeeded) = server.broker.obtain(&visit.inbound).await
            && Instant::now() < until
        {
            sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_action_that_says_so_accepts() {
        let check = |responses: &str, expected: Shown| {
            assert_eq!(shown(Some(responses.as_bytes())), expected, "{responses}");
        };
        check(r#"{"sign_in":{"action":"accept"}}"#, Shown::Accepted);
        check(r#"{"other":{"action":"decline"},"sign_in":{"action":"accept"}}"#, Shown::Accepted);
        check(r#"{"sign_in":{"action":"decline"}}"#, Shown::Declined);
        check(r#"{"sign_in":{"action":"cancel"}}"#, Shown::Declined);
        check(r#"{"sign_in":{"action":7}}"#, Shown::Declined);
        check(r#"{"sign_in":{}}"#, Shown::Unsaid);
        check(r#"{"other":{"action":"accept"}}"#, Shown::Unsaid);
        check("7", Shown::Unsaid);
        assert_eq!(shown(None), Shown::Unsaid);
    }
}
