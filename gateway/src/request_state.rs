//! `requestState`, which a client of the stateless era returns with its retry: sealed, and bound to
//! the caller, the server and the exact request that it was given for.

use crate::frame::{Edits, member, quoted};
use crate::sealed::{Purpose, Sealer};
use crate::sessions::PrincipalId;
use contract::canonical::{Position, canonical};
use contract::json::Document;
use contract::time::Timestamp;
use gate::server::ServerId;
use sha2::{Digest, Sha256};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a client may take to retry.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// What a state is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateBinding([u8; 32]);

impl StateBinding {
    pub(crate) fn of(
        principal: &PrincipalId,
        server: &ServerId,
        method: &str,
        target: Option<&str>,
        arguments: Option<&[u8]>,
    ) -> StateBinding {
        let mut hash = Sha256::new();
        let mut add = |part: &[u8]| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        add(principal);
        add(server.as_str().as_bytes());
        add(method.as_bytes());
        add(target.unwrap_or_default().as_bytes());
        // A client may order the members of the arguments differently.
        let arguments = arguments.unwrap_or(b"{}");
        match Document::parse_bytes(arguments) {
            Ok(document) => add(&canonical(document.root(), Position::Plain)),
            Err(_) => add(arguments),
        }
        StateBinding(hash.finalize().into())
    }
}

/// The state was not given to this caller for this request, or has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotOurState;

/// The state that a client returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GivenState {
    /// The server's own state, as raw JSON.
    Servers(Vec<u8>),
    /// The gateway asked for a sign-in before the request can be made. The server does not know of
    /// it.
    SignIn,
}

/// A server's result with its state sealed; `None` if it has no state.
pub(crate) fn seal(sealer: &Sealer, binding: &StateBinding, result: &[u8]) -> Option<Vec<u8>> {
    let state = member(result, "requestState")?;
    let sealed = sealed(sealer, Purpose::RequestState, binding, state)?;
    let mut edits = Edits::of(result);
    edits.replace(state, quoted(&sealed));
    Some(edits.finish())
}

/// The state of a request that waits for its caller to sign in to the server.
pub(crate) fn seal_sign_in(sealer: &Sealer, binding: &StateBinding) -> Option<String> {
    sealed(sealer, Purpose::SignInState, binding, b"")
}

fn sealed(
    sealer: &Sealer,
    purpose: Purpose,
    binding: &StateBinding,
    state: &[u8],
) -> Option<String> {
    let expires = now() + LIFETIME.as_secs();
    let content = [&expires.to_be_bytes(), binding.0.as_slice(), state].concat();
    sealer.seal(purpose, &content).ok()
}

/// Opens a returned state. States from before the caller's revocation are not valid.
pub(crate) fn open(
    sealer: &Sealer,
    binding: &StateBinding,
    given: &[u8],
    revoked: Option<Timestamp>,
) -> Result<GivenState, NotOurState> {
    let text: String = serde_json::from_slice(given).map_err(|_| NotOurState)?;
    let opened = |purpose: Purpose| sealer.open(purpose, &text);
    let (content, is_servers) = match opened(Purpose::RequestState) {
        Some(content) => (content, true),
        None => (opened(Purpose::SignInState).ok_or(NotOurState)?, false),
    };
    let (expires, rest) = content.split_first_chunk::<8>().ok_or(NotOurState)?;
    let (bound, state) = rest.split_at_checked(32).ok_or(NotOurState)?;
    let expires = u64::from_be_bytes(*expires);
    let given_at = expires.saturating_sub(LIFETIME.as_secs());
    let is_revoked = revoked.is_some_and(|at| given_at <= u64::try_from(at.0 / 1_000).unwrap_or(0));
    if bound != binding.0 || expires <= now() || is_revoked {
        return Err(NotOurState);
    }
    Ok(if is_servers { GivenState::Servers(state.to_vec()) } else { GivenState::SignIn })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_for_the_same_request_of_the_same_caller_only() {
        let sealer = Sealer::of(&[3; 32]).unwrap();
        let server: ServerId = "files".parse().unwrap();
        let binding = |principal: u8, method: &str, target: &str, arguments: &str| {
            let arguments = Some(arguments.as_bytes());
            StateBinding::of(&[principal; 32], &server, method, Some(target), arguments)
        };
        let given = binding(1, "tools/call", "a", r#"{"x":1,"y":2}"#);
        let result = br#"{"resultType":"input_required","requestState":"secret","z":1}"#;
        let sealed = seal(&sealer, &given, result).unwrap();
        let state = member(&sealed, "requestState").unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        let servers = GivenState::Servers(br#""secret""#.to_vec());
        assert_eq!(open(&sealer, &given, state, None), Ok(servers));
        let own = quoted(&seal_sign_in(&sealer, &given).unwrap());
        assert_eq!(open(&sealer, &given, &own, None), Ok(GivenState::SignIn));
        let reordered = binding(1, "tools/call", "a", r#"{"y":2, "x":1}"#);
        assert!(open(&sealer, &reordered, state, None).is_ok());
        for other in [
            binding(2, "tools/call", "a", r#"{"x":1,"y":2}"#),
            binding(1, "prompts/get", "a", r#"{"x":1,"y":2}"#),
            binding(1, "tools/call", "b", r#"{"x":1,"y":2}"#),
            binding(1, "tools/call", "a", r#"{"x":2,"y":2}"#),
        ] {
            assert_eq!(open(&sealer, &other, state, None), Err(NotOurState));
            assert_eq!(open(&sealer, &other, &own, None), Err(NotOurState));
        }
        assert_eq!(open(&sealer, &given, br#""forged""#, None), Err(NotOurState));
        let earlier = Timestamp(engine::recorder::now().0 - 10_000);
        assert!(open(&sealer, &given, state, Some(earlier)).is_ok());
        let revoked = open(&sealer, &given, state, Some(engine::recorder::now()));
        assert_eq!(revoked, Err(NotOurState), "its caller was revoked since");
        let revoked = open(&sealer, &given, &own, Some(engine::recorder::now()));
        assert_eq!(revoked, Err(NotOurState), "its caller was revoked since");
        assert_eq!(seal(&sealer, &given, b"{}"), None);
    }
}
