use super::*;
use crate::judge::judge_surface;
use crate::pins::{Basis, Pin};
use crate::posture::Settings;
use crate::time::Timestamp;
use contract::surface::read_capture;

fn tool(name: &str, description: &str) -> String {
    format!(
        r#"{{ "name":"{name}", "description":"{description}","inputSchema":{{"type":"object"}} }}"#
    )
}

fn surface(tools: &[String]) -> Surface {
    read_capture(format!("[{}]", tools.join(",")).as_bytes()).unwrap()
}

fn list(pinned: &[String], now: &[String], posture: Posture, mode: ListMode) -> Vec<String> {
    let mut book = PinBook::default();
    for entry in surface(pinned).entries() {
        book.push(Pin {
            entry: entry.clone(),
            basis: Basis::Person,
            at: Timestamp(0),
            by: "ada".to_owned(),
        });
    }
    let seen = surface(now);
    let judgement = judge_surface(&book, &seen, &Settings::with_posture(posture), 0);
    shown(&book, &seen, &judgement, ListKind::Tools, mode)
        .into_iter()
        .map(|(_, raw)| raw.to_owned())
        .collect()
}

#[test]
fn a_held_tool_is_shown_as_it_was_accepted_and_a_new_one_is_left_out() {
    let (z, a) = (tool("z", "old"), tool("a", "same"));
    let now = [tool("z", "new words"), a.clone(), tool("n", "new tool")];
    for posture in [Posture::Shield, Posture::Guard, Posture::Strict] {
        let shown = list(&[z.clone(), a.clone()], &now, posture, ListMode::Accepted);
        assert_eq!(
            shown,
            [z.clone(), a.clone()],
            "{posture}: in the server's order, byte for byte"
        );
    }
}

#[test]
fn monitor_and_observed_lists_show_what_the_server_said() {
    let now = [tool("z", "new words"), tool("n", "new tool")];
    assert_eq!(list(&[tool("z", "old")], &now, Posture::Monitor, ListMode::Accepted), now);
    assert_eq!(list(&[tool("z", "old")], &now, Posture::Guard, ListMode::Observed), now);
}

#[test]
fn nothing_is_shown_of_pins_that_cannot_be_trusted() {
    let seen = surface(&[tool("a", "x")]);
    let mut book = PinBook::default();
    book.lost = Some("gone".to_owned());
    let judgement = judge_surface(&book, &seen, &Settings::with_posture(Posture::Guard), 0);
    assert!(shown(&book, &seen, &judgement, ListKind::Tools, ListMode::Accepted).is_empty());
}
