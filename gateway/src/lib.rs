//! The HTTP front for many callers: authentication, upstreams, several servers as one, and the admin API. Decisions are the
//! engine's.
#![forbid(unsafe_code)]

mod admin;
mod approvals;
mod asking;
mod authorizer;
mod call_slots;
mod catalog;
mod child;
mod cluster;
mod cluster_key;
mod counts;
mod frame;
mod front;
pub mod front_checks;
mod greeting;
pub mod identity;
mod inbound;
mod inventory;
mod link;
mod mcp;
mod metrics;
mod node;
mod peer;
mod pending;
pub mod policies;
mod presented;
mod recent;
mod recheck;
mod relay;
mod reload;
mod replay;
mod reply;
mod request_state;
mod resources;
mod sealed;
mod server;
mod sessions;
mod shutdown;
mod strangers;
mod task_id;
mod task_names;
mod traces;
mod unasked;
mod upkeep;
mod vouching;

pub use admin::ADMIN_PATH;
pub use front::{serve, serve_admin, serve_metrics};
pub use inventory::inventory;
pub use node::{Node, StartError};
pub use peer::serve_peers;
pub use reload::Reloaded;
pub use resources::Remark;
pub use server::ServerError;
