//! The checks, one per file. To add a check, add a file and its place in [`super::Path`].

mod admission;
mod allowlist;
mod anomaly;
mod approval;
mod arguments;
mod authorization;
mod drift;
mod incident;
mod inventory;
mod mirror;
mod preflight;
mod rate;

pub(super) use admission::AdmissionCheck;
pub(super) use allowlist::AllowlistCheck;
pub(super) use anomaly::AnomalyCheck;
pub(super) use approval::ApprovalCheck;
pub(super) use arguments::ArgumentCheck;
pub use arguments::{ArgumentRules, PathArguments, UrlArguments};
pub(super) use authorization::AuthorizationCheck;
pub(super) use drift::DriftCheck;
pub(super) use incident::IncidentCheck;
pub(super) use inventory::InventoryCheck;
pub(super) use mirror::MirrorCheck;
pub(super) use preflight::PreflightCheck;
pub use preflight::PreflightLimits;
pub(super) use rate::RateCheck;
pub use rate::{rate_time, unix_seconds};
