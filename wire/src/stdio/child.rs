//! A child process with everything it starts: one process group, ended as a whole.
//!
//! The group is signalled only while its leader has not been collected, so that its number cannot have come to mean
//! another group. Where there are no process groups (Windows) the child itself is ended, and what it started is not.

use std::process::ExitStatus;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// The leader of its own process group.
#[derive(Debug)]
pub(super) struct GroupedChild {
    child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

type Pipes = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);

impl GroupedChild {
    pub(super) fn take_pipes(&mut self) -> Pipes {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }
}

#[cfg(unix)]
mod group {
    use super::*;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
    use std::time::Duration;

    /// How often it is looked whether the leader has ended.
    const LOOK: Duration = Duration::from_millis(5);

    impl GroupedChild {
        pub(crate) fn spawn(mut command: Command) -> std::io::Result<GroupedChild> {
            let child = command.process_group(0).kill_on_drop(true).spawn()?;
            let number = child.id().and_then(|id| i32::try_from(id).ok());
            Ok(GroupedChild { child, group: number.and_then(Pid::from_raw) })
        }

        /// Waits until the leader has ended, and leaves it to be collected.
        pub(crate) async fn exited(&mut self) {
            let Some(leader) = self.group else { return };
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            while let Ok(None) = waitid(WaitId::Pid(leader), options) {
                tokio::time::sleep(LOOK).await;
            }
        }

        pub(crate) fn terminate(&mut self) {
            self.signal(Signal::TERM);
        }

        pub(crate) fn kill(&mut self) {
            self.signal(Signal::KILL);
        }

        fn signal(&self, signal: Signal) {
            if let Some(group) = self.group {
                // The only failure is that nobody is left in it, which is what is wanted.
                let _ = kill_process_group(group, signal);
            }
        }

        /// Collects the leader, after which the group is not touched any more.
        pub(crate) async fn collect(&mut self) -> Option<ExitStatus> {
            let status = self.child.wait().await.ok();
            self.group = None;
            status
        }
    }

    impl Drop for GroupedChild {
        fn drop(&mut self) {
            // The leader alone would be killed by the runtime, and what it started would stay.
            self.signal(Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
mod single {
    use super::*;

    impl GroupedChild {
        pub(crate) fn spawn(mut command: Command) -> std::io::Result<GroupedChild> {
            Ok(GroupedChild { child: command.kill_on_drop(true).spawn()? })
        }

        pub(crate) async fn exited(&mut self) {
            let _ = self.child.wait().await;
        }

        /// There is no milder way here.
        pub(crate) fn terminate(&mut self) {
            self.kill();
        }

        pub(crate) fn kill(&mut self) {
            let _ = self.child.start_kill();
        }

        pub(crate) async fn collect(&mut self) -> Option<ExitStatus> {
            self.child.wait().await.ok()
        }
    }
}
