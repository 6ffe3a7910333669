//! Where a server comes from: the program or package that a command launches, or the address that
//! is contacted.
//!
//! Launchers (`npx`, `uvx`, `docker run` and the like) are looked through, so that a different
//! package counts as a change and a different path to the same launcher does not. The result is
//! stored, so it goes through the [`Redactor`] first.

mod fetched;
mod former;
mod launchers;
mod package;
mod redact;

use crate::json::{Document, ReadError, escape_into};
use crate::surface::{Entry, EntryId, EntryType};

pub use fetched::{
    FetchedPackage, Registry, UnclearFetch, container_options, find_fetched, is_launcher,
};
pub use former::{Way, renew_entry};
pub use package::{Package, find_package};
pub use redact::{HIDDEN, Redactor, host_of, is_hidden, shown_program};

/// The command that starts a server, as stored: words that may be secrets are keyed hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOrigin {
    /// The program as it was named.
    pub program: String,
    pub package: Option<KeptPackage>,
    pub arguments: Vec<String>,
    /// Whether a word was hidden. If so, the command cannot be run again from this record.
    pub has_secrets: bool,
    /// SHA-256 of the program's file, if it was computed.
    pub digest: Option<String>,
}

/// Where packages come from; `command` stands for a command line that does not identify a package.
const REGISTRIES: [&str; 9] =
    ["command", "container", "npm", "oci", "pypi", "python-module", "remote", "script", "ssh"];

/// A package as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPackage {
    pub registry: &'static str,
    pub name: String,
    pub version: Option<String>,
}

impl ProgramOrigin {
    /// Reads a command line.
    pub fn of(program: &str, arguments: &[String], redactor: &Redactor<'_>) -> ProgramOrigin {
        let package = find_package(program, arguments);
        let kept = redactor.arguments(arguments, package.as_ref());
        let program_kept = redactor.program(program);
        ProgramOrigin {
            has_secrets: program_kept != program || kept != arguments,
            package: match package {
                Some(package) => Some(KeptPackage::of(package, arguments, &kept)),
                None if arguments.is_empty() || !package::runs_another(program) => None,
                None => Some(KeptPackage::of_line(program, arguments, redactor)),
            },
            program: program_kept,
            arguments: kept,
            digest: None,
        }
    }

    /// Reads a stored command line, perhaps from an older version. Words that are already hidden
    /// are left unchanged.
    pub fn again(program: &str, arguments: &[String], redactor: &Redactor<'_>) -> ProgramOrigin {
        let origin = ProgramOrigin::of(program, arguments, redactor);
        let stay = |old: &str, kept: String| if is_hidden(old) { old.to_owned() } else { kept };
        let words = arguments.iter().zip(origin.arguments);
        ProgramOrigin {
            arguments: words.map(|(old, kept)| stay(old, kept)).collect(),
            program: stay(program, origin.program),
            ..origin
        }
    }

    /// The short name that a person would use for the server: its package, script or host, or else
    /// the program.
    pub fn short_name(&self) -> String {
        let named = self.package.as_ref().and_then(KeptPackage::short_name);
        let named = named.or_else(|| Some(self.program.as_str()).filter(|name| !is_hidden(name)));
        let last = named.and_then(|name| name.rsplit(['/', '\\']).next()).unwrap_or_default();
        let endings = [".exe", ".js", ".mjs", ".cjs", ".ts", ".py", ".jar", ".sh", ".rb"];
        let bare = endings.iter().find_map(|ending| last.strip_suffix(ending));
        bare.filter(|bare| !bare.is_empty()).unwrap_or(last).to_owned()
    }

    /// Identifies the server regardless of its version and its other arguments.
    pub fn identity(&self) -> String {
        match &self.package {
            Some(package) => format!("{}:{}", package.registry, package.name),
            None => format!("program:{}", self.program),
        }
    }

    pub fn entry(&self) -> Result<Entry, ReadError> {
        let package = self.package.as_ref();
        let name = self.package_member();
        let arguments: Vec<String> =
            self.arguments.iter().map(|argument| string(argument)).collect();
        let members = [
            Some(("arguments", format!("[{}]", arguments.join(",")))),
            self.digest.as_deref().map(|digest| ("digest", string(digest))),
            Some(("kind", string("program"))),
            name.map(|name| ("package", string(&name))),
            Some(("program", string(&self.program))),
            package
                .and_then(|package| package.version.as_deref())
                .map(|version| ("version", string(version))),
        ];
        origin_entry(members.into_iter().flatten())
    }

    /// The `package` member of the entry: the name with its registry.
    fn package_member(&self) -> Option<String> {
        let package = self.package.as_ref()?;
        Some(format!("{}:{}", package.registry, package.name))
    }
}

impl KeptPackage {
    /// Names the package by the stored words of the command line, so that the name reveals no more
    /// than they do.
    fn of(package: Package, arguments: &[String], kept: &[String]) -> KeptPackage {
        let kept_word = |word: &String| kept_word(word, arguments, kept);
        let words: Vec<String> = package.words.iter().map(kept_word).collect();
        let is_clear = words == package.words;
        let name = if is_clear { package.name } else { words.join(" ") };
        let name = match package.project.as_ref().map(kept_word) {
            Some(project) => format!("{}/{name}", project.trim_end_matches('/')),
            None => name,
        };
        let version = package.version.filter(|_| is_clear);
        KeptPackage { registry: package.registry, name, version }
    }

    /// Reads the `package` member of an entry, which has no version.
    fn of_member(member: &str) -> Option<KeptPackage> {
        let (registry, name) = member.split_once(':')?;
        let registry = *REGISTRIES.iter().find(|known| **known == registry)?;
        Some(KeptPackage { registry, name: name.to_owned(), version: None })
    }

    /// For a launcher whose command line does not identify what it runs. Any change to the line may
    /// mean another server.
    fn of_line(program: &str, arguments: &[String], redactor: &Redactor<'_>) -> KeptPackage {
        let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
        let line: Vec<String> = words.map(string).collect();
        KeptPackage { registry: "command", name: redactor.hidden(&line.join(",")), version: None }
    }

    /// `None` if the name is hidden.
    fn short_name(&self) -> Option<&str> {
        if self.registry == "remote" {
            return host_of(&self.name);
        }
        let last = self.name.rsplit(['/', '\\']).next()?;
        Some(last).filter(|name| !name.is_empty() && !is_hidden(name))
    }
}

/// The stored form of a word of the command line, either a whole argument or the value of an
/// option.
fn kept_word(word: &str, arguments: &[String], kept: &[String]) -> String {
    fn value(argument: &str) -> Option<&str> {
        argument.split_once('=').map(|(_, value)| value)
    }
    let mut pairs = arguments.iter().zip(kept);
    let found = pairs.find_map(|(argument, kept)| match argument == word {
        true => Some(kept.as_str()),
        false => (value(argument) == Some(word)).then(|| value(kept).unwrap_or(kept)),
    });
    found.unwrap_or(HIDDEN).to_owned()
}

/// The origin entry of a server reached at an address, which [`Redactor::address`] has redacted.
/// `tls_key` is the hash of its public key.
pub fn address_entry(url: &str, tls_key: Option<&str>) -> Result<Entry, ReadError> {
    let members = [
        Some(("kind", string("address"))),
        tls_key.map(|key| ("tlsKey", string(key))),
        Some(("url", string(url))),
    ];
    origin_entry(members.into_iter().flatten())
}

/// Converts an origin entry that an older version stored to today's form. Returns `None` if `raw`
/// is not an origin entry. Words that are already hidden are left unchanged.
pub fn redact_entry(raw: &str, redactor: &Redactor<'_>) -> Option<String> {
    let document = Document::parse(raw).ok()?;
    let root = document.root();
    let text = |name: &str| Some(root.get(name)?.as_str()?.into_owned());
    let entry = match text("kind")?.as_str() {
        "program" => {
            let arguments = root.get("arguments")?.items();
            let arguments: Option<Vec<String>> =
                arguments.map(|item| Some(item.as_str()?.into_owned())).collect();
            let origin = ProgramOrigin::again(&text("program")?, &arguments?, redactor);
            // A package name derived from words that are hidden now cannot be derived again.
            let package = text("package").filter(|package| is_hidden(package));
            let package = package.as_deref().and_then(KeptPackage::of_member);
            let package = package.or_else(|| origin.package.clone());
            ProgramOrigin { digest: text("digest"), package, ..origin }.entry()
        }
        "address" => {
            let url = text("url")?;
            let kept = if is_hidden(&url) { url } else { redactor.address(&url) };
            address_entry(&kept, text("tlsKey").as_deref())
        }
        _ => return None,
    };
    Some(entry.ok()?.raw().to_owned())
}

fn origin_entry(members: impl Iterator<Item = (&'static str, String)>) -> Result<Entry, ReadError> {
    let members: Vec<String> = members.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    Entry::from_raw(EntryId::only(EntryType::Origin), &format!("{{{}}}", members.join(",")))
}

fn string(text: &str) -> String {
    let mut out = Vec::new();
    escape_into(text, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests;
