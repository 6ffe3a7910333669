//! Starting a server confined. The crate that builds the launch decides how to confine it; a launch
//! carries the confinement, so that no way of starting a server can leave it out.

use crate::process::Environment;
use crate::upstream::StdioLaunch;
use std::any::Any;
use std::io;
use std::process::Command;

/// Watches over a confined server. Dropping it ends the server and everything that it started.
pub type Guard = Box<dyn Any + Send + Sync>;

/// The confinement of a launch.
pub trait Confinement: std::fmt::Debug + Send + Sync {
    /// Builds the command that starts this launch confined. May block for long, if a package must
    /// be installed first.
    fn confine(&self, launch: &StdioLaunch, environment: Environment) -> io::Result<ConfinedStart>;
}

/// How a confined server is started.
pub struct ConfinedStart {
    /// The command; it must be spawned only once.
    pub command: Command,
    pub guard: Guard,
}

impl std::fmt::Debug for ConfinedStart {
    /// Words of the command may be secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ConfinedStart").finish_non_exhaustive()
    }
}
