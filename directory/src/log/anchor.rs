//! Anchors: OpenTimestamps proofs over the text of a checkpoint, from the calendars that the
//! operator names.

use super::ots::{Attestation, BadProof, BlockHeader, Operation, Proof, Timestamp};
use http::StatusCode;
use sha2::{Digest, Sha256};
use std::fmt;
use wire::dialer::{Call, DialError, Dialer};
use wire::service::ServiceBody;

const MEDIA_TYPE: &str = "application/vnd.opentimestamps.v1";
const NONCE_BYTES: usize = 16;

/// Why there is no anchor.
#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    #[error("no calendar is named: `[anchors] calendars` in the configuration")]
    NoCalendar,
    #[error("no calendar answered: {0}")]
    NoAnswer(Box<DialError>),
    #[error("`{calendar}` answered with something else than a timestamp: {source}")]
    Unreadable { calendar: String, source: BadProof },
    #[error("no randomness")]
    NoRandomness,
}

/// The state of an anchor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnchorState {
    /// Calendars promised it, but no block contains it yet.
    Pending,
    /// The proof names this block; only the block's header can confirm it.
    InBlock(u64),
}

impl fmt::Display for AnchorState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnchorState::Pending => formatter.write_str("pending: no block has it yet"),
            AnchorState::InBlock(height) => write!(formatter, "in Bitcoin block {height}"),
        }
    }
}

impl AnchorState {
    pub fn of(proof: &Proof) -> AnchorState {
        proof.bitcoin_height().map_or(AnchorState::Pending, AnchorState::InBlock)
    }
}

/// The digest that is anchored: that of the checkpoint's text without signatures.
pub fn digest_of(checkpoint_text: &str) -> [u8; 32] {
    Sha256::digest(checkpoint_text.as_bytes()).into()
}

/// Submits a checkpoint to calendars. One that accepts it is enough.
pub async fn submit(
    dialer: &Dialer,
    calendars: &[String],
    checkpoint_text: &str,
) -> Result<Proof, AnchorError> {
    let digest = digest_of(checkpoint_text);
    let mut nonce = vec![0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|_| AnchorError::NoRandomness)?;
    // The nonce keeps calendars from connecting the hash with the checkpoint.
    let append = Operation::Append(nonce);
    let message = Operation::Sha256.apply(&append.apply(&digest));
    let mut found = Timestamp::default();
    let mut failure = AnchorError::NoCalendar;
    let mut has_answer = false;
    for calendar in calendars {
        let url = format!("{}/digest", calendar.trim_end_matches('/'));
        let body = Some(ServiceBody::Bytes(message.clone()));
        let call = Call { url: &url, accept: Some(MEDIA_TYPE), body, ..Call::default() };
        match dialer.call(call).await {
            Ok(answer) => match Timestamp::read(&answer, message.len()) {
                Ok(timestamp) => {
                    found.merge(timestamp);
                    has_answer = true;
                }
                Err(source) => {
                    failure = AnchorError::Unreadable { calendar: calendar.clone(), source };
                }
            },
            Err(error) => failure = AnchorError::NoAnswer(Box::new(error)),
        }
    }
    if !has_answer {
        return Err(failure);
    }
    let hashed =
        Timestamp { attestations: Vec::new(), operations: vec![(Operation::Sha256, found)] };
    let timestamp = Timestamp { attestations: Vec::new(), operations: vec![(append, hashed)] };
    Ok(Proof { digest, timestamp })
}

/// Asks the calendars of a pending proof whether a block contains it by now. Returns whether the
/// proof was extended.
///
/// Only contacts calendars that the operator named, whatever the proof says.
pub async fn upgrade(
    dialer: &Dialer,
    calendars: &[String],
    proof: &mut Proof,
) -> Result<bool, AnchorError> {
    let before = proof.clone();
    let pending: Vec<(Vec<u8>, String)> = proof
        .attestations()
        .into_iter()
        .filter_map(|(message, attestation)| match attestation {
            Attestation::Pending(uri) => Some((message, uri.clone())),
            Attestation::Bitcoin(_) | Attestation::Unknown(..) => None,
        })
        .collect();
    let is_named = |uri: &str| {
        let plain = |text: &str| text.trim_end_matches('/').to_owned();
        calendars.iter().any(|calendar| plain(calendar) == plain(uri))
    };
    for (message, uri) in pending.into_iter().filter(|(_, uri)| is_named(uri)) {
        let url = format!("{}/timestamp/{}", uri.trim_end_matches('/'), hex::encode(&message));
        let answer = match dialer.get(&url, MEDIA_TYPE).await {
            Ok(answer) => answer,
            // Not in a block yet.
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => continue,
            Err(error) => return Err(AnchorError::NoAnswer(Box::new(error))),
        };
        let more = Timestamp::read(&answer, message.len())
            .map_err(|source| AnchorError::Unreadable { calendar: uri, source })?;
        let digest = proof.digest;
        if let Some(place) = proof.timestamp.at_mut(&digest, &message) {
            place.merge(more);
        }
    }
    Ok(*proof != before)
}

/// Whether the proof shows that a block's header commits to a checkpoint's text.
pub fn is_in_block(proof: &Proof, checkpoint_text: &str, header: &BlockHeader) -> bool {
    proof.digest == digest_of(checkpoint_text)
        && proof.attestations().iter().any(|(message, attestation)| {
            matches!(attestation, Attestation::Bitcoin(_)) && *message == header.merkle_root
        })
}
