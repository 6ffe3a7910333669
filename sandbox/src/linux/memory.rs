//! The total memory of the processes in this namespace, used if no control group limits it.

use std::fs;

/// The private memory of the processes in bytes: resident and not shared. Zero if it cannot be
/// read.
pub(super) fn in_use() -> u64 {
    let Ok(processes) = fs::read_dir("/proc") else { return 0 };
    let mut pages = 0_u64;
    for process in processes.flatten() {
        let name = process.file_name();
        if !name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let Ok(text) = fs::read_to_string(process.path().join("statm")) else { continue };
        let mut numbers = text.split(' ').skip(1).map(|word| word.parse::<u64>().unwrap_or(0));
        let (resident, shared) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        pages = pages.saturating_add(resident.saturating_sub(shared));
    }
    let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    pages.saturating_mul(page_bytes)
}
