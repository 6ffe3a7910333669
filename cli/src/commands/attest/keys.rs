//! `attest keygen` and `attest sign`.

use super::{output, passphrase, read, read_text};
use crate::arguments::Options;
use crate::arguments::attest::{KeygenCommand, SignCommand};
use crate::failure::{Exit, Failure};
use crate::observation;
use crate::screen::{self, BOLD, DIM, YELLOW, styled};
use attest::{Draft, MAX_PEM_BYTES, MAX_REVOCATION_LIST_BYTES, Salt, SigningKey};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

pub(super) fn generate(command: &KeygenCommand, options: &Options) -> Result<Exit, Failure> {
    let public_path = with_suffix(&command.file, ".pub");
    for path in [&command.file, &public_path] {
        if path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
    }
    let passphrase = command.passphrase.as_deref().map(passphrase::choose).transpose()?;
    let key = SigningKey::from_seed(random()?);
    let private = match &passphrase {
        Some(passphrase) => {
            let salt = Salt { salt: random()?, initialization: random()? };
            key.to_encrypted_pem(passphrase, salt)
        }
        None => key.to_pem(),
    };
    let private = private.map_err(Failure::internal)?;
    let public = key.public_key();
    let public_pem = public.to_pem().map_err(Failure::internal)?;
    // Write the public half first: if only one of the two can be written, no private key is left
    // behind.
    write_new(&public_path, public_pem.as_bytes(), Audience::Everyone)?;
    if let Err(failure) = write_new(&command.file, private.as_bytes(), Audience::Owner) {
        // Report the first failure, not that of the clean-up.
        let _ = std::fs::remove_file(&public_path);
        return Err(failure);
    }
    let fingerprint = public.fingerprint();
    if options.json {
        screen::print_json(&json!({
            "key": command.file,
            "public_key": public_path,
            "public_key_pem": public_pem,
            "fingerprint": fingerprint.as_str(),
            "encrypted": passphrase.is_some(),
        }))?;
        return Ok(Exit::Fine);
    }
    let state = if passphrase.is_some() { "encrypted" } else { "not encrypted" };
    let (key, public_key) = (command.file.display(), public_path.display());
    screen::say(format!("{key}  the private key, {state}: keep it secret"));
    screen::say(format!("{public_key}  the public key, for trust roots"));
    screen::say(styled(DIM, format!("fingerprint {fingerprint}")));
    Ok(Exit::Fine)
}

pub(super) fn sign(command: &SignCommand, options: &Options) -> Result<Exit, Failure> {
    let path = &command.document;
    let wrong =
        |error: attest::DraftError| Failure::usage(format!("`{}`: {error}", path.display()));
    let mut draft = Draft::parse(&read(path, MAX_REVOCATION_LIST_BYTES)?).map_err(wrong)?;
    if let Some(key_id) = &command.key_id {
        draft = draft.signed_as(key_id.clone()).map_err(wrong)?;
    }
    draft.check_expiry(observation::now()).map_err(wrong)?;
    if let Some(output) = &command.output {
        output::check(output)?;
    }
    let key = read_key(&command.key, command.passphrase.as_deref())?;
    let fingerprint = key.public_key().fingerprint();
    let signed = draft.sign(&key).map_err(wrong)?;
    let Some(output) = &command.output else {
        screen::print_raw(&signed)?;
        return Ok(Exit::Fine);
    };
    output::replace(output, signed.as_bytes())?;
    if options.json {
        screen::print_json(&json!({ "written": output, "fingerprint": fingerprint.as_str() }))?;
    } else {
        let told = styled(BOLD, output.display());
        screen::say(format!("{told}  signed with the key {:.16}…", fingerprint.as_str()));
    }
    Ok(Exit::Fine)
}

fn read_key(path: &Path, passphrase: Option<&str>) -> Result<SigningKey, Failure> {
    let wrong =
        |error: attest::BadKey| Failure::usage(format!("the key `{}`: {error}", path.display()));
    let text = Zeroizing::new(read_text(path, MAX_PEM_BYTES)?);
    warn_of_readers(path);
    let passphrase = passphrase.map(passphrase::read).transpose()?;
    match SigningKey::from_pem(&text, passphrase.as_ref().map(|text| text.as_str())) {
        Err(attest::BadKey::NeedsPassphrase) => Err(Failure::usage(format!(
            "the key `{}` is encrypted: name its passphrase with `--passphrase env:VARIABLE`, `file:PATH` or `prompt`",
            path.display()
        ))),
        key => key.map_err(wrong),
    }
}

/// Warns that other users can read a key and may already have it. This is not an error: on mounts
/// without file owners it is always the case.
fn warn_of_readers(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
        if mode & 0o077 != 0 {
            let told =
                format!("the key `{}` can be read by other users: `chmod 600` it", path.display());
            screen::remark(styled(YELLOW, screen::readable(&told)));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Random bytes of the operating system.
fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(Failure::internal)?;
    Ok(bytes)
}

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Owner,
    Everyone,
}

/// Writes a file, and fails if it exists.
fn write_new(path: &Path, contents: &[u8], audience: Audience) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => Failure::usage(format!("`{}`: {error}", path.display())),
    };
    let mut file = create_new(path, audience).map_err(wrong)?;
    file.write_all(contents).and_then(|()| file.sync_all()).map_err(wrong)
}

fn create_new(path: &Path, audience: Audience) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // Set the mode at creation: another user could open the file before a later change of its mode.
    #[cfg(unix)]
    if audience == Audience::Owner {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = audience;
    options.open(path)
}

fn exists(path: &Path) -> Failure {
    Failure::usage(format!("`{}` exists already, and a key is never overwritten", path.display()))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
