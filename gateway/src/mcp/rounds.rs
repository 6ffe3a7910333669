//! Serves a client with a session from a server without sessions that needs input: the server's
//! questions become requests on the open stream, and the original request is repeated with the
//! answers.

use crate::frame::{Edits, member, quoted};
use crate::link::{Ending, Link, LinkRequest, Surroundings};
use crate::node::Node;
use crate::pending::Answer;
use crate::presented::Presented;
use crate::reply;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use wire::envelope::{Envelope, Kind, Outcome, Scanned, members, scan};

/// How often one request can be repeated.
const MAX_ROUNDS: usize = 8;
/// How long a client may take to answer.
const PATIENCE: Duration = Duration::from_secs(300);

/// The message to a client whose server asked for something that it was not offered.
pub(super) const UNOFFERED: &str =
    "○ holdpoint — the server asked the client for something that it was not offered";

/// The parts needed to repeat a request.
#[derive(Debug)]
pub(super) struct Rounds {
    link: Arc<Link>,
    /// The request as last sent.
    frame: Vec<u8>,
    progress_token: Option<Vec<u8>>,
    count: usize,
    surroundings: Surroundings<'static>,
}

impl Rounds {
    pub(super) fn new(link: &Arc<Link>, frame: Vec<u8>, progress_token: Option<&[u8]>) -> Rounds {
        let progress_token = progress_token.map(<[u8]>::to_vec);
        let surroundings = Surroundings::default();
        Rounds { link: link.clone(), frame, progress_token, count: 0, surroundings }
    }

    /// The same with a credential for the server.
    pub(super) fn presenting(mut self, presented: Option<Presented>) -> Rounds {
        self.surroundings.presented = presented;
        self
    }

    /// Repeats the request with the client's answers.
    fn ask_again(&mut self, responses: &[u8], state: Option<&[u8]>) -> LinkRequest {
        let mut sent = Vec::new();
        let token = self.progress_token.as_deref();
        let request = self.link.ask_in(&self.surroundings, token, Ending::RunsOn, |number| {
            sent = with_responses(&self.frame, number, responses, state);
            sent.clone()
        });
        self.frame = sent;
        request
    }
}

/// The raw result of an answer, if the server first needs input from the client.
pub(super) fn input_required(answer: &[u8]) -> Option<&[u8]> {
    let Ok(Scanned::Message(Envelope {
        kind: Kind::Response { outcome: Outcome::Result(result), .. },
        ..
    })) = scan(answer)
    else {
        return None;
    };
    (member(result, "resultType") == Some(br#""input_required""#)).then_some(result)
}

/// Whether an answer asks the client for something that the server was not offered.
pub(super) fn asks_unoffered(link: &Link, answer: &[u8]) -> bool {
    input_required(answer).is_some_and(|result| asks_for_unoffered(link, result))
}

/// Like [`asks_unoffered`], for a result or the parameters of a notification.
pub(super) fn asks_for_unoffered(link: &Link, result: &[u8]) -> bool {
    let wanted = member(result, "inputRequests");
    members(wanted.unwrap_or_default()).any(|(_, request)| {
        let method = member(request, "method");
        let method = method.and_then(|raw| serde_json::from_slice::<String>(raw).ok());
        !method.is_some_and(|method| link.offers(&method))
    })
}

fn with_responses(frame: &[u8], number: u64, responses: &[u8], state: Option<&[u8]>) -> Vec<u8> {
    let number = number.to_string();
    let mut edits = Edits::of(frame);
    if let Some(id) = member(frame, "id") {
        edits.replace(id, number.clone());
    }
    let params = member(frame, "params").unwrap_or_default();
    let token = member(params, "_meta").and_then(|meta| member(meta, "progressToken"));
    if let Some(token) = token {
        edits.replace(token, number);
    }
    for (name, value) in [("inputResponses", Some(responses)), ("requestState", state)] {
        match (member(params, name), value) {
            (Some(given), Some(value)) => edits.replace(given, value),
            (Some(given), None) => edits.replace(given, *b"null"),
            (None, Some(value)) => edits.insert(params, name, value),
            (None, None) => {}
        }
    }
    edits.finish()
}

impl Node {
    /// Asks the client for the server's input on its open stream, and repeats the request. Returns
    /// a message if that is not possible.
    pub(super) async fn next_round(
        &self,
        rounds: &mut Rounds,
        answer: &Answer,
        session: u64,
        sender: &mpsc::Sender<Bytes>,
    ) -> Result<LinkRequest, &'static str> {
        rounds.count += 1;
        if rounds.count > MAX_ROUNDS {
            return Err("○ holdpoint — the server asked the client too often");
        }
        let result = input_required(answer.bytes()).unwrap_or_default();
        let wanted = member(result, "inputRequests").unwrap_or(b"{}");
        if asks_unoffered(&rounds.link, answer.bytes()) {
            return Err(UNOFFERED);
        }
        let mut responses = vec![b'{'];
        for (name, request) in members(wanted) {
            let method = member(request, "method").unwrap_or(b"\"\"");
            let params = member(request, "params").unwrap_or(b"{}");
            let Some((id, waiting)) = self.questions.ask(session) else {
                return Err("○ holdpoint — too many questions to clients are open");
            };
            let message =
                [br#"{"jsonrpc":"2.0","id":"#, id.as_bytes(), br#","method":"#, method].concat();
            let parts: [&[u8]; 4] = [&message, br#","params":"#, params, b"}"];
            if sender.send(reply::event(&parts)).await.is_err() {
                return Err("○ holdpoint — the client has left");
            }
            let Ok(Ok(said)) = tokio::time::timeout(PATIENCE, waiting).await else {
                return Err("○ holdpoint — the client did not answer in time");
            };
            let Ok(Scanned::Message(Envelope {
                kind: Kind::Response { outcome: Outcome::Result(said), .. },
                ..
            })) = scan(&said)
            else {
                return Err("○ holdpoint — the client refused what the server asked for");
            };
            if responses.len() > 1 {
                responses.push(b',');
            }
            responses.extend_from_slice(&quoted(&name));
            responses.push(b':');
            responses.extend_from_slice(said);
        }
        responses.push(b'}');
        Ok(rounds.ask_again(&responses, member(result, "requestState")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_made_again_with_the_answers_under_a_new_number() {
        let frame = br#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":3}}}"#;
        let again = with_responses(frame, 4, br#"{"x":{"action":"accept"}}"#, Some(br#""s1""#));
        let again: serde_json::Value = serde_json::from_slice(&again).unwrap();
        assert_eq!(
            (&again["id"], &again["params"]["_meta"]["progressToken"]),
            (&4.into(), &4.into())
        );
        assert_eq!(again["params"]["inputResponses"]["x"]["action"], "accept");
        assert_eq!(again["params"]["requestState"], "s1");
        let text = serde_json::to_vec(&again).unwrap();
        let third = with_responses(&text, 5, b"{}", None);
        let third: serde_json::Value = serde_json::from_slice(&third).unwrap();
        assert!(third["params"]["requestState"].is_null());
        assert_eq!(third["params"]["inputResponses"], serde_json::json!({}));
    }

    #[test]
    fn only_a_result_that_says_so_requires_input() {
        let needs = br#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required"}}"#;
        assert!(input_required(needs).is_some());
        assert!(input_required(br#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#).is_none());
        assert!(input_required(br#"{"jsonrpc":"2.0","id":1,"error":{}}"#).is_none());
    }
}
