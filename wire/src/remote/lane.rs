//! Which messages wait for each other, and how many of each kind may be in flight.

use super::Outbound;
use super::limits::{MAX_NOTIFICATIONS, MAX_REQUESTS, MAX_RESPONSES};
use super::link::is_initialize;

/// A class of messages that do not wait for other classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    Requests,
    Responses,
    Notifications,
}

impl Lane {
    pub(super) fn of(message: &Outbound) -> Lane {
        match (&message.id, &message.method) {
            (Some(_), _) => Lane::Requests,
            (None, Some(_)) => Lane::Notifications,
            (None, None) => Lane::Responses,
        }
    }

    pub(super) fn limit(self) -> usize {
        match self {
            Lane::Requests => MAX_REQUESTS,
            Lane::Responses => MAX_RESPONSES,
            Lane::Notifications => MAX_NOTIFICATIONS,
        }
    }
}

/// Whether all later messages must wait until the server has accepted this one.
pub(super) fn holds_others_back(message: &Outbound) -> bool {
    is_initialize(message) || is_announcement(message)
}

/// Whether a message announces that the session is ready, after which the server's stream may be
/// opened.
pub(super) fn is_announcement(message: &Outbound) -> bool {
    message.id.is_none() && message.method.as_deref() == Some("notifications/initialized")
}
