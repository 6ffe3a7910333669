//! A model's response may be any bytes. A parsed response consists of words from closed lists and a
//! rationale of limited length, and parses again to the same value; and any text of a server stays
//! a single line of JSON between the delimiters of a question.

use contract::surface::{Entry, EntryId, EntryType};
use gate::consult::{
    Answer, ChatApi, Delimiter, MAX_PROMPT_CHARACTERS, MAX_RATIONALE_CHARACTERS, Question,
};

pub fn run(bytes: &[u8]) {
    for api in ChatApi::ALL {
        if let Ok(answer) = Answer::of_chat(*api, bytes) {
            check(&answer);
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(answer) = Answer::of_text(text) {
        check(&answer);
    }
    let raw = serde_json::json!({"name": "t", "description": text, "inputSchema": {}}).to_string();
    let id = EntryId::new(EntryType::Tool, "t");
    let Ok(entry) = Entry::from_raw(id, &raw) else { return };
    let asked = Question::about_entry(&entry, &Delimiter::from_random([7; 16]));
    let asked = asked.expect("a tool is asked about");
    assert!(asked.characters() <= MAX_PROMPT_CHARACTERS);
    let lines: Vec<&str> = asked.user.lines().collect();
    assert_eq!(lines.len(), 4, "{asked:?}");
    assert_eq!(lines.get(1), lines.get(3));
    let data = lines.get(2).copied().unwrap_or_default();
    serde_json::from_str::<String>(data).expect("one JSON string");
}

fn check(answer: &Answer) {
    assert!(answer.rationale.chars().count() <= MAX_RATIONALE_CHARACTERS);
    let again = serde_json::json!({"opinion": answer.opinion, "severity": answer.severity,
        "reason_class": answer.reason_class, "rationale": answer.rationale});
    assert_eq!(Answer::of_text(&again.to_string()).as_ref(), Ok(answer));
}
