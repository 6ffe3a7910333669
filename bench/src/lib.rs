//! What the measurements share: surfaces that look like real ones, hostile ones, and times that can be compared.

pub mod calls;
pub mod figures;
pub mod hostile;
pub mod likeness;
pub mod timing;
