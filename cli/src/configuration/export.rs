//! `[export]`: the collectors that receipts are sent to, with their secrets named and never written down.

use super::Configuration;
use crate::failure::Failure;
use engine::export::{Otlp, Settings, Syslog};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::io::Read;
use toml::Table;

/// The largest secret that is read.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

impl Configuration {
    /// Where receipts are sent, with the values of its headers read from where they are kept.
    pub(crate) fn export(&self) -> Result<Settings, Failure> {
        let mut headers = HeaderMap::new();
        for (name, source) in self.header_sources().map_err(Failure::usage)? {
            let wrong =
                |what: String| Failure::usage(format!("`export.otlp_headers.{name}`: {what}"));
            let mut value = HeaderValue::from_str(&read_secret(source).map_err(wrong)?)
                .map_err(|_| wrong("the value cannot be sent in a header".to_owned()))?;
            value.set_sensitive(true);
            headers.append(name, value);
        }
        let (otlp, syslog) = self.collectors(&headers).map_err(Failure::usage)?;
        Ok(Settings { otlp, syslog, ..Settings::default() })
    }

    /// What can be checked without reading a secret.
    pub(super) fn check_export(&self) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for (name, _) in self.header_sources()? {
            headers.append(name, HeaderValue::from_static(""));
        }
        self.collectors(&headers).map(|_| ())
    }

    fn collectors(&self, headers: &HeaderMap) -> Result<(Option<Otlp>, Option<Syslog>), String> {
        let text = |key: &str| match self.value(None, key) {
            None => Ok(None),
            Some(value) => {
                let text = value.as_str().ok_or_else(|| format!("`{key}` is an address in quotes"));
                text.map(Some)
            }
        };
        let otlp = text("export.otlp")?
            .map(|text| Otlp::new(text, headers.clone()))
            .transpose()
            .map_err(|error| format!("`export.otlp`: {error}"))?;
        let syslog = text("export.syslog")?
            .map(str::parse)
            .transpose()
            .map_err(|error| format!("`export.syslog`: {error}"))?;
        if otlp.is_none() && !headers.is_empty() {
            return Err("`export.otlp_headers` are for `export.otlp`, which is not set".to_owned());
        }
        Ok((otlp, syslog))
    }

    fn header_sources(&self) -> Result<Vec<(HeaderName, &str)>, String> {
        let Some(value) = self.value(None, "export.otlp_headers") else { return Ok(Vec::new()) };
        let table: &Table = value.as_table().ok_or("`export.otlp_headers` is a table")?;
        let problem = |name: &str, what: &str| format!("`export.otlp_headers.{name}`: {what}");
        let mut found = Vec::new();
        for (name, source) in table {
            let source = source.as_str().filter(|text| is_source(text)).ok_or_else(|| {
                problem(
                    name,
                    "a value is never given directly; expected `env:VARIABLE` or `file:PATH`",
                )
            })?;
            let name: HeaderName =
                name.parse().map_err(|_| problem(name, "not a header's name"))?;
            if OWN_HEADERS.contains(&name.as_str()) {
                return Err(problem(name.as_str(), "a header that is not yours to set"));
            }
            found.push((name, source));
        }
        Ok(found)
    }
}

/// Headers that say where a request ends and what is in it.
const OWN_HEADERS: [&str; 6] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];

/// A value from `env:VARIABLE` or `file:PATH`, without the line end that a file has.
fn read_secret(source: &str) -> Result<String, String> {
    let value = match source.split_once(':') {
        Some(("env", variable)) => {
            std::env::var(variable).map_err(|_| format!("the variable `{variable}` is not set"))?
        }
        Some(("file", path)) => {
            let wrong = |error: std::io::Error| format!("`{path}`: {error}");
            let file = std::fs::File::open(path).map_err(wrong)?;
            let mut text = String::new();
            file.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text).map_err(wrong)?;
            text
        }
        _ => return Err("expected `env:VARIABLE` or `file:PATH`".to_owned()),
    };
    if value.len() as u64 > MAX_SECRET_BYTES {
        return Err(format!("longer than {MAX_SECRET_BYTES} bytes"));
    }
    Ok(value.trim_end().to_owned())
}

fn is_source(text: &str) -> bool {
    matches!(text.split_once(':'), Some(("env" | "file", name)) if !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<(), String> {
        let text = format!("[export]\n{text}");
        Configuration::parse(&text).and_then(|configuration| configuration.check_export())
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
    fn a_secret_is_read_up_to_its_bound() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let source = format!("file:{}", file.path().display());
        let write = |length: u64| {
            std::fs::write(file.path(), "x".repeat(usize::try_from(length).unwrap())).unwrap();
        };
        std::fs::write(file.path(), "Bearer x\n").unwrap();
        assert_eq!(read_secret(&source).as_deref(), Ok("Bearer x"));
        write(MAX_SECRET_BYTES);
        assert!(read_secret(&source).is_ok());
        write(MAX_SECRET_BYTES + 1);
        assert!(read_secret(&source).unwrap_err().contains("longer than"));
        assert!(read_secret("env:NO_SUCH_VARIABLE_HERE").unwrap_err().contains("not set"));
        assert!(read_secret("file:/no/such/file").is_err());
    }

    #[test]
    fn what_would_send_elsewhere_or_write_a_secret_down_is_refused() {
        for (text, expected) in [
            ("otlp = 7", "in quotes"),
            ("otlp = \"ftp://c\"", "`export.otlp`"),
            ("otlp = \"https://u:p@c\"", "header"),
            ("syslog = \"http://c\"", "`export.syslog`"),
            (
                "otlp = \"https://c\"\notlp_headers = { authorization = \"Bearer x\" }",
                "never given directly",
            ),
            (
                "otlp = \"https://c\"\notlp_headers = { authorization = \"env:\" }",
                "never given directly",
            ),
            ("otlp = \"https://c\"\notlp_headers = { host = \"env:H\" }", "not yours"),
            (
                "otlp = \"http://c\"\notlp_headers = { authorization = \"env:T\" }",
                "only sent over https",
            ),
            ("otlp_headers = { authorization = \"env:T\" }", "not set"),
            ("otlp_header = { }", "`export.otlp_headers`"),
        ] {
            let problem = checked(text).unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }
}
