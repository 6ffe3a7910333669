//! Collects the responses to a batch's requests into one batch, because a client that sent a batch
//! expects a single response.
//!
//! Each request passes through the gate separately and may be refused, wait, or take a while. Its
//! response is kept here until the others have arrived.

use std::collections::HashMap;
use wire::envelope::{Batch, Envelope, Kind, OwnedId, Scanned, scan};

/// The most bytes of kept responses. Beyond that, an incomplete batch is returned without the rest.
pub const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;

/// The batches with pending requests.
#[derive(Debug, Default)]
pub struct OpenBatches {
    /// The batch that each request belongs to.
    places: HashMap<OwnedId, u64>,
    batches: HashMap<u64, Open>,
    count: u64,
    kept_bytes: usize,
}

#[derive(Debug, Default)]
struct Open {
    /// How many of its requests have no response yet.
    unanswered: usize,
    /// The responses, separated by commas.
    answers: Vec<u8>,
}

/// How to handle a message to the client.
#[derive(Debug, PartialEq, Eq)]
pub enum Passage {
    /// It is passed on unchanged.
    Alone,
    /// It is kept until other responses arrive.
    Kept,
    /// All responses have arrived: this batch is sent instead.
    Whole(Vec<u8>),
}

impl OpenBatches {
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Registers the requests of a batch that will be answered.
    pub fn open(&mut self, batch: &Batch<'_>) {
        let id_of = |message: &Result<Envelope<'_>, wire::envelope::ScanError>| match message {
            Ok(Envelope { kind: Kind::Request { id, .. }, .. }) => Some(id.to_owned()),
            Ok(_) => None,
            Err(error) => error.id.clone(),
        };
        self.count += 1;
        let mut unanswered = 0;
        for id in batch.elements.iter().filter_map(|element| id_of(&element.message)) {
            // An id that is pending in an earlier batch stays there.
            if !self.places.contains_key(id.key()) {
                self.places.insert(id, self.count);
                unanswered += 1;
            }
        }
        if unanswered > 0 {
            self.batches.insert(self.count, Open { unanswered, answers: Vec::new() });
        }
    }

    /// Takes a message to the client, and keeps it if it is part of an incomplete batch.
    pub fn take(&mut self, message: &[u8]) -> Passage {
        let Ok(Scanned::Message(Envelope { kind: Kind::Response { id: Some(id), .. }, .. })) =
            scan(message)
        else {
            return Passage::Alone;
        };
        let Some(number) = self.places.remove(id.key()) else { return Passage::Alone };
        let Some(open) = self.batches.get_mut(&number) else { return Passage::Alone };
        let before = open.answers.len();
        if !open.answers.is_empty() {
            open.answers.push(b',');
        }
        open.answers.extend_from_slice(message);
        open.unanswered = open.unanswered.saturating_sub(1);
        self.kept_bytes = self.kept_bytes.saturating_add(open.answers.len() - before);
        let is_too_much = self.kept_bytes > MAX_KEPT_BYTES;
        let given = if is_too_much { self.give(number) } else { None };
        given.or(self.end(number)).map_or(Passage::Kept, Passage::Whole)
    }

    /// Stops waiting for a response that may never come. Returns the batch if it is complete
    /// without it.
    pub fn release(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let number = self.places.remove(key)?;
        let open = self.batches.get_mut(&number)?;
        open.unanswered = open.unanswered.saturating_sub(1);
        self.end(number)
    }

    /// The complete batch, if all of its responses have arrived.
    fn end(&mut self, number: u64) -> Option<Vec<u8>> {
        self.batches.get(&number).filter(|open| open.unanswered == 0)?;
        let whole = self.give(number);
        self.batches.remove(&number);
        whole
    }

    /// The responses of a batch that have arrived. Returns `None` if there are none.
    fn give(&mut self, number: u64) -> Option<Vec<u8>> {
        let answers = std::mem::take(&mut self.batches.get_mut(&number)?.answers);
        self.kept_bytes = self.kept_bytes.saturating_sub(answers.len());
        (!answers.is_empty()).then(|| [b"[".as_slice(), &answers, b"]"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(frame: &str) -> OpenBatches {
        let mut batches = OpenBatches::default();
        open(&mut batches, frame);
        batches
    }

    fn open(batches: &mut OpenBatches, frame: &str) {
        let Ok(Scanned::Batch(batch)) = scan(frame.as_bytes()) else { panic!("no batch: {frame}") };
        batches.open(&batch);
    }

    fn request(id: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)
    }

    fn answer(id: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
    }

    fn requests(ids: &[&str]) -> String {
        format!("[{}]", ids.iter().map(|id| request(id)).collect::<Vec<_>>().join(","))
    }

    fn whole(ids: &[&str]) -> Passage {
        let answers = ids.iter().map(|id| answer(id)).collect::<Vec<_>>().join(",");
        Passage::Whole(format!("[{answers}]").into_bytes())
    }

    #[test]
    fn answers_go_back_together_in_the_order_they_came() {
        let mut batches = batches(&requests(&["1", r#""a\/b""#]));
        assert_eq!(batches.take(answer("3").as_bytes()), Passage::Alone);
        assert_eq!(batches.take(answer(r#""a/b""#).as_bytes()), Passage::Kept);
        assert_eq!(batches.take(answer("1").as_bytes()), whole(&[r#""a/b""#, "1"]));
        assert!(batches.is_empty());
        assert_eq!(batches.take(answer("1").as_bytes()), Passage::Alone);
    }

    #[test]
    fn what_is_no_answer_passes_and_a_batch_without_requests_is_waited_for_by_nobody() {
        let mut batches = batches(r#"[{"jsonrpc":"2.0","method":"notifications/x"}]"#);
        assert!(batches.is_empty());
        open(&mut batches, &requests(&["1"]));
        for message in [r#"{"jsonrpc":"2.0","method":"x"}"#, &request("1"), "no message"] {
            assert_eq!(batches.take(message.as_bytes()), Passage::Alone, "{message}");
        }
        assert_eq!(batches.take(answer("1").as_bytes()), whole(&["1"]));
    }

    #[test]
    fn a_request_that_was_cancelled_keeps_no_others() {
        let mut batches = batches(&requests(&["1", "2"]));
        assert_eq!(batches.take(answer("2").as_bytes()), Passage::Kept);
        let given = batches.release(b"1").map(Passage::Whole);
        assert_eq!(given, Some(whole(&["2"])));
        assert_eq!(batches.take(answer("1").as_bytes()), Passage::Alone);
        open(&mut batches, &requests(&["3"]));
        assert_eq!((batches.release(b"3"), batches.release(b"3")), (None, None));
        assert!(batches.is_empty() && batches.batches.is_empty());
    }

    #[test]
    fn a_refused_element_with_an_id_is_answered_with_the_others() {
        let ambiguous = r#"{"jsonrpc":"2.0","id":2,"method":"ping","Method":"x"}"#;
        let mut batches = batches(&format!("[{},{ambiguous}]", request("1")));
        assert_eq!(batches.take(answer("1").as_bytes()), Passage::Kept);
        assert_eq!(batches.take(answer("2").as_bytes()), whole(&["1", "2"]));
    }

    #[test]
    fn what_is_kept_is_bounded_at_the_limit_and_not_before() {
        let mut batches = batches(&requests(&["1", "2", "3"]));
        let long = |id: &str, bytes: usize| {
            let empty = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":""}}"#);
            let fill = "x".repeat(bytes - empty.len());
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{fill}"}}"#)
        };
        assert_eq!(batches.take(long("1", MAX_KEPT_BYTES).as_bytes()), Passage::Kept);
        let given = batches.take(answer("2").as_bytes());
        assert!(matches!(given, Passage::Whole(bytes) if bytes.len() > MAX_KEPT_BYTES));
        assert_eq!(batches.kept_bytes, 0);
        assert_eq!(batches.take(answer("3").as_bytes()), whole(&["3"]));
        assert!(batches.is_empty() && batches.batches.is_empty());
        // The same if the limit is exceeded by the last response.
        open(&mut batches, &requests(&["4", "5"]));
        assert_eq!(batches.take(long("4", MAX_KEPT_BYTES).as_bytes()), Passage::Kept);
        assert!(matches!(batches.take(answer("5").as_bytes()), Passage::Whole(_)));
        assert!(batches.is_empty() && batches.batches.is_empty());
    }

    #[test]
    fn what_one_batch_keeps_is_counted_apart_from_what_others_do() {
        let mut batches = batches(&requests(&["1", "2", "3"]));
        open(&mut batches, &requests(&["4", "5"]));
        for id in ["1", "2", "4"] {
            assert_eq!(batches.take(answer(id).as_bytes()), Passage::Kept);
        }
        assert_eq!(batches.take(answer("3").as_bytes()), whole(&["1", "2", "3"]));
        assert_eq!(batches.kept_bytes, answer("4").len());
        assert_eq!(batches.take(answer("5").as_bytes()), whole(&["4", "5"]));
        assert_eq!(batches.kept_bytes, 0);
    }
}
