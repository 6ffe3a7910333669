use super::*;
use crate::table::host;

fn manner(taken: Option<&BTreeSet<String>>) -> Manner<'_> {
    let host = host("cursor").unwrap();
    let (program, syntax) = ("/bin/holdpoint", Syntax::Json);
    Manner { host, syntax, apart: None, program, home: None, own_home: None, sandbox: None, taken }
}

fn guarded(name: &str, id: &str) -> String {
    format!(r#""{name}": {{"command": "holdpoint", "args": ["run", "--server={id}", "--", "x"]}}"#)
}

/// The id assigned to the server `files` next to these entries.
fn id_beside(entries: &[String], taken: Option<&BTreeSet<String>>) -> String {
    let files = r#""files": {"command": "npx"}"#.to_owned();
    let all: Vec<String> = entries.iter().cloned().chain([files]).collect();
    let text = format!(r#"{{"mcpServers": {{{}}}}}"#, all.join(", "));
    let wired = wire(&text, &manner(taken), &Choice::default()).unwrap();
    let [server] = wired.changed.as_slice() else { panic!("{:?}", wired.changed) };
    assert!(wired.text.contains(&format!("--server={}", server.id)), "{}", wired.text);
    server.id.clone()
}

#[test]
fn an_id_that_an_entry_of_the_file_has_is_given_to_nobody_else() {
    let mut entries = Vec::new();
    let mut ids = BTreeSet::new();
    for number in 0..4 {
        let id = id_beside(&entries, None);
        assert!(ids.insert(id.clone()), "{id} twice");
        entries.push(guarded(&format!("copy{number}"), &id));
    }
    assert!(ids.contains("cursor.files"), "{ids:?}");
}

#[test]
fn an_id_of_another_file_is_given_to_nobody() {
    let mut taken = BTreeSet::from(["cursor.other".to_owned()]);
    assert_eq!(id_beside(&[], Some(&taken)), "cursor.files");
    taken.insert("cursor.files".to_owned());
    let second = id_beside(&[], Some(&taken));
    assert!(second.starts_with("cursor.files-"), "{second}");
    taken.insert(second);
    assert!(!taken.contains(&id_beside(&[], Some(&taken))));
}

#[test]
fn so_many_are_tried_one_by_one_and_no_more() {
    let ids = |count: usize| (0..count).map(|number| number.to_string());
    let last = |id: &String| *id == (MAX_ONE_BY_ONE - 1).to_string();
    let past = |id: &String| *id == MAX_ONE_BY_ONE.to_string();
    assert_eq!(one_by_one(ids(MAX_ONE_BY_ONE), last).len(), 1);
    assert!(one_by_one(ids(MAX_ONE_BY_ONE + 1), past).is_empty());
}
