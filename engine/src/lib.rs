//! What runs beside a call, shared by every surface. Today that is live export.
#![forbid(unsafe_code)]

pub mod export;
