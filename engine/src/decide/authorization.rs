//! Who may use what, as seen by the path. The gateway implements this with its policies; `run` has
//! none.

use crate::call::Call;
use crate::principal::Principal;
use contract::surface::ListKind;
use gate::server::ServerId;
use gate::view::{ListView, Visible};
use std::sync::Arc;

/// The policies' decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Authorization {
    Permit {
        /// The policy that permits it.
        policy: Option<Arc<str>>,
    },
    /// A member of one of these groups must approve this exact call.
    NeedsApproval { policy: Option<Arc<str>>, groups: Vec<String> },
    Deny {
        why: Unauthorized,
        policy: Option<Arc<str>>,
        /// Whether this principal could never be permitted any call to this target. Such a target
        /// is treated as nonexistent.
        is_hidden: bool,
    },
}

/// Why a request is not permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unauthorized {
    NoPolicyMatch,
    Forbidden,
    /// A policy could not be evaluated, and it might have been a forbid.
    PolicyError,
}

/// Decides who may use what.
pub trait Authorizer: Send + Sync + std::fmt::Debug {
    fn authorize(&self, principal: &Principal, server: &ServerId, call: &Call<'_>)
    -> Authorization;

    /// What the principal may see of a list: the entries for which some call could be permitted.
    fn visible(
        &self,
        principal: &Principal,
        server: &ServerId,
        kind: ListKind,
        list: &ListView,
    ) -> Arc<Visible>;
}
