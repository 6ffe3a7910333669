//! The transitions of a server's status. There are no others.

use crate::server::ServerStatus;

/// An event that affects a server's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// The server was seen for the first time and trusted.
    FirstUseTrusted,
    /// The server was seen for the first time and waits for a person's approval.
    FirstUseAsked,
    /// The server was judged. `is_held` says whether anything is held.
    Judged {
        is_held: bool,
    },
    /// A person approved changes. `is_held` says whether anything is still held.
    Approved {
        is_held: bool,
    },
    Quarantined,
    /// A person released it from quarantine. The result of the next judgement follows as `Judged`.
    Released {
        has_baseline: bool,
    },
}

/// A transition that the status does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error("the server is quarantined: release it first")]
    IsQuarantined,
    #[error("the server is not quarantined")]
    NotQuarantined,
    #[error("the server has a baseline already")]
    HasBaseline,
    #[error("the server has no baseline yet")]
    NoBaseline,
}

/// The status after an event.
pub fn next(status: ServerStatus, happening: Happening) -> Result<ServerStatus, NotAllowed> {
    use ServerStatus::{Changed, Pending, Quarantined, Unbaselined, Verified};
    let judged = |is_held: bool| if is_held { Changed } else { Verified };
    match (status, happening) {
        (_, Happening::Quarantined) => Ok(Quarantined),
        (Quarantined, Happening::Released { has_baseline: true }) => Ok(Verified),
        (Quarantined, Happening::Released { has_baseline: false }) => Ok(Unbaselined),
        (_, Happening::Released { .. }) => Err(NotAllowed::NotQuarantined),
        // A quarantined server stays quarantined, whatever it reports meanwhile; approving it is an
        // error.
        (Quarantined, Happening::Judged { .. }) => Ok(Quarantined),
        (Quarantined, _) => Err(NotAllowed::IsQuarantined),
        // Entries that are held on first use are held like all others.
        (Unbaselined, Happening::FirstUseTrusted) => Ok(Verified),
        (Unbaselined | Pending, Happening::FirstUseAsked) => Ok(Pending),
        (_, Happening::FirstUseTrusted | Happening::FirstUseAsked) => Err(NotAllowed::HasBaseline),
        (Unbaselined, Happening::Judged { .. }) => Err(NotAllowed::NoBaseline),
        (Pending, Happening::Judged { .. }) => Ok(Pending),
        (Verified | Changed, Happening::Judged { is_held }) => Ok(judged(is_held)),
        (Unbaselined | Pending | Verified | Changed, Happening::Approved { is_held }) => {
            Ok(judged(is_held))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ServerStatus::{Changed, Pending, Quarantined, Unbaselined, Verified};

    #[test]
    fn the_transitions_are_these_and_no_others() {
        let happenings = [
            Happening::FirstUseTrusted,
            Happening::FirstUseAsked,
            Happening::Judged { is_held: false },
            Happening::Judged { is_held: true },
            Happening::Approved { is_held: false },
            Happening::Approved { is_held: true },
            Happening::Quarantined,
            Happening::Released { has_baseline: true },
            Happening::Released { has_baseline: false },
        ];
        let table = [
            (
                Unbaselined,
                [
                    Some(Verified),
                    Some(Pending),
                    None,
                    None,
                    Some(Verified),
                    Some(Changed),
                    Some(Quarantined),
                    None,
                    None,
                ],
            ),
            (
                Verified,
                [
                    None,
                    None,
                    Some(Verified),
                    Some(Changed),
                    Some(Verified),
                    Some(Changed),
                    Some(Quarantined),
                    None,
                    None,
                ],
            ),
            (
                Changed,
                [
                    None,
                    None,
                    Some(Verified),
                    Some(Changed),
                    Some(Verified),
                    Some(Changed),
                    Some(Quarantined),
                    None,
                    None,
                ],
            ),
            (
                Pending,
                [
                    None,
                    Some(Pending),
                    Some(Pending),
                    Some(Pending),
                    Some(Verified),
                    Some(Changed),
                    Some(Quarantined),
                    None,
                    None,
                ],
            ),
            (
                Quarantined,
                [
                    None,
                    None,
                    Some(Quarantined),
                    Some(Quarantined),
                    None,
                    None,
                    Some(Quarantined),
                    Some(Verified),
                    Some(Unbaselined),
                ],
            ),
        ];
        for (status, expected) in table {
            for (happening, expected) in happenings.into_iter().zip(expected) {
                assert_eq!(next(status, happening).ok(), expected, "{status} {happening:?}");
            }
        }
        assert_eq!(
            next(Quarantined, Happening::Approved { is_held: false }),
            Err(NotAllowed::IsQuarantined)
        );
    }
}
