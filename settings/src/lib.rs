//! The configuration as typed values, read from a TOML file in which every key is optional and
//! unknown keys are refused with a suggestion. The file names secrets and never contains them.
//!
//! This crate only reads files. The users of the values decide what they mean for a gate, a store
//! or a collector.
#![forbid(unsafe_code)]

mod configuration;
pub mod directory;
mod error;
pub mod gateway;
mod keys;
pub mod network;
mod sandbox;
mod secret;
mod value;

pub use crate::sandbox::{ConfinedPath, Sandbox};
pub use configuration::{Configuration, MAX_CONFIGURATION_BYTES};
pub use error::ConfigurationError;
pub use keys::{
    Admission, Anomaly, Approve, ArgsHash, DriftScope, Export, FirstUsePolicy, Fsync, Guard, Keys,
    Limits, NewTools, OnFull, Origin, OriginDetail, ParameterText, Preflight, RatePer, Receipts,
    Relist, Shield, UnknownFields,
};
pub use network::{JudgeApi, JudgeKeys, Network, Veto};
pub use secret::{MAX_SECRET_BYTES, SecretError, SecretName};
pub use value::{Amounts, Count, Parsed, Text, Whole};
