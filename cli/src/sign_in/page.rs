//! The page that the browser shows at the end of a sign-in: what happened, and that the tab can be closed.

use gate::words::escape_hidden;

/// The content of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) title: &'static str,
    pub(super) text: String,
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:18vh auto 0;padding:0 1.5rem;background:#fff;color:#1b1b1f}\
h1{font-size:1.4rem;margin:0 0 .75rem}p{margin:.5rem 0}small{color:#5d5d68}\
@media (prefers-color-scheme:dark){body{background:#17171a;color:#ececf1}small{color:#a0a0ac}}";

impl Page {
    pub(super) fn signed_in(host: &str) -> Page {
        Page {
            status: 200,
            title: "Signed in",
            text: format!(
                "Your applications can now use {host} through Holdpoint on this computer. You can close this tab."
            ),
        }
    }

    pub(super) fn refused(host: &str, why: &str) -> Page {
        Page {
            status: 400,
            title: "Not signed in",
            text: format!(
                "You are not signed in to {host}: {why}. Nothing was saved. You can close this tab and sign in again."
            ),
        }
    }

    /// The page for a request that is not a response to this sign-in.
    pub(super) fn stray() -> Page {
        Page {
            status: 400,
            title: "This page belongs to another sign-in",
            text: "It was ignored, and your sign-in continues in its own tab. If you did not start one, another page may have opened this one: close it.".to_owned(),
        }
    }

    pub(super) fn nothing() -> Page {
        Page {
            status: 404,
            title: "Nothing here",
            text: "Holdpoint uses this address while you sign in, and for nothing else. You can close this tab.".to_owned(),
        }
    }

    pub(super) fn html(&self) -> String {
        let (title, text) = (escaped(self.title), escaped(&self.text));
        format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title} – Holdpoint</title>\
             <style>{STYLE}</style></head><body><main><h1>{title}</h1><p>{text}</p>\
             <p><small>Holdpoint, on this computer</small></p></main></body></html>"
        )
    }
}

/// Escapes text that a server chose, so that it cannot become markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in escape_hidden(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            character => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_server_stays_text() {
        let html = Page::refused("<script>a.example</script>", "a \"b\" & 'c'").html();
        assert!(!html.contains("<script"), "{html}");
        assert!(
            html.contains("&lt;script&gt;a.example")
                && html.contains("&quot;b&quot; &amp; &#39;c&#39;")
        );
    }
}
