//! Shared by the measurements: realistic and hostile surfaces, a server and a client with
//! negligible cost, and comparable timings.

pub mod callers;
pub mod calls;
pub mod cores;
pub mod doors;
pub mod figures;
pub mod hostile;
pub mod judging;
pub mod likeness;
pub mod peer;
pub mod process;
pub mod programs;
pub mod samples;
pub mod server;
pub mod sessions;
pub mod standard;
pub mod timing;
