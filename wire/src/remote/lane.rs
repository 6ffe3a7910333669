//! Which messages keep each other waiting, and how many of a kind go at once.

use super::Outbound;
use super::limits::{MAX_NOTIFICATIONS, MAX_REQUESTS, MAX_RESPONSES};
use super::link::is_initialize;

/// Messages that do not keep each other waiting.
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

/// Whether everything behind this message has to wait until the server has taken it.
pub(super) fn holds_others_back(message: &Outbound) -> bool {
    is_initialize(message) || is_announcement(message)
}

/// Whether it says that the session is ready, after which the server may be listened to.
pub(super) fn is_announcement(message: &Outbound) -> bool {
    message.id.is_none() && message.method.as_deref() == Some("notifications/initialized")
}
