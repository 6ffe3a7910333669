//! Where a server comes from: the program or the package that a command launches, or the address that is reached.
//!
//! Launchers (`npx`, `uvx`, `docker run` and their like) are looked through, so that another package is noticed and
//! another path to the same launcher is not. What is made here is stored, so it goes through the [`Redactor`] first.

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

/// What a command starts, as it is kept: words that may be secrets are keyed hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOrigin {
    /// The program as it was named.
    pub program: String,
    pub package: Option<KeptPackage>,
    pub arguments: Vec<String>,
    /// Whether a word was hidden: the command cannot be run again from this.
    pub has_secrets: bool,
    /// SHA-256 of the program's file, where it was taken.
    pub digest: Option<String>,
}

/// Where packages come from; `command` stands for a command line that does not tell.
const REGISTRIES: [&str; 9] =
    ["command", "container", "npm", "oci", "pypi", "python-module", "remote", "script", "ssh"];

/// A package as it is kept.
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

    /// Reads a command line that was kept, perhaps by an older version: words that are hidden already stay as they are.
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

    /// The short name that a person would call the server by: of a package, a script, a host, or the program itself.
    pub fn short_name(&self) -> String {
        let named = self.package.as_ref().and_then(KeptPackage::short_name);
        let named = named.or_else(|| Some(self.program.as_str()).filter(|name| !is_hidden(name)));
        let last = named.and_then(|name| name.rsplit(['/', '\\']).next()).unwrap_or_default();
        let endings = [".exe", ".js", ".mjs", ".cjs", ".ts", ".py", ".jar", ".sh", ".rb"];
        let bare = endings.iter().find_map(|ending| last.strip_suffix(ending));
        bare.filter(|bare| !bare.is_empty()).unwrap_or(last).to_owned()
    }

    /// What makes it this server and not another, whatever its version and its other arguments.
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

    /// The package as the entry names it, with where it comes from.
    fn package_member(&self) -> Option<String> {
        let package = self.package.as_ref()?;
        Some(format!("{}:{}", package.registry, package.name))
    }
}

impl KeptPackage {
    /// Names the package by the words of the command line as they were kept, so that it shows no more than they do.
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

    /// As an entry names it, without its version.
    fn of_member(member: &str) -> Option<KeptPackage> {
        let (registry, name) = member.split_once(':')?;
        let registry = *REGISTRIES.iter().find(|known| **known == registry)?;
        Some(KeptPackage { registry, name: name.to_owned(), version: None })
    }

    /// Of a launcher whose command line does not tell what it runs: whatever changes of the line, it may be another server.
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

/// A word of a command line as it was kept, where it is an argument of its own or the value of an option.
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

/// The origin of a server that is reached at an address, as [`Redactor::address`] keeps it. `tls_key` is the hash of its
/// public key.
pub fn address_entry(url: &str, tls_key: Option<&str>) -> Result<Entry, ReadError> {
    let members = [
        Some(("kind", string("address"))),
        tls_key.map(|key| ("tlsKey", string(key))),
        Some(("url", string(url))),
    ];
    origin_entry(members.into_iter().flatten())
}

/// The JSON of an origin entry that an older version kept, as it is kept now. `None` if it is no origin entry. Words that are
/// hidden already stay as they are.
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
            // What was made of words that are hidden now cannot be made of them again.
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
