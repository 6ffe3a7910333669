//! `holdpoint.toml`: every key optional, unknown ones refused with a suggestion.

mod admission;
mod amounts;
mod entry;
mod export;
mod gate;

pub(crate) use admission::AdmissionRules;
pub(crate) use entry::Looser;

use crate::failure::Failure;
use ::gate::posture::{Posture, Settings};
use ::gate::server::ServerId;
use amounts::Amount;
use std::path::Path;
use store::Location;
use toml::{Table, Value};

/// The keys that are known, with their tables. A server's table takes the same.
const KEYS: [&str; 40] = [
    "posture",
    "first_use",
    "drift_scope",
    "list",
    "relist.max_age",
    "guard.inert_string_max",
    "guard.inert_entry_max",
    "guard.new_tools",
    "shield.parameter_text",
    "origin.detail",
    "approve.unattended",
    "approve.in_client",
    "limits.frame_bytes",
    "limits.arguments_bytes",
    "limits.depth",
    "limits.call_timeout_seconds",
    "limits.shutdown_grace_seconds",
    "limits.start_timeout_seconds",
    "receipts.fsync",
    "receipts.on_full",
    "receipts.rotate",
    "receipts.keep",
    "receipts.args_hash",
    "export.otlp",
    "export.otlp_headers",
    "export.syslog",
    "admission.trust_root",
    "admission.required",
    "admission.scheme",
    "admission.flavor",
    "admission.cache_seconds",
    "admission.revocations",
    "admission.attestation",
    "admission.program_digest",
    "admission.package",
    "admission.version",
    "admission.integrity",
    "admission.allow_tools",
    "store",
    "server",
];

/// What cannot be set for one server alone.
const NOT_OF_ONE_SERVER: [(&str, &str); 4] = [
    ("approve", "who may approve is the same for all servers"),
    ("store", "all servers are in one store"),
    ("receipts", "all receipts of a home are written in one way"),
    ("export", "all receipts of a home go to one place"),
];

/// The largest configuration that is read.
const MAX_CONFIGURATION_BYTES: u64 = 1024 * 1024;

/// What the configuration says.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    table: Table,
}

impl Configuration {
    pub(crate) fn read(path: &Path) -> Result<Configuration, Failure> {
        let named = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
        match std::fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Configuration::default());
            }
            Err(error) => return Err(named(error.to_string())),
            Ok(found) if found.len() > MAX_CONFIGURATION_BYTES => {
                return Err(named(format!("larger than {MAX_CONFIGURATION_BYTES} bytes")));
            }
            Ok(_) => {}
        }
        let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
        let configuration = Configuration::parse(&text).map_err(named)?;
        // Every value is read once, so that a mistake is found whichever command runs.
        configuration.check().map_err(named)?;
        Ok(configuration)
    }

    fn parse(text: &str) -> Result<Configuration, String> {
        let table: Table =
            text.parse().map_err(|error: toml::de::Error| syntax_error(text, &error))?;
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("server", Value::Table(servers)) => {
                    for (id, value) in servers {
                        id.parse::<ServerId>().map_err(|error| error.to_string())?;
                        let Value::Table(table) = value else {
                            return Err(format!("`server.{id}` must be a table"));
                        };
                        for (key, reason) in NOT_OF_ONE_SERVER {
                            if table.contains_key(key) {
                                return Err(format!("`server.{id}.{key}`: {reason}"));
                            }
                        }
                        table.iter().try_for_each(|(key, value)| check_key(key, value))?;
                    }
                }
                _ => check_key(key, value)?,
            }
        }
        Ok(Configuration { table })
    }

    fn check(&self) -> Result<(), String> {
        self.settings_of(None)?;
        self.unattended_of()?;
        self.receipts_of()?;
        self.check_export()?;
        self.check_store()?;
        self.check_admission()?;
        if let Some(Value::Table(servers)) = self.table.get("server") {
            for id in servers.keys() {
                self.settings_of(Some(id))?;
            }
        }
        Ok(())
    }

    /// A value, from the server's own table first.
    fn value(&self, server: Option<&str>, key: &str) -> Option<&Value> {
        let own = server
            .and_then(|id| self.table.get("server")?.as_table()?.get(id)?.as_table())
            .and_then(|table| look_up(table, key));
        own.or_else(|| look_up(&self.table, key))
    }

    /// The servers that have a table of their own.
    pub(crate) fn named_servers(&self) -> impl Iterator<Item = ServerId> {
        let tables = self.table.get("server").and_then(Value::as_table);
        tables.into_iter().flat_map(Table::keys).filter_map(|id| id.parse().ok())
    }

    fn choice(&self, server: Option<&str>, key: &str, options: [&str; 2]) -> Result<bool, String> {
        let [usual, other] = options;
        match self.value(server, key).map(Value::as_str) {
            None => Ok(false),
            Some(Some(text)) if text == usual => Ok(false),
            Some(Some(text)) if text == other => Ok(true),
            Some(_) => Err(format!("`{key}` is `\"{usual}\"` or `\"{other}\"`")),
        }
    }

    fn count(&self, server: Option<&str>, key: &str, usual: usize) -> Result<usize, String> {
        match self.value(server, key) {
            None => Ok(usual),
            Some(value) => value
                .as_integer()
                .and_then(|number| usize::try_from(number).ok())
                .ok_or_else(|| format!("`{key}` is a whole number from 0 up")),
        }
    }

    fn settings_of(&self, server: Option<&str>) -> Result<Settings, String> {
        let mut settings = Settings::default();
        if let Some(value) = self.value(server, "posture") {
            let text = value.as_str().ok_or("`posture` is a word in quotes")?;
            settings.posture = text.parse::<Posture>().map_err(|error| error.to_string())?;
        }
        let inert = &mut settings.inert;
        inert.string_max = self.count(server, "guard.inert_string_max", inert.string_max)?;
        inert.entry_max = self.count(server, "guard.inert_entry_max", inert.entry_max)?;
        settings.accept_new_tools = self.choice(server, "guard.new_tools", ["defer", "accept"])?;
        settings.defer_parameter_text =
            self.choice(server, "shield.parameter_text", ["hold", "defer"])?;
        settings.hold_origin_detail = self.choice(server, "origin.detail", ["note", "hold"])?;
        Ok(settings)
    }

    fn unattended_of(&self) -> Result<bool, String> {
        self.truth("approve.unattended")
    }

    fn truth(&self, key: &str) -> Result<bool, String> {
        match self.value(None, key) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| format!("`{key}` is true or false")),
        }
    }

    /// The settings for a server, with the posture that a command line names.
    pub(crate) fn settings(
        &self,
        server: Option<&ServerId>,
        posture: Option<Posture>,
    ) -> Result<Settings, Failure> {
        let mut settings =
            self.settings_of(server.map(ServerId::as_str)).map_err(Failure::usage)?;
        settings.posture = posture.unwrap_or(settings.posture);
        Ok(settings)
    }

    fn receipts_of(&self) -> Result<store::receipts::Settings, String> {
        use store::receipts::{Fsync, OnFull};
        let word = |key| self.value(None, key).and_then(Value::as_str);
        let fsync = match word("receipts.fsync") {
            Some("always") => Fsync::Always,
            Some("never") => Fsync::Never,
            _ => Fsync::Interval,
        };
        let mut settings = store::receipts::Settings { fsync, ..Default::default() };
        if word("receipts.on_full") == Some("drop-oldest") {
            settings.on_full = OnFull::DropOldest;
        }
        if word("receipts.args_hash") == Some("plain") {
            settings.args_hash = ledger::record::ArgsHashKind::Plain;
        }
        for amount in self.amounts("receipts.rotate")? {
            match amount {
                Amount::Bytes(bytes) => settings.rotation.bytes = bytes,
                Amount::Milliseconds(age) => settings.rotation.age_milliseconds = age,
            }
        }
        for amount in self.amounts("receipts.keep")? {
            match amount {
                Amount::Bytes(bytes) => settings.keep.bytes = Some(bytes),
                Amount::Milliseconds(age) => settings.keep.age_milliseconds = Some(age),
            }
        }
        Ok(settings)
    }

    /// A size, a duration, or one of each in a list.
    fn amounts(&self, key: &str) -> Result<Vec<Amount>, String> {
        let problem = || {
            format!(
                "`{key}` is a size (`\"64MiB\"`), a duration (`\"90d\"`), or a list of one of each"
            )
        };
        let texts: Vec<&Value> = match self.value(None, key) {
            None => Vec::new(),
            Some(Value::Array(texts)) => texts.iter().collect(),
            Some(text) => vec![text],
        };
        let amounts: Option<Vec<Amount>> =
            texts.into_iter().map(|text| Amount::parse(text.as_str()?)).collect();
        let amounts = amounts.ok_or_else(problem)?;
        let sizes = amounts.iter().filter(|amount| matches!(amount, Amount::Bytes(_))).count();
        if sizes > 1 || amounts.len() - sizes > 1 { Err(problem()) } else { Ok(amounts) }
    }

    fn store_text(&self) -> Result<&str, String> {
        match self.value(None, "store") {
            None => Ok("sqlite"),
            Some(value) => value.as_str().ok_or_else(|| "`store` is a text in quotes".to_owned()),
        }
    }

    /// What `env:` and `file:` point to is looked up where the store is opened: not every command needs it.
    fn check_store(&self) -> Result<(), String> {
        let text = self.store_text()?;
        if text.starts_with("env:") || text.starts_with("file:") {
            return Ok(());
        }
        match Location::parse_without_password(text) {
            Ok(Location::SqliteIn(_)) => {
                Err("`store`: another home is named with `--home`".to_owned())
            }
            Ok(Location::Sqlite | Location::Postgres(_)) => Ok(()),
            Err(error) => Err(format!("`store`: {error}")),
        }
    }

    /// Where pins, history and all else that is remembered is kept.
    pub(crate) fn store(&self) -> Result<Location, Failure> {
        let named = |problem: String| Failure::usage(format!("`store`: {problem}"));
        let text = self.store_text().map_err(Failure::usage)?;
        Location::parse_without_password(text).map_err(|error| named(error.to_string()))
    }

    /// How receipts are written.
    pub(crate) fn receipts(&self) -> Result<store::receipts::Settings, Failure> {
        self.receipts_of().map_err(Failure::usage)
    }

    /// Whether decisions may be made without a person at a terminal.
    pub(crate) fn is_unattended(&self) -> Result<bool, Failure> {
        self.unattended_of().map_err(Failure::usage)
    }
}

fn look_up<'a>(table: &'a Table, key: &str) -> Option<&'a Value> {
    let mut steps = key.split('.');
    let mut value = table.get(steps.next()?)?;
    for step in steps {
        value = value.as_table()?.get(step)?;
    }
    Some(value)
}

/// Refuses a value that a key cannot have, also where nothing reads it yet: a mistake is found when it is made.
fn check_value(key: &str, value: &Value) -> Result<(), String> {
    let words: &[&str] = match key {
        "first_use" => &["trust", "approve"],
        "drift_scope" => &["tool", "server"],
        "list" => &["accepted", "observed"],
        "admission.flavor" => &["open", "enclaved"],
        "receipts.fsync" => &["always", "interval", "never"],
        "receipts.on_full" => &["refuse", "drop-oldest"],
        "receipts.args_hash" => &["keyed", "plain"],
        _ if key.starts_with("limits.")
            || key == "relist.max_age"
            || key == "admission.cache_seconds" =>
        {
            let is_number = value.as_integer().is_some_and(|number| number >= 0);
            let problem = || format!("`{key}` is a whole number from 0 up");
            return is_number.then_some(()).ok_or_else(problem);
        }
        _ => return Ok(()),
    };
    match value.as_str() {
        Some(word) if words.contains(&word) => Ok(()),
        _ => Err(format!("`{key}` is one of `{}`", words.join("`, `"))),
    }
}

/// Refuses a key that is not known, with the nearest one that is.
/// What is wrong with the syntax and in which line, as one line: a failure is printed on one.
fn syntax_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message().replace('\n', ", "))
}

fn check_key(key: &str, value: &Value) -> Result<(), String> {
    let names: Vec<String> = match value {
        Value::Table(table) => table.keys().map(|inner| format!("{key}.{inner}")).collect(),
        _ => vec![key.to_owned()],
    };
    for name in names {
        if KEYS.contains(&name.as_str()) && name != "server" {
            let inner = value.as_table().and_then(|table| table.get(name.rsplit('.').next()?));
            check_value(&name, inner.unwrap_or(value))?;
            continue;
        }
        let nearest = KEYS.iter().max_by(|left, right| {
            let likeness = |key: &str| strsim::jaro_winkler(key, &name);
            likeness(left).total_cmp(&likeness(right))
        });
        let suggestion = nearest.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default();
        return Err(format!("unknown key `{name}`{suggestion}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match Configuration::parse(text).and_then(|configuration| configuration.check()) {
            Err(problem) => problem,
            Ok(()) => panic!("accepted: {text}"),
        }
    }

    #[test]
    fn values_are_read_with_a_servers_own_first() {
        let text = "posture = \"shield\"\n[guard]\ninert_string_max = 10\n[server.files]\nposture = \"strict\"\n[server.files.guard]\nnew_tools = \"accept\"";
        let configuration = Configuration::parse(text).unwrap();
        configuration.check().unwrap();
        let general = configuration.settings_of(None).unwrap();
        assert_eq!(
            (general.posture, general.inert.string_max, general.accept_new_tools),
            (Posture::Shield, 10, false)
        );
        let own = configuration.settings_of(Some("files")).unwrap();
        assert_eq!(
            (own.posture, own.inert.string_max, own.accept_new_tools),
            (Posture::Strict, 10, true)
        );
    }

    #[test]
    fn receipts_are_set_by_words_sizes_and_durations() {
        use store::receipts::{Fsync, OnFull};
        let text = "[receipts]\nfsync = \"always\"\non_full = \"drop-oldest\"\nrotate = [\"1MiB\", \"1h\"]\nkeep = \"90d\"\nargs_hash = \"plain\"";
        let settings = Configuration::parse(text).unwrap().receipts_of().unwrap();
        assert_eq!((settings.fsync, settings.on_full), (Fsync::Always, OnFull::DropOldest));
        assert_eq!(
            (settings.rotation.bytes, settings.rotation.age_milliseconds),
            (1 << 20, 3_600_000)
        );
        assert_eq!(
            (settings.keep.age_milliseconds, settings.keep.bytes),
            (Some(90 * 86_400_000), None)
        );
        assert_eq!(settings.args_hash, ledger::record::ArgsHashKind::Plain);
        let usual = Configuration::parse("").unwrap().receipts_of().unwrap();
        assert_eq!(usual, store::receipts::Settings::default());
    }

    #[test]
    fn unknown_keys_are_refused_with_a_suggestion() {
        assert_eq!(refused("postur = \"guard\""), "unknown key `postur`; did you mean `posture`?");
        assert!(refused("[guard]\ninert_max = 1").contains("`guard.inert_"));
        assert!(refused("[server.a]\nlists = \"x\"").contains("`list`"));
        assert!(refused("[server.A]\nlist = \"x\"").contains("not a server id"));
    }

    #[test]
    fn a_store_is_named_without_its_password() {
        for text in ["sqlite", "postgres://ada@db.example.com/x", "env:ANY", "file:/any"] {
            let configuration = Configuration::parse(&format!("store = \"{text}\"")).unwrap();
            configuration.check().unwrap();
        }
        let usual = Configuration::parse("").unwrap().store().unwrap();
        assert!(matches!(usual, Location::Sqlite));
        let problem = refused("store = \"postgres://ada:s3cret@db.example.com/x\"");
        assert!(problem.contains("env:VARIABLE") && !problem.contains("s3cret"), "{problem}");
    }

    #[test]
    fn wrong_values_are_refused() {
        for text in [
            "posture = \"lax\"",
            "posture = 1",
            "[guard]\ninert_string_max = -1",
            "[guard]\nnew_tools = true",
            "[approve]\nunattended = \"yes\"",
            "[server.a]\nposture = \"lax\"",
            "[server.a.approve]\nunattended = true",
            "[server.a.receipts]\nfsync = \"never\"",
            "[limits]\nframe_bytes = \"lots\"",
            "first_use = \"maybe\"",
            "[receipts]\nfsync = \"sometimes\"",
            "[receipts]\nkeep = \"90\"",
            "[receipts]\nkeep = 90",
            "[receipts]\nrotate = [\"1d\", \"2d\"]",
            "not toml",
            "store = 1",
            "store = \"mysql://x\"",
            "store = \"sqlite:/elsewhere\"",
            "store = \"postgres://ada:s3cret@db.example.com/x\"",
            "[server.a]\nstore = \"sqlite\"",
        ] {
            refused(text);
        }
    }
}
