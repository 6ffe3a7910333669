//! Servers of several hosts that are launched the same way: prints which of them a decision applies
//! to, as text and as JSON.

use crate::failure::{Exit, Failure};
use crate::screen;
use engine::acts::Shared;
use gate::server::ServerId;
use serde_json::{Value, json};

/// A sentence that names the other servers a decision applies to; `None` if there are none.
pub(crate) fn counts_for(siblings: &[ServerId]) -> Option<String> {
    others(siblings).map(|others| format!("decisions count for {others}"))
}

/// What is about to be approved, with the other servers that the approval covers.
pub(crate) fn decided_on(what: String, siblings: &[ServerId]) -> String {
    match others(siblings) {
        Some(others) => format!("{what} Your decision counts for {others}."),
        None => what,
    }
}

fn others(siblings: &[ServerId]) -> Option<String> {
    let are = if siblings.len() == 1 { "is" } else { "are" };
    (!siblings.is_empty())
        .then(|| format!("{} as well, which {are} launched the same way", list(siblings)))
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(ids: &[ServerId]) -> String {
    let names: Vec<&str> = ids.iter().map(ServerId::as_str).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Adds to a document what the decision did to the other servers, if there are any.
pub(crate) fn with_shared(mut document: Value, shared: &[Shared]) -> Value {
    let of_one = |shared: &Shared| match &shared.outcome {
        Ok(status) => json!({ "server": shared.server, "status": status }),
        Err(error) => json!({ "server": shared.server, "error": error.to_string() }),
    };
    if let (Value::Object(members), false) = (&mut document, shared.is_empty()) {
        members.insert("shared".to_owned(), shared.iter().map(of_one).collect());
    }
    document
}

/// Prints what a decision did to the other servers.
pub(crate) fn say(shared: &[Shared]) {
    for Shared { server, outcome } in shared {
        if let Ok(status) = outcome {
            screen::say(format!("the same for {server}, which is launched the same way: {status}"));
        }
    }
}

/// The exit code of a command that decided for several servers. If the decision could not be
/// written for one of them, the command fails.
pub(crate) fn exit(shared: Vec<Shared>, otherwise: Exit) -> Exit {
    let mut exit = otherwise;
    for Shared { server, outcome } in shared {
        if let Err(error) = outcome {
            let failure = Failure::from(error);
            screen::remark(format!(
                "the decision was not applied to {server}, which is launched the same way: {failure}"
            ));
            exit = failure.exit;
        }
    }
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_all_servers_that_a_decision_counts_for() {
        let ids = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        let say = |names: &[&str]| -> Option<String> {
            let ids: Vec<ServerId> = ids(names);
            counts_for(&ids)
        };
        assert_eq!(say(&[]), None);
        assert_eq!(
            say(&["a"]).unwrap(),
            "decisions count for a as well, which is launched the same way"
        );
        assert_eq!(
            say(&["a", "b", "c"]).unwrap(),
            "decisions count for a, b and c as well, which are launched the same way"
        );
    }
}
