//! What another process has of the machine; nothing where the system does not tell.

/// The memory that it has now.
pub fn resident_bytes(process_id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process_id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Its open files, pipes and the like.
pub fn descriptors(process_id: u32) -> Option<usize> {
    Some(std::fs::read_dir(format!("/proc/{process_id}/fd")).ok()?.flatten().count())
}
