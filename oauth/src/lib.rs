//! The OAuth client for MCP servers that require a sign-in.
//!
//! The protocol modules do no I/O and take the time and random bytes as arguments: [`challenge`],
//! [`metadata`], [`locations`], [`registration`], [`authorization`], [`token`]. [`client`] carries
//! out their requests over `wire`, under the same address rules as calls. Nothing here opens a
//! browser or stores a token: the caller does.
//!
//! INVARIANT: errors and `Debug` output contain no secrets, and an address that a server names is
//! checked before it is used.

pub mod authorization;
pub mod challenge;
pub mod client;
pub mod dpop;
mod error;
pub mod locations;
pub mod metadata;
mod presented;
mod reading;
pub mod registration;
mod secret;
pub mod token;

pub use authorization::{Begin, Begun, Code, Pending, begin};
pub use challenge::Challenge;
pub use client::{Client, Discovery, Reaching};
pub use dpop::DpopKey;
pub use error::SignInError;
pub use metadata::{ResourceMetadata, ServerMetadata};
pub use registration::{ApplicationType, ClientAuth, RegisteredClient, Registration};
pub use secret::Secret;
pub use token::Grant;
