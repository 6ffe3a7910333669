//! Who may use what, as the path asks for it. The gateway's policies are behind it; `run` has none.

use crate::call::Call;
use crate::principal::Principal;
use contract::surface::ListKind;
use gate::server::ServerId;
use gate::view::{ListView, Visible};
use std::sync::Arc;

/// What the policies say of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Authorization {
    Permit {
        /// The policy that permits it.
        policy: Option<Arc<str>>,
    },
    /// A member of one of these groups has to approve this very call.
    NeedsApproval { policy: Option<Arc<str>>, groups: Vec<String> },
    Deny {
        why: Unauthorized,
        policy: Option<Arc<str>>,
        /// Whether no call of this principal to this target could be permitted. Such a target is answered like one that
        /// does not exist.
        is_hidden: bool,
    },
}

/// Why a request is not permitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unauthorized {
    NoPolicyMatch,
    Forbidden,
    /// A policy could not be evaluated. It may have been one that forbids.
    PolicyError,
}

/// Decides who may use what.
pub trait Authorizer: Send + Sync + std::fmt::Debug {
    fn authorize(&self, principal: &Principal, server: &ServerId, call: &Call<'_>)
    -> Authorization;

    /// What of a list the principal may see: the entries that some call of it could be permitted for.
    fn visible(
        &self,
        principal: &Principal,
        server: &ServerId,
        kind: ListKind,
        list: &ListView,
    ) -> Arc<Visible>;
}
