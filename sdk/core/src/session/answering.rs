//! What becomes of a request once its list is known.

use super::{Session, Waiting};
use crate::actions::{Action, Fault, Refusal, Reviewable, Ticket};
use envelope::{Envelope, Id, Kind, Params, Scanned, scan};
use gate::document::EntryDocument;
use gate::method::{Method, Target};
use gate::server_text::ServerText;
use gate::view::{Standing, Use, UseRuling, answer_list, with_member};
use gate::words::{self, Reviewer};
use serde_json::{Value, json};
use std::sync::Arc;

/// The most findings that a refusal has.
const MAX_EVIDENCE: usize = 20;
/// The code of a hold.
const HELD: i64 = -32010;

impl Session {
    /// Decides on a message that waited.
    pub(super) fn decide_kept(&mut self, waiting: &Waiting, out: &mut Vec<Action>) {
        let before = out.len();
        if let Ok(Scanned::Message(envelope)) = scan(waiting.message.as_bytes())
            && let Kind::Request { id, method } = &envelope.kind
        {
            self.decide(waiting.ticket, &envelope, id, Method::of(method), out);
            if out.len() == before {
                out.push(Action::Send(waiting.ticket));
            }
        }
    }

    /// Decides on a request. Nothing to do means that it goes on.
    pub(super) fn decide(
        &mut self,
        ticket: Ticket,
        envelope: &Envelope<'_>,
        id: &Id<'_>,
        kind: Method,
        out: &mut Vec<Action>,
    ) {
        let params = envelope.params.as_ref();
        match kind {
            Method::List(list) => match self.view.unreadable(list) {
                Some(standing) => {
                    let refusal = self.held(ticket, &standing.clone(), None);
                    out.push(Action::Refuse(refusal));
                }
                None => {
                    let cursor = params.and_then(|params| params.cursor);
                    let answer = answer_list(&self.view, list, None, cursor, id.raw());
                    let [beginning, result, end] = answer.parts();
                    // Once: the objects of a list are not shared between those that asked for it.
                    let is_as_sent = |heard: &mut (Arc<str>, String)| {
                        let heard = heard.0.as_bytes();
                        std::ptr::eq(heard, result) || heard == result
                    };
                    if let Some((_, id)) = self.heard.take_if(is_as_sent) {
                        return out.push(Action::AnswerAsSent(ticket, id));
                    }
                    // A client that keeps lists for the time that a server names would not see a change in that time.
                    let result = match answer.is_error {
                        true => result.to_vec(),
                        false => with_member(result, "ttlMs", Some(b"0")),
                    };
                    let message = [beginning, &result, end].concat();
                    out.push(Action::Answer(ticket, message.into()));
                }
            },
            Method::Use(_) => self.decide_use(ticket, params, kind, out),
            Method::Handshake | Method::Ping | Method::Other => {}
        }
    }

    fn decide_use(
        &mut self,
        ticket: Ticket,
        params: Option<&Params<'_>>,
        kind: Method,
        out: &mut Vec<Action>,
    ) {
        let Some(target) = kind.target(params) else {
            let why = "the target of the call is missing or ambiguous";
            return self.refuse_message(ticket, why, out);
        };
        let ruling = self.view.rule(&Use {
            target,
            arguments: params.and_then(|params| params.arguments),
            posture: self.settings.posture,
            reviewer: Reviewer::Application,
            held_tools: &self.held_tools,
        });
        match ruling {
            UseRuling::Proceed => {}
            UseRuling::Hold(standing) => {
                self.held_tools.note(target, &standing);
                out.push(Action::Refuse(self.held(ticket, &standing, Some(target))));
            }
            UseRuling::NotListed => {
                let message = words::not_listed(target.key);
                let server = self.server.as_str();
                out.push(Action::Refuse(Fault::UnknownTool.refusal(ticket, server, message)));
            }
        }
    }

    fn held(&self, ticket: Ticket, standing: &Standing, target: Option<Target<'_>>) -> Refusal {
        let key = target.map(|target| target.key);
        Refusal {
            ticket,
            code: HELD,
            message: standing.message().to_owned(),
            data: standing.data(self.server.as_str(), key, None),
            entry: standing.id.as_ref().map(Reviewable::from),
            evidence: self.evidence(standing).unwrap_or_else(|| json!([])),
        }
    }

    /// What was found of an entry, with the words before and after.
    fn evidence(&self, standing: &Standing) -> Option<Value> {
        let judged = self.judgement.as_ref()?.of(standing.id.as_ref()?)?;
        let document = serde_json::to_value(EntryDocument::of(judged, ServerText::Shown)).ok()?;
        let findings = document.get("findings")?.as_array()?;
        Some(findings.iter().take(MAX_EVIDENCE).cloned().collect())
    }
}
