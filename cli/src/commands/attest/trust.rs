//! `attest trust`: makes and edits a trust root from PEM files, so that no key has to be pasted into JSON by hand.
//!
//! INVARIANT: everything written parses as a trust root, with the parser that `run` uses. A file
//! that is not a trust root is never changed.

use super::{output, read, read_text};
use crate::arguments::Options;
use crate::arguments::attest::{AddCommand, RemoveCommand, TrustCommand, TrustSubcommand};
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::report::count;
use crate::screen::{self, BOLD, DIM, styled};
use crate::target::near;
use attest::{
    BadKey, KeyId, Level, MAX_PEM_BYTES, MAX_TRUST_ROOT_BYTES, PublicKey, Scheme, Signer, TrustRoot,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

pub(super) fn run(command: &TrustCommand, options: &Options) -> Result<Exit, Failure> {
    let path = match &command.command {
        TrustSubcommand::Add(command) => add(command)?,
        TrustSubcommand::Remove(command) => remove(command)?,
        TrustSubcommand::List(command) => &command.trust_root,
    };
    print_result(path, &super::read_trust_root(path)?, options)
}

fn add(command: &AddCommand) -> Result<&Path, Failure> {
    let path = &command.trust_root;
    let key = read_public_key(&command.key)?;
    let id = match &command.key_id {
        Some(id) => id.clone(),
        None => id_of_file(&command.key)?,
    };
    let mut root = match path.symlink_metadata() {
        Ok(_) => read_json(path)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({ "v": 1 }),
        Err(error) => return Err(Failure::usage(format!("`{}`: {error}", path.display()))),
    };
    if let Some(scheme) = &command.scheme {
        let is_other = root.get("scheme").is_some_and(|there| there != scheme.as_str());
        if is_other || root.get("signers").is_some() && root.get("scheme").is_none() {
            return Err(Failure::usage(format!(
                "`{}` is for another scheme than `{scheme}`: its levels have other meanings",
                path.display()
            )));
        }
        set(&mut root, "scheme", json!(scheme));
    }
    let mut signer = json!({
        "keyId": id.as_str(),
        "publicKeyPem": key.to_pem().map_err(Failure::internal)?,
        "approvedClearance": command.level,
    });
    if let Some(end) = &command.not_after {
        set(&mut signer, "notAfter", json!(end.to_string()));
    }
    if let Some(text) = &command.description {
        set(&mut signer, "description", json!(text));
    }
    if command.may_revoke {
        set(&mut signer, "mayRevoke", json!(true));
    }
    let has_id = |there: &Value| there.get("keyId") == signer.get("keyId");
    if root.get("signers").and_then(Value::as_array).is_some_and(|there| there.iter().any(has_id)) {
        let path = path.display();
        return Err(Failure::usage(format!(
            "`{path}` has a signer `{id}` already: to replace it, type `holdpoint attest trust remove {path} {id}` first; \
             to have both, name this key with `--key-id`"
        )));
    }
    match root.get_mut("signers") {
        Some(Value::Array(signers)) => signers.push(signer),
        _ => set(&mut root, "signers", json!([signer])),
    }
    write(path, &root)?;
    warn_of(command, root.get("scheme").is_some());
    Ok(path)
}

/// Warns of arguments that are accepted as typed but are probably a mistake.
fn warn_of(command: &AddCommand, has_scheme: bool) {
    // A custom scheme may define any level, so without the scheme's name this cannot be an error.
    let is_known =
        |level: &str| Scheme::built_ins().iter().any(|scheme| scheme.level(level).is_some());
    for level in command.level.iter().filter(|level| !has_scheme && !is_known(level)) {
        let levels = Scheme::built_ins().iter().flat_map(Scheme::levels);
        let names: BTreeSet<String> =
            levels.flat_map(names_of).map(str::to_ascii_lowercase).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let guess = near(&level.to_ascii_lowercase(), &names)
            .map(|meant| format!("; did you mean `{meant}`?"))
            .unwrap_or_default();
        screen::remark(format!(
            "warning: no built-in scheme has the level `{}`{guess} (`holdpoint attest schemes` lists them)",
            screen::readable(level)
        ));
    }
    if let Some(end) = command.not_after.filter(|end| *end < now()) {
        screen::remark(format!("warning: `--not-after {end}` is in the past: the key has expired"));
    }
}

fn names_of(level: &Level) -> impl Iterator<Item = &str> {
    std::iter::once(level.name()).chain(level.aliases().iter().map(String::as_str))
}

fn remove(command: &RemoveCommand) -> Result<&Path, Failure> {
    let path = &command.trust_root;
    let known = super::read_trust_root(path)?;
    if known.find(&command.key_id).is_none() {
        let ids: Vec<&str> =
            known.signers().iter().map(|signer| signer.key_id().as_str()).collect();
        let end = match near(command.key_id.as_str(), &ids) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("`holdpoint attest trust list {}` shows its signers", path.display()),
        };
        return Err(Failure::usage(format!(
            "`{}` has no signer `{}`: {end}",
            path.display(),
            command.key_id
        )));
    }
    let mut root = read_json(path)?;
    if let Some(Value::Array(signers)) = root.get_mut("signers") {
        signers.retain(|signer| signer.get("keyId") != Some(&json!(command.key_id.as_str())));
    }
    write(path, &root)?;
    Ok(path)
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(name.to_owned(), value);
    }
}

/// The file as JSON, if it is a trust root.
fn read_json(path: &Path) -> Result<Value, Failure> {
    super::read_trust_root(path)?;
    Ok(serde_json::from_slice(&read(path, MAX_TRUST_ROOT_BYTES)?)?)
}

fn write(path: &Path, root: &Value) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(root)?;
    text.push('\n');
    TrustRoot::parse(text.as_bytes())
        .map_err(|error| Failure::usage(format!("nothing was written: {error}")))?;
    output::replace_trust_root(path, text.as_bytes())
}

fn read_public_key(path: &Path) -> Result<PublicKey, Failure> {
    let text = zeroize::Zeroizing::new(read_text(path, MAX_PEM_BYTES)?);
    if text.contains("PRIVATE KEY-----") {
        return Err(Failure::usage(format!(
            "`{}` is a private key: name its public key, which `attest keygen` wrote to a file that ends in `.pub`",
            path.display()
        )));
    }
    PublicKey::from_pem(&text)
        .map_err(|error: BadKey| Failure::usage(format!("the key `{}`: {error}", path.display())))
}

/// The key id that a file name implies: `acme-2026.pem.pub` holds `acme-2026`.
fn id_of_file(path: &Path) -> Result<KeyId, Failure> {
    let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for end in [".pub", ".pem"] {
        name = name.strip_suffix(end).unwrap_or(&name).to_owned();
    }
    KeyId::parse(&name).map_err(|error| {
        Failure::usage(format!(
            "`{}` does not name the key ({error}): add `--key-id ID`",
            path.display()
        ))
    })
}

fn print_result(path: &Path, root: &TrustRoot, options: &Options) -> Result<Exit, Failure> {
    if options.json {
        let signers: Vec<Value> = root.signers().iter().map(document).collect();
        screen::print_json(
            &json!({ "trust_root": path, "scheme": root.scheme(), "signers": signers }),
        )?;
        return Ok(Exit::Fine);
    }
    let scheme = root.scheme().map(|scheme| format!(", levels of the scheme {scheme}"));
    screen::say(format!(
        "{}: {}{}",
        path.display(),
        count(root.signers().len(), "signer", "signers"),
        scheme.unwrap_or_default()
    ));
    for signer in root.signers() {
        let end = signer.not_after().map(|end| format!(", until {end}")).unwrap_or_default();
        let revokes = if signer.may_revoke() { ", may revoke" } else { "" };
        let levels = signer.approved_clearance().join(", ");
        screen::say(format!("  {}  {levels}{end}{revokes}", styled(BOLD, signer.key_id())));
        screen::say(styled(DIM, format!("    fingerprint {}", signer.fingerprint())));
    }
    Ok(Exit::Fine)
}

fn document(signer: &Signer) -> Value {
    json!({
        "key_id": signer.key_id().as_str(),
        "fingerprint": signer.fingerprint().as_str(),
        "approved": signer.approved_clearance(),
        "not_after": signer.not_after(),
        "may_revoke": signer.may_revoke(),
        "description": signer.description(),
    })
}
