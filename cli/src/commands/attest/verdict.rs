//! `attest verify`: the clauses against one document.

use super::{find_scheme, read, read_trust_root};
use crate::arguments::Options;
use crate::arguments::attest::VerifyCommand;
use crate::failure::{Exit, Failure};
use crate::observation;
use crate::screen::{self, BOLD, DIM, GREEN, RED, styled};
use attest::{
    Binding, Clearance, Denial, Digest, KeyId, MAX_DOCUMENT_BYTES, MAX_REVOCATION_LIST_BYTES,
    Program, Requirement, RevocationList, Target, VerifiedAttestation,
};
use gate::words::escape_hidden;
use serde::Serialize;

/// The largest program file that is looked at.
const MAX_PROGRAM_BYTES: usize = 1024 * 1024 * 1024;

/// `attest verify --json`.
#[derive(Debug, Serialize)]
struct VerdictDocument<'a> {
    verdict: &'static str,
    clause: Option<&'static str>,
    reason: Option<&'static str>,
    clearance: Option<&'a str>,
    signer: Option<&'a str>,
}

pub(super) fn run(command: &VerifyCommand, options: &Options) -> Result<Exit, Failure> {
    let outcome = judge(command)?;
    if options.json {
        screen::print_json(&document(&outcome))?;
    } else {
        tell(&outcome, options);
    }
    Ok(match outcome {
        Ok(_) => Exit::Fine,
        Err(_) => Exit::Denied,
    })
}

fn judge(command: &VerifyCommand) -> Result<Result<VerifiedAttestation, Denial>, Failure> {
    let root = read_trust_root(&command.trust_root)?;
    let scheme = find_scheme(&command.scheme)?;
    let now = command.now.unwrap_or_else(observation::now);
    // Who checks a file by name binds the document to it, in place of a configuration.
    let file = match &command.program {
        Some(path) => Some(digest_of(path)?),
        None => None,
    };
    let binding = file.clone().map(Binding::File);
    let program = Program { package: None, file };
    let target = match &command.host {
        Some(host) => Target::Remote(host),
        None if binding.is_some() => Target::Local { program: &program, binding: binding.as_ref() },
        None => Target::Unknown,
    };
    let mut requirement = Requirement::new(&scheme, &command.required, target, now)
        .map_err(|error| Failure::usage(format!("`--required`: {error}")))?;
    let list = match &command.revocations {
        Some(path) => {
            let bytes = read(path, MAX_REVOCATION_LIST_BYTES)?;
            let list = RevocationList::verify(&bytes, &root, now);
            Some(list.map_err(|error| Failure::usage(format!("`{}`: {error}", path.display())))?)
        }
        None => None,
    };
    if let Some(list) = &list {
        requirement = requirement.with_revocations(list);
    }
    let bytes = read(&command.document, MAX_DOCUMENT_BYTES)?;
    Ok(attest::verify(&bytes, &root, &requirement))
}

fn digest_of(path: &std::path::Path) -> Result<Digest, Failure> {
    let bytes = read(path, MAX_PROGRAM_BYTES)?;
    if bytes.len() > MAX_PROGRAM_BYTES {
        let told = format!("`{}` has more than {MAX_PROGRAM_BYTES} bytes", path.display());
        return Err(Failure::usage(told));
    }
    Ok(Digest::sha256(&bytes))
}

fn document(outcome: &Result<VerifiedAttestation, Denial>) -> VerdictDocument<'_> {
    match outcome {
        Ok(verified) => VerdictDocument {
            verdict: "ADMIT",
            clause: None,
            reason: None,
            clearance: Some(verified.clearance().name()),
            signer: Some(verified.signer().as_str()),
        },
        Err(denial) => VerdictDocument {
            verdict: "DENY",
            clause: denial.clause().map(attest::Clause::as_str),
            reason: Some(denial.reason().as_str()),
            clearance: denial.clearance().map(Clearance::name),
            signer: denial.signer().map(KeyId::as_str),
        },
    }
}

fn tell(outcome: &Result<VerifiedAttestation, Denial>, options: &Options) {
    match outcome {
        Ok(verified) => {
            let server = escape_hidden(&format!("{} {}", verified.id(), verified.version()));
            screen::say(format!(
                "{}  {}, level {}, signed by {}",
                styled(GREEN.bold(), "ADMIT"),
                styled(BOLD, server),
                escape_hidden(verified.clearance().name()),
                escape_hidden(verified.signer().as_str())
            ));
            if let Some(end) = verified.valid_until().filter(|_| !options.quiet) {
                screen::say(styled(DIM, format!("    counts until {end}")));
            }
        }
        Err(denial) => {
            let clause = denial.clause().map(|clause| format!(" ({})", clause.as_str()));
            screen::say(format!(
                "{}{}  {}: {}",
                styled(RED.bold(), "DENY"),
                clause.unwrap_or_default(),
                styled(BOLD, denial.reason()),
                escape_hidden(denial.detail())
            ));
        }
    }
}
