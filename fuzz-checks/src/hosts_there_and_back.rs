//! The properties of wiring and unwiring any text that is parsed as a host's file.

use hosts::rewrite::{self, Manner, TextError};
use hosts::{Choice, Syntax, table};

pub(crate) fn check(syntax: Syntax, ids: &[&str], text: &str) {
    for id in ids {
        let host = table::host(id).expect("the host is in the table");
        let manner = Manner {
            host,
            syntax,
            apart: None,
            program: "/bin/holdpoint",
            home: None,
            own_home: None,
            sandbox: None,
            taken: None,
        };
        for is_open in [false, true] {
            there_and_back(text, &manner, &Choice { is_open, ..Choice::default() });
        }
    }
}

fn there_and_back(text: &str, manner: &Manner<'_>, choice: &Choice) {
    let Ok(before) = rewrite::servers(text, manner) else {
        assert!(rewrite::wire(text, manner, choice).is_err());
        return;
    };
    let wired = match rewrite::wire(text, manner, choice) {
        Ok(wired) => wired,
        // Refused: nothing was changed, and nothing is broken.
        Err(TextError::Unsafe) => return,
        Err(error) => panic!("what can be read can be wired: {error}"),
    };
    if wired.changed.is_empty() {
        assert_eq!(wired.text, text);
        return;
    }
    let again = rewrite::wire(&wired.text, manner, choice).expect("what we wrote can be read");
    assert_eq!(again.text, wired.text);
    match rewrite::unwire(&wired.text, manner, choice, Some(&wired.wirings)) {
        // Entries that a person had already guarded are unwired too.
        Ok(back) if back.changed.len() == wired.changed.len() => assert_eq!(back.text, text),
        Ok(back) => assert!(back.changed.len() > wired.changed.len()),
        Err(error) => panic!("there is a way back: {error}"),
    }
    let after = rewrite::servers(&wired.text, manner).expect("what we wrote can be read");
    assert_eq!(before.len(), after.len());
}
