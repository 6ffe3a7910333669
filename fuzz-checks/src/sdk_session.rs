//! An SDK session accepts any pins, and any messages from either side: it returns actions in a form
//! that the shell can parse, and lets no call through before a list was judged.

use sdk_core::Session;
use serde_json::{Map, Value};

/// The pins, followed by a zero byte and lines that alternate between client and server.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (pins, lines) = text.split_once('\0').unwrap_or(("", text));
    let pins = (!pins.is_empty()).then_some(pins);
    let options = r#"{"server":"reports"}"#;
    let Ok(mut session) = Session::open(options, pins, "s") else { return };
    let mut has_answered = false;
    for (at, line) in lines.lines().enumerate() {
        let now = i64::try_from(at).expect("a count of lines") * 20_000;
        let said = match at % 2 {
            0 => {
                let said = session.client(1, line, now);
                let is_call = serde_json::from_str::<Map<String, Value>>(line)
                    .is_ok_and(|message| message.get("method") == Some(&"tools/call".into()));
                assert!(said.is_some() || !is_call || has_answered, "a call went before any list");
                said
            }
            _ => {
                has_answered = true;
                session.server(line, now)
            }
        };
        check(&mut session, said, now);
    }
    let said = session.tick(i64::MAX);
    check(&mut session, said, i64::MAX);
    serde_json::from_str::<Vec<Value>>(&session.waiting()).expect("a list of what waits");
}

/// The result is a list of objects with one member each. Pins are stored as requested, and can be
/// read again.
fn check(session: &mut Session, said: Option<String>, now: i64) {
    let mut said = said;
    while let Some(actions) = said.take() {
        let actions: Vec<Map<String, Value>> =
            serde_json::from_str(&actions).expect("a list of objects");
        for action in actions {
            assert_eq!(action.len(), 1);
            if action.contains_key("save") {
                let pins = session.pins(now).expect("pins to write");
                Session::open(r#"{"server":"reports"}"#, Some(pins.as_str()), "s")
                    .expect("our own pins");
                said = session.saved(now);
            }
        }
    }
}
