//! The watcher as a user service, in the formats of systemd and launchd. Produces text only, writes
//! nothing.

use std::collections::BTreeMap;
use std::path::Path;

/// The name of the systemd unit.
pub(crate) const UNIT: &str = "holdpoint-watch.service";
/// The label of the launchd agent.
pub(crate) const LABEL: &str = "holdpoint.watch";

/// How to start the watcher.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service<'s> {
    pub(crate) program: &'s Path,
    /// The home, if it is not the default.
    pub(crate) home: Option<&'s Path>,
    pub(crate) is_auto: bool,
    /// Variables that change where hosts keep their files: a service does not see what a shell
    /// sets.
    pub(crate) variables: &'s BTreeMap<String, String>,
}

/// Why a service file cannot be written.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum ServiceError {
    #[error("`{}` cannot be written into a service: it is not plain text", .0.escape_debug())]
    NotPlain(String),
}

impl Service<'_> {
    fn words(&self) -> Result<Vec<String>, ServiceError> {
        let mut words = vec![plain(&self.program.to_string_lossy())?];
        if let Some(home) = self.home {
            words.extend(["--home".to_owned(), plain(&home.to_string_lossy())?]);
        }
        words.push("watch".to_owned());
        if self.is_auto {
            words.push("--auto".to_owned());
        }
        Ok(words)
    }

    fn variables(&self) -> Result<Vec<(String, String)>, ServiceError> {
        let pairs = self.variables.iter();
        pairs.map(|(name, value)| Ok((plain(name)?, plain(value)?))).collect()
    }
}

/// Rejects text that neither format can hold: non-Unicode paths and control characters.
fn plain(text: &str) -> Result<String, ServiceError> {
    let is_plain = !text.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER);
    is_plain.then(|| text.to_owned()).ok_or_else(|| ServiceError::NotPlain(text.to_owned()))
}

/// The unit file for `systemctl --user`.
pub(crate) fn systemd_unit(service: &Service<'_>) -> Result<String, ServiceError> {
    // systemd expands variables in a command's arguments, but not in the path of its program.
    let words = service.words()?;
    let words: Vec<String> =
        words.iter().enumerate().map(|(at, word)| systemd_word(word, at > 0)).collect();
    let mut environment = String::new();
    for (name, value) in service.variables()? {
        let pair = systemd_word(&format!("{name}={value}"), false);
        environment.push_str(&format!("Environment={pair}\n"));
    }
    Ok(format!(
        "[Unit]
Description=Holdpoint: looks after MCP servers that are added later
Documentation=man:holdpoint-watch(1)

[Service]
ExecStart={}
{environment}Restart=on-failure
RestartSec=30
Nice=10
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
",
        words.join(" ")
    ))
}

/// Quotes a word. `%` starts a specifier everywhere, `$` a variable only in arguments.
fn systemd_word(word: &str, is_argument: bool) -> String {
    let mut quoted = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            '$' if is_argument => quoted.push_str("$$"),
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The property list for `launchctl`.
pub(crate) fn launch_agent(service: &Service<'_>) -> Result<String, ServiceError> {
    let words: String = service
        .words()?
        .iter()
        .map(|word| format!("\t\t<string>{}</string>\n", xml(word)))
        .collect();
    let mut environment = String::new();
    for (name, value) in service.variables()? {
        let (name, value) = (xml(&name), xml(&value));
        environment.push_str(&format!("\t\t<key>{name}</key>\n\t\t<string>{value}</string>\n"));
    }
    if !environment.is_empty() {
        environment =
            format!("\t<key>EnvironmentVariables</key>\n\t<dict>\n{environment}\t</dict>\n");
    }
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">
<plist version=\"1.0\">
<dict>
\t<key>Label</key>
\t<string>{LABEL}</string>
\t<key>ProgramArguments</key>
\t<array>
{words}\t</array>
{environment}\t<key>RunAtLoad</key>
\t<true/>
\t<key>KeepAlive</key>
\t<dict>
\t\t<key>SuccessfulExit</key>
\t\t<false/>
\t</dict>
\t<key>ThrottleInterval</key>
\t<integer>30</integer>
\t<key>ProcessType</key>
\t<string>Background</string>
\t<key>Umask</key>
\t<integer>63</integer>
</dict>
</plist>
"
    ))
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
