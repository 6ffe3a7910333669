//! `[export]`: the collectors that receipts are sent to.

use super::Configuration;
use crate::failure::Failure;
use engine::export::{Otlp, Settings, Syslog};
use http::{HeaderMap, HeaderName, HeaderValue};
use settings::SecretName;

/// Headers that say where a request ends and what is in it.
const OWN_HEADERS: [&str; 6] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];

impl Configuration {
    /// Where receipts are sent, with the values of its headers read from where they are kept.
    pub(crate) fn export(&self) -> Result<Settings, Failure> {
        let (otlp, syslog) = self
            .collectors(|secret| {
                let value = secret.read(|name| std::env::var(name).ok());
                value.map_err(|error| error.to_string())
            })
            .map_err(Failure::usage)?;
        Ok(Settings { otlp, syslog, ..Settings::default() })
    }

    /// What can be checked without reading a secret.
    pub(super) fn check_export(&self) -> Result<(), String> {
        self.collectors(|_| Ok(String::new())).map(|_| ())
    }

    fn collectors(
        &self,
        read: impl Fn(&SecretName) -> Result<String, String>,
    ) -> Result<(Option<Otlp>, Option<Syslog>), String> {
        let keys = &self.general().export;
        let mut headers = HeaderMap::new();
        for (name, secret) in keys.otlp_headers.iter().flatten() {
            let wrong = |what: &str| format!("`export.otlp_headers.{name}`: {what}");
            let name: HeaderName = name.parse().map_err(|_| wrong("not a header's name"))?;
            if OWN_HEADERS.contains(&name.as_str()) {
                return Err(wrong("a header that is not yours to set"));
            }
            let value = read(secret).map_err(|error| wrong(&error))?;
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| wrong("the value cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        if keys.otlp.is_none() && !headers.is_empty() {
            return Err("`export.otlp_headers` are for `export.otlp`, which is not set".to_owned());
        }
        let otlp = keys.otlp.as_deref().map(|text| Otlp::new(text, headers)).transpose();
        let syslog = keys.syslog.as_deref().map(str::parse).transpose();
        let otlp = otlp.map_err(|error| format!("`export.otlp`: {error}"))?;
        Ok((otlp, syslog.map_err(|error| format!("`export.syslog`: {error}"))?))
    }
}

#[cfg(test)]
mod tests {
    use crate::configuration::tests::read;

    fn checked(text: &str) -> Result<(), String> {
        read(&format!("[export]\n{text}")).check_export()
    }

    #[test]
    fn collectors_and_named_secrets_are_read() {
        for text in [
            "",
            "otlp = \"https://collector:4318\"",
            "syslog = \"udp://host:514\"",
            "otlp = \"https://c\"\notlp_headers = { authorization = \"env:TOKEN\", x = \"file:/t\" }",
            "otlp = \"http://127.0.0.1:4318\"\notlp_headers = { authorization = \"env:TOKEN\" }",
        ] {
            assert_eq!(checked(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_would_send_elsewhere_or_write_a_secret_down_is_refused() {
        for (text, expected) in [
            ("otlp = \"ftp://c\"", "`export.otlp`"),
            ("otlp = \"https://u:p@c\"", "header"),
            ("syslog = \"http://c\"", "`export.syslog`"),
            ("otlp = \"https://c\"\notlp_headers = { host = \"env:H\" }", "not yours"),
            (
                "otlp = \"http://c\"\notlp_headers = { authorization = \"env:T\" }",
                "only sent over https",
            ),
            ("otlp_headers = { authorization = \"env:T\" }", "not set"),
        ] {
            let problem = checked(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }
}
