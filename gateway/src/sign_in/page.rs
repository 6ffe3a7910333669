//! The pages that people see. Plain HTML with one inline style sheet: no scripts, no external
//! resources, no frames.
//!
//! INVARIANT: every text that does not come from this file is escaped.

use super::cookies::Transaction;
use super::request::AuthorizationRequest;
use crate::reply::{self, Reply};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, StatusCode};
use settings::gateway::{RedirectKind, RedirectUri};
use sha2::{Digest, Sha256};
use std::fmt::{self, Write};
use std::sync::LazyLock;

const STYLE: &str = include_str!("page.css");
const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Allows no scripts and no frames, and forms only to this host. `form-action` also applies to
/// redirects after a form, so forms are answered with a page that forwards by itself.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    );
    HeaderValue::from_str(&policy)
        .unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
});

/// A text escaped for HTML.
pub(super) struct Escaped<'t>(pub(super) &'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => formatter.write_str("&amp;")?,
                '<' => formatter.write_str("&lt;")?,
                '>' => formatter.write_str("&gt;")?,
                '"' => formatter.write_str("&quot;")?,
                '\'' => formatter.write_str("&#39;")?,
                other => formatter.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// A page with this title and this HTML content.
pub(super) fn page(status: StatusCode, title: &str, content: &str) -> Reply {
    whole(status, title, "", content)
}

fn whole(status: StatusCode, title: &str, head: &str, content: &str) -> Reply {
    let title = Escaped(title);
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title}</title>{head}<style>{STYLE}</style></head><body><main>{content}</main></body></html>"
    );
    let mut reply = reply::text(status, html);
    let headers = reply.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        // Not `no-referrer`: browsers would then send this page's forms with `Origin: null`.
        (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (OPENER, HeaderValue::from_static("same-origin")),
    ] {
        headers.insert(name, value);
    }
    reply
}

/// Redirects a browser.
pub(super) fn redirect(to: &str) -> Reply {
    let mut reply = reply::empty(StatusCode::SEE_OTHER);
    let headers = reply.headers_mut();
    if let Ok(to) = HeaderValue::from_str(to) {
        headers.insert(LOCATION, to);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    reply
}

/// A page that forwards to an address by itself, in response to a form.
pub(super) fn going_on(to: &str, place: &str) -> Reply {
    let (to, shown) = (Escaped(to), Escaped(place));
    let head = format!("<meta http-equiv=\"refresh\" content=\"0;url={to}\">");
    let content = format!(
        "<h1>One moment</h1><p>You are sent on to <strong>{shown}</strong>.</p><p><a class=\"button main\" href=\"{to}\">Continue</a></p>"
    );
    whole(StatusCode::OK, "One moment", &head, &content)
}

/// Adds cookies to a response.
pub(super) fn with_cookies(
    mut reply: Reply,
    cookies: impl IntoIterator<Item = HeaderValue>,
) -> Reply {
    for cookie in cookies {
        reply.headers_mut().append(SET_COOKIE, cookie);
    }
    reply
}

pub(super) fn refused(status: StatusCode, why: &str, advice: &str) -> Reply {
    let mut rest = why.chars();
    let first: String = rest.next().into_iter().flat_map(char::to_uppercase).collect();
    let (why, advice) = (format!("{first}{}", rest.as_str()), Escaped(advice));
    let why = Escaped(&why);
    let content = format!(
        "<h1>This sign-in was stopped</h1><p role=\"alert\">{why}.</p><p class=\"soft\">{advice}</p>"
    );
    page(status, "Sign-in refused", &content)
}

/// A page that confirms a completed action.
pub(super) fn done(title: &str, sentence: &str) -> Reply {
    let content = format!(
        "<h1>{}</h1><p role=\"status\">{}</p><p class=\"soft\">You can close this page and go back to the application. <a href=\"/account\">Your sign-ins</a></p>",
        Escaped(title),
        Escaped(sentence)
    );
    page(StatusCode::OK, title, &content)
}

/// The question to a person before a client gets tokens.
pub(super) struct ConsentPage<'a> {
    pub(super) transaction: &'a Transaction,
    pub(super) request: &'a AuthorizationRequest,
    pub(super) redirect: &'a RedirectUri,
    /// The host of the client's metadata document, if it has one.
    pub(super) client_host: Option<&'a str>,
    pub(super) gateway: &'a str,
    pub(super) provider: &'a str,
    pub(super) refresh_days: u64,
}

impl ConsentPage<'_> {
    pub(super) fn show(&self) -> Reply {
        let AuthorizationRequest { client_name, client_id, resource, .. } = self.request;
        let (name, gateway) = (Escaped(client_name), Escaped(self.gateway));
        // The name in a document is only claimed by the client; the host is verified.
        let asks = self.client_host.unwrap_or(client_name);
        let known_by = match self.client_host {
            Some(host) => format!(
                "<strong>{}</strong><small>It calls itself “{name}”. Its identity is the web address {}</small>",
                Escaped(host),
                Escaped(client_id)
            ),
            None => format!(
                "<strong>{name}</strong><small>Registered by the person who runs this gateway, as {}</small>",
                Escaped(client_id)
            ),
        };
        let content = format!(
            "<h1>Allow {asks} to use this gateway in your name?</h1>\
             <p>If you allow it, it can call the tools at <strong>{gateway}</strong> that you may call. It sees their results.</p>\
             <dl>\
             <div><dt>Application</dt><dd>{known_by}</dd></div>\
             <div><dt>Sends you back to</dt><dd><strong>{place}</strong><small>{redirect}</small></dd></div>\
             <div><dt>May do</dt><dd><ul><li>Use tools, prompts and resources in your name <small>(mcp)</small></li><li>Stay signed in for up to {days} days, until you sign out</li></ul></dd></div>\
             <div><dt>Only at</dt><dd>{resource}</dd></div>\
             </dl>{warning}\
             <form method=\"post\" action=\"/oauth/consent\">\
             <input type=\"hidden\" name=\"transaction\" value=\"{id}\">\
             <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\
             <div class=\"deeds\"><button class=\"main\" name=\"decision\" value=\"allow\">Allow and sign in</button>\
             <button name=\"decision\" value=\"refuse\">Refuse</button></div></form>\
             <footer>Next, you sign in at {provider}. If you did not start this yourself, choose Refuse.</footer>",
            asks = Escaped(asks),
            place = Escaped(self.redirect.place()),
            redirect = Escaped(self.redirect.as_str()),
            days = self.refresh_days,
            resource = Escaped(resource),
            warning = self.warning(),
            id = Escaped(&self.transaction.id),
            csrf = Escaped(&self.transaction.csrf),
            provider = Escaped(self.provider),
        );
        page(StatusCode::OK, &format!("Allow {asks}?"), &content)
    }

    /// A warning if the redirect target is unusual.
    fn warning(&self) -> String {
        let sentence = match (self.redirect.kind(), self.client_host) {
            (RedirectKind::Loopback, _) => {
                "You are sent back to a program on your own computer. Allow this only if you just started the sign-in in that program.".to_owned()
            }
            (RedirectKind::PrivateScheme, _) => format!(
                "You are sent back to the program on your device that opens “{}” links.",
                self.redirect.place()
            ),
            (RedirectKind::Web, Some(host)) if host != self.redirect.place() => format!(
                "The application’s own address ({host}) and the address that you are sent back to ({}) differ.",
                self.redirect.place()
            ),
            (RedirectKind::Web, _) => return String::new(),
        };
        format!("<p class=\"warn\">{}</p>", Escaped(&sentence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_strangers_are_text() {
        let text = Escaped("<script>alert('x')</script>&\"").to_string();
        assert_eq!(text, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;");
    }

    #[test]
    fn a_page_runs_nothing_loads_nothing_and_is_in_no_frame() {
        let reply = refused(StatusCode::BAD_REQUEST, "<b>", "x");
        let header = |name| reply.headers().get(name).unwrap().to_str().unwrap().to_owned();
        let policy = header(CONTENT_SECURITY_POLICY);
        for part in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "form-action 'self'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("script-src") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(header(X_FRAME_OPTIONS), "DENY");
        assert_eq!(header(CACHE_CONTROL), "no-store");
        let html = String::from_utf8(reply::whole_body(reply).to_vec()).unwrap();
        assert!(html.contains("&lt;b&gt;.") && !html.contains("<script"), "{html}");
    }
}
