//! `[export]`: the collectors that receipts are sent to.

use super::Configuration;
use crate::arguments::Options;
use crate::failure::Failure;
use crate::screen;
use engine::error_log::ErrorLog;
use engine::export::{LiveExport, Otlp, Report, Settings, Syslog, add_header, do_not_track};
use engine::reason::ReasonCode;
use http::HeaderMap;
use settings::{Export, SecretName};
use store::receipts::DiskFolder;

impl Configuration {
    /// Where receipts are sent, with the header values read from their sources.
    pub(crate) fn export(&self) -> Result<Settings, Failure> {
        export_settings(&self.general().export)
    }

    /// Checks everything that can be checked without reading a secret.
    pub(super) fn check_export(&self) -> Result<(), String> {
        collectors(&self.general().export, |_| Ok(String::new())).map(|_| ())
    }
}

/// The export settings from these keys, with the header values read from their sources.
pub(crate) fn export_settings(keys: &Export) -> Result<Settings, Failure> {
    let read = |secret: &SecretName| {
        let value = secret.read(|name| std::env::var(name).ok());
        value.map_err(|error| error.to_string())
    };
    let (otlp, syslog) = collectors(keys, read).map_err(Failure::usage)?;
    Ok(Settings { otlp, syslog, ..Settings::default() })
}

/// Sends receipts to the collectors that the settings name, unless `DO_NOT_TRACK` is set.
pub(crate) fn start_export(
    mut settings: Settings,
    home: &store::Home,
    options: &Options,
) -> Result<Option<LiveExport>, Failure> {
    settings.do_not_track = do_not_track(std::env::var_os("DO_NOT_TRACK").as_deref());
    if settings.otlp.is_none() && settings.syslog.is_none() {
        return Ok(None);
    }
    if settings.do_not_track {
        if !options.quiet {
            screen::remark("holdpoint: `DO_NOT_TRACK` is set: receipts are sent to no collector");
        }
        return Ok(None);
    }
    let folder = DiskFolder::new(&home.receipts_path());
    let errors = ErrorLog::new(home.path().join("errors.jsonl"));
    let export = LiveExport::start(home.path(), folder, settings, move |report| {
        if report == Report::Fault {
            errors.note(ReasonCode::Internal, 0);
            screen::remark(format!("holdpoint: {report}"));
        }
    });
    export.map(Some).map_err(Failure::usage)
}

fn collectors(
    keys: &Export,
    read: impl Fn(&SecretName) -> Result<String, String>,
) -> Result<(Option<Otlp>, Option<Syslog>), String> {
    let mut headers = HeaderMap::new();
    for (name, secret) in keys.otlp_headers.iter().flatten() {
        let wrong = |what: &str| format!("`export.otlp_headers.{name}`: {what}");
        let value = read(secret).map_err(|error| wrong(&error))?;
        add_header(&mut headers, name, &value).map_err(|error| wrong(&error.to_string()))?;
    }
    if keys.otlp.is_none() && !headers.is_empty() {
        return Err("`export.otlp_headers` are for `export.otlp`, which is not set".to_owned());
    }
    let otlp = keys.otlp.as_deref().map(|text| Otlp::new(text, headers)).transpose();
    let syslog = keys.syslog.as_deref().map(str::parse).transpose();
    let otlp = otlp.map_err(|error| format!("`export.otlp`: {error}"))?;
    Ok((otlp, syslog.map_err(|error| format!("`export.syslog`: {error}"))?))
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
