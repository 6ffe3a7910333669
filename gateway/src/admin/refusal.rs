//! Why a request to the admin API was refused: a status, a reason code for programs, a sentence for
//! people.

use crate::recheck::NoLook;
use crate::reply::{self, Reply};
use bytes::Bytes;
use engine::acts::ActError;
use engine::server::LookError;
use gate::server::ServerId;
use http::StatusCode;
use serde_json::{Value, json};
use store::{ObservationError, StoreError};

#[derive(Debug, thiserror::Error)]
pub(super) enum AdminError {
    #[error("this request has no valid identity for the admin API")]
    Unidentified(StatusCode),
    #[error("no policy permits this to you")]
    Denied { reason: &'static str, server: Option<ServerId> },
    #[error("{0}")]
    Input(String),
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the body took too long to arrive")]
    Slow,
    #[error("there is no such path")]
    NoSuchPath,
    #[error("this path has no such method")]
    NoSuchMethod,
    #[error("no server `{0}` is configured")]
    UnknownServer(String),
    #[error("{0}")]
    Conflict(String),
    #[error(transparent)]
    Act(#[from] ActError),
    #[error(transparent)]
    Look(#[from] LookError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Observation(#[from] ObservationError),
    #[error("the receipts cannot be read: {0}")]
    Ledger(#[from] std::io::Error),
    #[error("the server could not be started or reached: {0}")]
    Unreached(String),
    #[error("another node refused it")]
    Elsewhere { status: StatusCode, document: Value },
    #[error("the request failed inside the gateway")]
    Internal,
}

impl From<NoLook> for AdminError {
    fn from(error: NoLook) -> AdminError {
        match error {
            NoLook::Unreached(why) => AdminError::Unreached(why),
            NoLook::Look(error) => AdminError::Look(error),
            NoLook::Internal => AdminError::Internal,
        }
    }
}

impl AdminError {
    pub(super) fn status(&self) -> StatusCode {
        self.verdict().0
    }

    pub(super) fn document(&self) -> Value {
        if let AdminError::Elsewhere { document, .. } = self {
            return document.clone();
        }
        json!({"error": {"reason": self.verdict().1, "message": self.to_string()}})
    }

    pub(super) fn reply(&self) -> Reply {
        reply::json(self.status(), [Bytes::from(self.document().to_string())])
    }

    fn verdict(&self) -> (StatusCode, &'static str) {
        match self {
            AdminError::Unidentified(status) => (*status, "unauthenticated"),
            AdminError::Denied { reason, .. } => (StatusCode::FORBIDDEN, reason),
            AdminError::Input(_) => (StatusCode::BAD_REQUEST, "bad_request"),
            AdminError::TooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large"),
            AdminError::Slow => (StatusCode::REQUEST_TIMEOUT, "timeout"),
            AdminError::NoSuchPath => (StatusCode::NOT_FOUND, "not_found"),
            AdminError::NoSuchMethod => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            AdminError::UnknownServer(_) => (StatusCode::NOT_FOUND, "unknown_server"),
            AdminError::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
            AdminError::Act(error) => of_act(error),
            AdminError::Look(error) => of_look(error),
            AdminError::Store(error) => of_store(error),
            AdminError::Observation(_) => (StatusCode::CONFLICT, "surface_unreadable"),
            AdminError::Unreached(_) => (StatusCode::BAD_GATEWAY, "upstream_unreachable"),
            AdminError::Ledger(_) => (StatusCode::SERVICE_UNAVAILABLE, "ledger_unavailable"),
            AdminError::Elsewhere { status, .. } => (*status, "conflict"),
            AdminError::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }
}

fn of_act(error: &ActError) -> (StatusCode, &'static str) {
    let conflict = StatusCode::CONFLICT;
    match error {
        ActError::UnknownServer { .. } => (StatusCode::NOT_FOUND, "unknown_server"),
        ActError::UnknownEntry { .. }
        | ActError::AmbiguousEntry { .. }
        | ActError::DoesNotWait { .. }
        | ActError::OtherHash { .. } => (conflict, "other_hash"),
        ActError::NothingWaits { .. } => (conflict, "nothing_waits"),
        ActError::NotAllowed { .. } => (conflict, "not_in_this_status"),
        ActError::PartOfFirst { .. } => (conflict, "part_of_first_approval"),
        ActError::UnreadableSurface { .. } | ActError::UnreadableList { .. } => {
            (conflict, "surface_unreadable")
        }
        ActError::DamagedPins { .. } => (conflict, "baseline_lost"),
        ActError::Unpinned { .. } | ActError::OnlyPin { .. } => (conflict, "conflict"),
        // Only a person may stop less than is stopped now.
        ActError::NeedsConsent => (StatusCode::FORBIDDEN, "forbidden"),
        ActError::Nameless(_) | ActError::NotAServerId(_) | ActError::NoReason => {
            (StatusCode::BAD_REQUEST, "bad_request")
        }
        ActError::NotQuarantined(_) => (StatusCode::NOT_FOUND, "not_quarantined"),
        ActError::Receipts(_) => (StatusCode::SERVICE_UNAVAILABLE, "ledger_unavailable"),
        ActError::Store(error) => of_store(error),
        ActError::Observation(_) => (conflict, "surface_unreadable"),
    }
}

fn of_look(error: &LookError) -> (StatusCode, &'static str) {
    match error {
        LookError::Unreadable => (StatusCode::BAD_GATEWAY, "upstream_unreadable"),
        LookError::Quarantined => (StatusCode::CONFLICT, "server_quarantined"),
        LookError::Store(error) => of_store(error),
    }
}

fn of_store(error: &StoreError) -> (StatusCode, &'static str) {
    match error {
        StoreError::Changed { .. } => (StatusCode::CONFLICT, "changed_meanwhile"),
        StoreError::OverLimit { .. } | StoreError::Nameless => {
            (StatusCode::BAD_REQUEST, "bad_request")
        }
        _ => (StatusCode::SERVICE_UNAVAILABLE, "internal"),
    }
}
