//! What the measurements share: surfaces that look like real ones, hostile ones, a server and a client that cost next to
//! nothing, and times that can be compared.

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
