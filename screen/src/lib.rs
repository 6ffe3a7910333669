//! The screen: reads a contract adversarially and says what was found, how severe it is, and how strong the evidence is.
//!
//! It advises and never decides on a call: a [`state::Directive`] is not a verdict of the gate, and nothing converts one
//! into the other. Pure: no file, clock, network or randomness; moments come in as arguments.
//!
//! ```compile_fail
//! let verdict: gate::verdict::Verdict = screen::state::Directive::Allow.into();
//! ```
#![forbid(unsafe_code)]

mod word;

pub mod dimension;
pub mod finding;
pub mod grade;
pub mod limits;
pub mod quality;
pub mod reading;
pub mod state;
pub mod verdict;
