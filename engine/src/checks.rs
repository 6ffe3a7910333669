//! The checks, one a file. Adding a check is adding a file, and its place in [`crate::path::Path`].

mod admission;
mod allowlist;
mod drift;
mod incident;
mod inventory;
mod mirror;
mod preflight;

pub use admission::AdmissionCheck;
pub use allowlist::AllowlistCheck;
pub use drift::DriftCheck;
pub use incident::IncidentCheck;
pub use inventory::InventoryCheck;
pub use mirror::MirrorCheck;
pub use preflight::{PreflightCheck, PreflightLimits};
