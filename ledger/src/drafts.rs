//! Drafts of lines, gathered until the thread that holds the chain gives them their places.

use crate::line::{Draft, Outline};

/// Drafts in the order in which they came. Its memory is used again and again: no draft has an allocation of its own.
#[derive(Debug, Default)]
pub struct Drafts {
    bytes: Vec<u8>,
    outlines: Vec<(Outline, usize)>,
}

impl Drafts {
    pub fn push(&mut self, draft: Draft<'_>) {
        self.bytes.extend_from_slice(draft.bytes);
        self.outlines.push((draft.outline.clone(), self.bytes.len()));
    }

    pub fn len(&self) -> usize {
        self.outlines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.outlines.is_empty()
    }

    /// How many bytes the drafts have, without what their places add.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = Draft<'_>> {
        let begins = std::iter::once(0).chain(self.outlines.iter().map(|(_, end)| *end));
        self.outlines.iter().zip(begins).map(|((outline, end), begin)| Draft {
            bytes: self.bytes.get(begin..*end).unwrap_or_default(),
            outline,
        })
    }

    /// Forgets all drafts, and keeps the memory for the next ones, but not more of it than `most_bytes`.
    pub fn clear(&mut self, most_bytes: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(most_bytes);
        self.outlines.clear();
        self.outlines.shrink_to(most_bytes / size_of::<(Outline, usize)>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Encoder, LineHash, Place, encode};
    use crate::record::{Latency, Outcome, OutcomeStatus, ReceiptId, Record};
    use contract::time::Timestamp;

    fn outcome(number: u8) -> Outcome {
        Outcome {
            ts: Timestamp(i64::from(number)),
            receipt_id: ReceiptId([number; 16]),
            status: OutcomeStatus::Success,
            size_bytes_out: u64::from(number),
            latency_us: Latency::default(),
        }
    }

    #[test]
    fn drafts_come_back_in_order_and_make_the_lines_of_their_records() {
        let (mut encoder, mut drafts) = (Encoder::default(), Drafts::default());
        for round in 0..2 {
            for number in round..round + 5 {
                drafts.push(encoder.draft(&Record::Outcome(&outcome(number))).unwrap());
            }
            assert_eq!((drafts.len(), drafts.iter().count()), (5, 5));
            let (mut placed, mut encoded) = (Vec::new(), Vec::new());
            for (draft, number) in drafts.iter().zip(round..) {
                let place = Place { seq: number.into(), prev: LineHash([number; 32]) };
                assert_eq!((draft.ts(), draft.is_outcome()), (outcome(number).ts, true));
                let hash = draft.place(place, &mut placed);
                let record = outcome(number);
                assert_eq!(encode(&Record::Outcome(&record), place, &mut encoded).unwrap(), hash);
            }
            assert_eq!(String::from_utf8(placed).unwrap(), String::from_utf8(encoded).unwrap());
            drafts.clear(100);
            assert!(drafts.is_empty() && drafts.bytes() == 0 && drafts.bytes.capacity() < 200);
        }
    }
}
