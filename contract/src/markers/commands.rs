//! Whether decoded bytes are a shell command. Text that merely names a program is none: a command has a program where a
//! shell looks for one, and something that only a command has behind it.

/// The most bytes that are looked at: a command shows itself early.
const MAX_BYTES: usize = 4_096;

/// Programs that do harm with arguments.
const PROGRAMS: [&str; 44] = [
    "curl",
    "wget",
    "bash",
    "sh",
    "zsh",
    "dash",
    "ksh",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "powershell",
    "pwsh",
    "cmd",
    "chmod",
    "chown",
    "rm",
    "cat",
    "dd",
    "eval",
    "exec",
    "source",
    "sudo",
    "ssh",
    "scp",
    "rsync",
    "tar",
    "base64",
    "crontab",
    "nohup",
    "mkfifo",
    "echo",
    "printenv",
    "iex",
    "certutil",
    "osascript",
    "export",
    "cp",
];
/// Programs that are a command even without an argument, behind a pipe.
const SHELLS: [&str; 7] = ["bash", "sh", "zsh", "dash", "ksh", "iex", "python3"];

/// Whether the bytes are text with a command in it.
pub(super) fn is_command(bytes: &[u8]) -> bool {
    let bytes = bytes.get(..MAX_BYTES).unwrap_or(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let is_plain = |byte: u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    if !text.bytes().all(is_plain) {
        return false;
    }
    if text.contains("/dev/tcp/") || text.starts_with("#!/") {
        return true;
    }
    let mut is_piped = false;
    let mut rest = text;
    loop {
        let end = rest.find(['|', ';', '&', '\n', '(', '`']).unwrap_or(rest.len());
        let (part, next) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if is_one(part, is_piped) {
            return true;
        }
        is_piped = next.starts_with('|');
        match next.get(1..) {
            Some(next) => rest = next,
            None => return false,
        }
    }
}

fn is_one(part: &str, is_piped: bool) -> bool {
    let mut words = part.split_ascii_whitespace();
    let Some(program) = words.next() else { return false };
    let program = program.rsplit('/').next().unwrap_or(program).to_ascii_lowercase();
    let program = program.strip_suffix(".exe").unwrap_or(&program);
    if is_piped && SHELLS.contains(&program) {
        return true;
    }
    PROGRAMS.contains(&program) && words.take(16).any(is_argument)
}

/// A word that stands behind a program and hardly ever in a sentence.
fn is_argument(word: &str) -> bool {
    let is_flag = word.len() > 1
        && word.starts_with('-')
        && word.trim_start_matches('-').starts_with(|first: char| first.is_ascii_alphanumeric());
    is_flag
        || word.contains("://")
        || word.starts_with(['/', '~', '$', '>', '<'])
        || word.starts_with("./")
        || word.starts_with("+x")
}

#[cfg(test)]
mod tests;
