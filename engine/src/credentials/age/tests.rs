//! Files written by `age` 1.1.1, damaged in every way, and files written by this machine's `age`.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::Write;
use std::process::{Command, Stdio};

const KEY: &str = "# created: 2026-11-18T01:26:51Z\n# public key: age15lgekqjxjpn53an5cr60yk2xsd3jsuvq58gq8ev6g2rfvqf7zvyqqtvlw8\nAGE-SECRET-KEY-1YY2VZHYQ5KD785J6PC9JD0KU6NH5AZJNN8NEPC5JNS0P8ZQRFJFQ52QYLL\n";
const SMALL: &str = "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBTTHlJVmgzbGZ0MGd2YjQ0S3NoZXYzTU9PTFVBQ2QvZTdEa0NmNmR0MDFBCksxelFQY2w5ZGpva0xYSkdiOTdRYXZNbkw3OTlhZ01yRjVZTkJPY2dhN00KLS0tIE5SbWhvNzZETExqWGF5Zm5lcE1tM09vdVdRalh1MDZMLy8ydWREaldNV00KPINuaw4IIAeIaNAgRBQuUPidT5mnBpId0V1X9R9Pfx3JvdTXneRyb64RJCcYuWbkN8WCOS3O95d69uiVdJ6e1z5K0/Heo08mR9Y=";
const ARMORED: &str = "-----BEGIN AGE ENCRYPTED FILE-----
YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSAwYitlWE5pOElkZ0E5THNF
TDErRk9lOHVjMzlFOXhhOXR0RXc4ZXJNSEcwCjJoSitBWlhKRjFuOGhSKzB4Q3cz
UktxdEppOERiWDB4TDJWRnZZU1NUWTAKLS0tIDh3RVhOaTlIM2l2WCswMDlIN1Jn
WjZkNFZtYTBadnZxcHpNWVIxYzFVeU0K8YH6hIWvCYtpGgWGbhiMPthNLZ4UfYv2
9F0g8ww84DDey6N2S02OMx3IKPdwyWqvkPGLBrLDMg==
-----END AGE ENCRYPTED FILE-----
";

fn small() -> Vec<u8> {
    STANDARD.decode(SMALL).unwrap()
}

#[test]
fn a_file_that_age_wrote_is_read_as_a_whole_or_by_name() {
    let text = |name| read(&small(), KEY, name).map(|text| text.to_string());
    assert_eq!(text(None).as_deref(), Ok("ISSUES=canary-of-age-1\nOTHER = two words"));
    assert_eq!(text(Some("ISSUES")).as_deref(), Ok("canary-of-age-1"));
    assert_eq!(text(Some("OTHER")).as_deref(), Ok("two words"));
    assert_eq!(text(Some("ISSUE")), Err(AgeError::NoSuchName));
    let armored = read(ARMORED.as_bytes(), KEY, Some("ISSUES")).unwrap();
    assert_eq!(armored.as_str(), "canary-of-age-1");
}

#[test]
fn every_changed_or_missing_byte_is_noticed() {
    let file = small();
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1;
        assert!(read(&changed, KEY, None).is_err(), "changed at {at}");
        assert!(read(&file[..at], KEY, None).is_err(), "cut at {at}");
    }
    let longer = [file.as_slice(), b"x"].concat();
    assert_eq!(read(&longer, KEY, None), Err(AgeError::Damaged));
    assert_eq!(read(&vec![b'x'; MAX_AGE_BYTES + 1], KEY, None), Err(AgeError::TooLarge));
}

#[test]
fn an_identity_is_complete_and_the_right_one() {
    let key = KEY.lines().last().unwrap();
    for wrong in [
        "",
        "# only a comment",
        &key[..key.len() - 1],
        &key.to_lowercase(),
        &key.replace("QYLL", "QYLQ"),
    ] {
        assert_eq!(read(&small(), wrong, None), Err(AgeError::BadIdentity), "{wrong}");
    }
    // One matching identity out of several is enough; if none matches, nothing is revealed.
    let other = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
    assert_eq!(read(&small(), other, None), Err(AgeError::OtherRecipient));
    assert!(read(&small(), &format!("{other}\n{KEY}"), None).is_ok());
}

fn run(command: &mut Command, input: &[u8]) -> Option<Vec<u8>> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    child.stdin.take().unwrap().write_all(input).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success());
    Some(done.stdout)
}

/// Sizes around a chunk, several recipients, and armor, using the program itself.
#[test]
fn files_of_the_age_of_this_machine_are_read() {
    let (Some(ours), Some(other)) =
        (run(&mut Command::new("age-keygen"), b""), run(&mut Command::new("age-keygen"), b""))
    else {
        return testing::not_run("there is no age: ./scripts/install-test-tools");
    };
    let [ours, other] = [ours, other].map(|key| String::from_utf8(key).unwrap());
    let recipient = |key: &str| {
        let line = key.lines().find_map(|line| line.strip_prefix("# public key: "));
        line.unwrap().to_owned()
    };
    for size in [0, 1, 65_535, 65_536, 65_537, 100_000] {
        let content = "x".repeat(size);
        let mut age = Command::new("age");
        age.args(["-r", &recipient(&other), "-r", &recipient(&ours)]);
        let file = run(&mut age, content.as_bytes()).unwrap();
        assert_eq!(*read(&file, &ours, None).unwrap(), content, "{size}");
        if size < 60_000 {
            let armored = run(age.arg("-a"), content.as_bytes()).unwrap();
            assert_eq!(*read(&armored, &ours, None).unwrap(), content, "{size}");
        }
        let mut only_other = Command::new("age");
        let file = run(only_other.args(["-r", &recipient(&other)]), content.as_bytes()).unwrap();
        assert_eq!(read(&file, &ours, None), Err(AgeError::OtherRecipient));
    }
}
