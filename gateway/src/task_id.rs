//! The task ids that callers use: sealed, so that they contain where the task is and which call
//! created it, and other callers cannot use them.

use crate::greeting::Era;
use crate::sealed::{Purpose, Sealer};
use crate::sessions::PrincipalId;
use contract::time::Timestamp;
use gate::server::ServerId;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long an id is valid. A server may forget its task sooner, and reports that itself.
const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The most bytes of arguments in an id, so that it fits into a header. A call with larger
/// arguments cannot create a task.
pub(crate) const MAX_TASK_ARGUMENTS_BYTES: usize = 2_048;
/// The longest id that a server may give a task.
const MAX_OWN_ID_BYTES: usize = 512;

/// A task, and the call that created it: each request about the task is authorized like that call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskTicket {
    pub(crate) server: ServerId,
    pub(crate) era: Era,
    /// The server's own name for the tool.
    pub(crate) tool: String,
    pub(crate) arguments: Option<Vec<u8>>,
    /// The capabilities offered to the server with the call, as JSON: they determine which of the
    /// caller's links was used.
    pub(crate) capabilities: Vec<u8>,
    /// The server's own id for the task.
    pub(crate) task: String,
}

impl TaskTicket {
    /// The id for the caller. Returns `None` if the server's own id is too long.
    pub(crate) fn seal(&self, sealer: &Sealer, principal: &PrincipalId) -> Option<String> {
        self.seal_at(sealer, principal, now())
    }

    fn seal_at(&self, sealer: &Sealer, principal: &PrincipalId, now: u64) -> Option<String> {
        if self.task.is_empty() || self.task.len() > MAX_OWN_ID_BYTES {
            return None;
        }
        let mut content = (now + LIFETIME.as_secs()).to_be_bytes().to_vec();
        content.extend_from_slice(principal);
        content.push(match self.era {
            Era::Sessions => 0,
            Era::Stateless => 1,
        });
        content.push(self.arguments.is_some().into());
        let arguments = self.arguments.as_deref().unwrap_or_default();
        let parts: [&[u8]; 5] = [
            self.server.as_str().as_bytes(),
            self.tool.as_bytes(),
            &self.capabilities,
            self.task.as_bytes(),
            arguments,
        ];
        for part in parts {
            content.extend_from_slice(&u32::try_from(part.len()).ok()?.to_be_bytes());
            content.extend_from_slice(part);
        }
        sealer.seal(Purpose::Task, &content).ok()
    }

    /// The content of an id; `None` if it was not created here for this caller, has expired, or is
    /// older than the caller's revocation.
    pub(crate) fn open(
        sealer: &Sealer,
        principal: &PrincipalId,
        id: &str,
        revoked: Option<Timestamp>,
    ) -> Option<TaskTicket> {
        let revoked = revoked.map_or(0, |at| u64::try_from(at.0 / 1_000).unwrap_or(0));
        TaskTicket::open_at(sealer, principal, id, (now(), revoked))
    }

    fn open_at(
        sealer: &Sealer,
        principal: &PrincipalId,
        id: &str,
        (now, revoked): (u64, u64),
    ) -> Option<TaskTicket> {
        let content = sealer.open(Purpose::Task, id)?;
        let (expires, rest) = content.split_first_chunk::<8>()?;
        let (owner, rest) = rest.split_at_checked(32)?;
        let ([era, has_arguments], mut rest) = rest.split_first_chunk::<2>()?;
        let expires = u64::from_be_bytes(*expires);
        let is_revoked = expires.saturating_sub(LIFETIME.as_secs()) <= revoked;
        if owner != principal || expires <= now || is_revoked {
            return None;
        }
        let era = match era {
            0 => Era::Sessions,
            1 => Era::Stateless,
            _ => return None,
        };
        let mut text = || String::from_utf8(take_part(&mut rest)?.to_vec()).ok();
        let (server, tool, capabilities, task) = (text()?, text()?, text()?, text()?);
        let arguments = take_part(&mut rest)?.to_vec();
        Some(TaskTicket {
            server: server.parse().ok()?,
            era,
            tool,
            arguments: (*has_arguments == 1).then_some(arguments),
            capabilities: capabilities.into_bytes(),
            task,
        })
    }
}

fn take_part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, behind) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (part, behind) = behind.split_at_checked(length)?;
    *rest = behind;
    Some(part)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(arguments: Option<&str>) -> TaskTicket {
        TaskTicket {
            server: "files".parse().unwrap(),
            era: Era::Stateless,
            tool: "index".to_owned(),
            arguments: arguments.map(|text| text.as_bytes().to_vec()),
            capabilities: b"{}".to_vec(),
            task: "786512e2".to_owned(),
        }
    }

    #[test]
    fn an_id_counts_for_its_caller_until_it_expires() {
        let (sealer, other) = (Sealer::of(&[5; 32]).unwrap(), Sealer::of(&[6; 32]).unwrap());
        let (ada, eve) = ([1; 32], [2; 32]);
        for arguments in [None, Some("{}"), Some(r#"{"path":"/é"}"#)] {
            let made = ticket(arguments);
            let id = made.seal_at(&sealer, &ada, 1_000).unwrap();
            let open = |sealer, caller, now| TaskTicket::open_at(sealer, caller, &id, (now, 0));
            let revoked = |at| TaskTicket::open_at(&sealer, &ada, &id, (1_000, at));
            assert!(revoked(999).is_some() && revoked(1_000).is_none());
            let last = 1_000 + LIFETIME.as_secs() - 1;
            assert_eq!(open(&sealer, &ada, 1_000).as_ref(), Some(&made));
            assert_eq!(open(&sealer, &ada, last).as_ref(), Some(&made));
            assert_eq!(open(&sealer, &ada, last + 1), None, "expired");
            assert_eq!(open(&sealer, &eve, 1_000), None, "of another caller");
            assert_eq!(open(&other, &ada, 1_000), None, "of another gateway");
        }
        assert_eq!(TaskTicket::open_at(&sealer, &ada, "786512e2", (1_000, 0)), None);
        let session = sealer.seal(Purpose::Session, b"x").unwrap();
        assert_eq!(TaskTicket::open_at(&sealer, &ada, &session, (1_000, 0)), None);
    }

    #[test]
    fn the_id_of_a_server_is_taken_up_to_its_limit_and_fits_into_a_header() {
        let sealer = Sealer::of(&[5; 32]).unwrap();
        let with = |bytes: usize| TaskTicket { task: "x".repeat(bytes), ..ticket(None) };
        assert!(with(MAX_OWN_ID_BYTES).seal(&sealer, &[1; 32]).is_some());
        assert!(with(MAX_OWN_ID_BYTES + 1).seal(&sealer, &[1; 32]).is_none());
        assert!(with(0).seal(&sealer, &[1; 32]).is_none());
        let arguments = Some(vec![b'x'; MAX_TASK_ARGUMENTS_BYTES]);
        let largest = TaskTicket { arguments, ..with(MAX_OWN_ID_BYTES) };
        assert!(largest.seal(&sealer, &[1; 32]).unwrap().len() < 4_096);
    }
}
