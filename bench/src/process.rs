//! The resources of another process; `None` if the system does not report them.

use std::time::Duration;

/// The memory of a process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The current resident memory: its own and that of files.
    pub resident: u64,
    /// Anonymous memory.
    pub own: u64,
    /// Mapped files, mainly its program and libraries. Other processes may share them.
    pub files: u64,
    /// The peak of the resident memory.
    pub peak: u64,
}

impl Memory {
    pub fn of(process_id: u32) -> Option<Memory> {
        let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
        Memory::read(&status)
    }

    fn read(status: &str) -> Option<Memory> {
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kilobytes * 1024)
        };
        Some(Memory {
            resident: bytes("VmRSS:")?,
            own: bytes("RssAnon:")?,
            files: bytes("RssFile:")?,
            peak: bytes("VmHWM:")?,
        })
    }
}

/// Pins this process and its future children to one core, and restores the previous cores on drop.
#[derive(Debug)]
pub struct Cores {
    #[cfg(target_os = "linux")]
    before: rustix::thread::CpuSet,
}

#[cfg(target_os = "linux")]
impl Cores {
    /// Pins to one core, a different one for each turn.
    pub fn only_one(turn: usize) -> std::io::Result<Cores> {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let before = sched_getaffinity(None)?;
        let count = usize::try_from(before.count()).unwrap_or(1).max(1);
        let all = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core));
        let mut one = CpuSet::new();
        for core in all.skip(turn % count).take(1) {
            one.set(core);
        }
        sched_setaffinity(None, &one)?;
        Ok(Cores { before })
    }
}

#[cfg(target_os = "linux")]
impl Drop for Cores {
    fn drop(&mut self) {
        let _ = rustix::thread::sched_setaffinity(None, &self.before);
    }
}

#[cfg(not(target_os = "linux"))]
impl Cores {
    /// If cores cannot be selected, all of them are used.
    pub fn only_one(_: usize) -> std::io::Result<Cores> {
        Ok(Cores {})
    }
}

/// The processor time used so far by the current threads of a process.
pub fn processor_time(process_id: u32) -> Option<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{process_id}/task")).ok()?;
    let worked = threads.flatten().filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(worked.sum()))
}

/// The number of open file descriptors.
pub fn descriptors(process_id: u32) -> Option<usize> {
    Some(std::fs::read_dir(format!("/proc/{process_id}/fd")).ok()?.flatten().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_systems_words() {
        let status = "Name:\tx\nVmHWM:\t   13 kB\nVmRSS:\t      12 kB\nRssAnon:\t       5 kB\nRssFile:\t       7 kB\n";
        let memory = Memory { resident: 12_288, own: 5_120, files: 7_168, peak: 13_312 };
        assert_eq!(Memory::read(status), Some(memory));
        assert_eq!(Memory::read("Name:\tx\nVmRSS:\t12 MB\n"), None);
    }
}
