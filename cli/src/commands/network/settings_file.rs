//! Edits `[network]` in holdpoint.toml as text: everything else, comments included, stays as it is.

use crate::failure::Failure;
use settings::{Configuration, Network};
use std::io::Write;
use std::path::Path;

/// The keys that are written. Other keys in the table stay.
const OWN: [&str; 4] = ["url", "key", "allow_private", "contribute"];

pub(super) fn write(path: &Path, network: &Network) -> Result<(), Failure> {
    let before = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let text = with_table(&before, network);
    let read = Configuration::parse(&text);
    // The file may define the table in a form that this editor does not handle.
    if read.as_ref().map(|read| &read.of(None).network) != Ok(network) {
        return Err(Failure::usage(format!(
            "`{}` names `network` in a way that is not edited here: write `[network]` with `url` and `key` yourself",
            path.display()
        )));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn with_table(text: &str, network: &Network) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let own = own_lines(network);
    let is_header = |line: &&str| line.trim() == "[network]";
    let Some(header) = lines.iter().position(is_header) else {
        let gap = if text.is_empty() { "" } else { "\n" };
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return format!("{text}{end}{gap}[network]\n{own}");
    };
    let after = lines.iter().skip(header + 1);
    let length = after.take_while(|line| !line.trim_start().starts_with('[')).count();
    let (table_begins, table_ends) = (header + 1, header + 1 + length);
    let mut written = String::new();
    for (number, line) in lines.iter().enumerate() {
        let is_replaced = (table_begins..table_ends).contains(&number) && is_own(line);
        if !is_replaced {
            written.push_str(line);
            written.push('\n');
        }
        if number == header {
            written.push_str(&own);
        }
    }
    written
}

fn is_own(line: &str) -> bool {
    let key = line.split('=').next().unwrap_or_default().trim();
    line.contains('=') && OWN.contains(&key)
}

fn own_lines(network: &Network) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut lines = String::new();
    if let Some(url) = &network.url {
        lines.push_str(&format!("url = {}\n", quoted(url)));
    }
    if let Some(key) = &network.key {
        lines.push_str(&format!("key = {}\n", quoted(&key.to_string())));
    }
    for (name, is_set) in
        [("allow_private", network.allow_private), ("contribute", network.contribute)]
    {
        if is_set {
            lines.push_str(&format!("{name} = true\n"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(contribute: bool) -> Network {
        let text = "[network]\nurl = \"https://d.example\"\nkey = \"env:K\"\n";
        let network = Configuration::parse(text).unwrap().of(None).network.clone();
        Network { contribute, ..network }
    }

    #[test]
    fn the_table_is_added_or_replaced_and_the_rest_stays() {
        let check = |before: &str, expected: &str| {
            assert_eq!(with_table(before, &network(false)), expected);
        };
        let table = "[network]\nurl = \"https://d.example\"\nkey = \"env:K\"\n";
        check("", table);
        check("posture = \"shield\"", &format!("posture = \"shield\"\n\n{table}"));
        check(
            "# mine\n[network]\n# note\nurl = \"https://old.example\"\nforbid = false\nkey = \"env:OLD\"\n\n[relist]\nmax_age = 5\n",
            "# mine\n[network]\nurl = \"https://d.example\"\nkey = \"env:K\"\n# note\nforbid = false\n\n[relist]\nmax_age = 5\n",
        );
    }

    #[test]
    fn what_cannot_be_edited_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("holdpoint.toml");
        let inline = "network = { forbid = true }\n";
        std::fs::write(&path, inline).unwrap();
        assert!(write(&path, &network(true)).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), inline);
        std::fs::remove_file(&path).unwrap();
        write(&path, &network(true)).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("contribute = true\n"));
    }
}
