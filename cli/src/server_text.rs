//! Which text of a server a command prints: a person on a terminal sees it, a program has to ask
//! for it with `--server-text`.

use std::io::IsTerminal;

pub(crate) use engine::server_text::{Printable, ServerText, Withheld};

/// The hint that says how to see the text.
pub(crate) const HOW_TO_SEE: &str = "words of the server that are not approved are left out: a terminal shows them, and so does --server-text";

pub(crate) fn on_standard_output(is_asked_for: bool) -> ServerText {
    match is_asked_for || std::io::stdout().is_terminal() {
        true => ServerText::Shown,
        false => ServerText::Located,
    }
}
