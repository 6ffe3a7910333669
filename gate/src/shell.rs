//! Words of commands for a person to type, quoted for a POSIX shell.

use std::path::Path;

/// Quotes a word if the shell would otherwise interpret it.
pub fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Quotes a path if the shell would otherwise interpret it.
pub fn path(path: &Path) -> String {
    word(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_command_is_one_word() {
        for (text, expected) in [
            ("/home/ada/.holdpoint", "/home/ada/.holdpoint"),
            ("/home/ada lovelace/x", "'/home/ada lovelace/x'"),
            ("/a'; rm b", r"'/a'\''; rm b'"),
            ("", "''"),
        ] {
            assert_eq!(path(Path::new(text)), expected);
        }
    }
}
