//! `attest verify`: checks one document against the clauses.

use super::{find_scheme, read, read_trust_root};
use crate::arguments::Options;
use crate::arguments::attest::VerifyCommand;
use crate::failure::{Exit, Failure};
use crate::observation;
use crate::screen::{self, BOLD, DIM, GREEN, RED, styled};
use attest::{
    Algorithm, Binding, Clearance, Denial, Digest, DigestHasher, KeyId, MAX_DOCUMENT_BYTES,
    MAX_REVOCATION_LIST_BYTES, PackageSighting, Program, Requirement, RevocationList, Target,
    UnverifiedAttestation, VerifiedAttestation,
};
use engine::package::PackageFinder;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wire::StdioLaunch;

/// The largest program file that is read.
const MAX_PROGRAM_BYTES: u64 = 1024 * 1024 * 1024;
/// The buffer size for reading it.
const PIECE_BYTES: usize = 64 * 1024;

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
        print_result(&outcome, options);
    }
    Ok(match outcome {
        Ok(_) => Exit::Fine,
        Err(_) => Exit::Denied,
    })
}

fn judge(command: &VerifyCommand) -> Result<Result<VerifiedAttestation, Denial>, Failure> {
    let root = read_trust_root(&command.trust_root)?;
    let scheme = find_scheme(&command.scheme)?;
    root.check_scheme(&scheme).map_err(|error| {
        Failure::usage(format!("the trust root `{}`: {error}", command.trust_root.display()))
    })?;
    let now = command.now.unwrap_or_else(observation::now);
    let bytes = read(&command.document, MAX_DOCUMENT_BYTES)?;
    let document = match UnverifiedAttestation::parse(&bytes) {
        Ok(document) => document,
        Err(denial) => return Ok(Err(denial)),
    };
    // A file cannot vouch for itself: the document or the caller has to name its digest.
    let bindings: Vec<Binding> =
        command.program_digest.clone().map(Binding::File).into_iter().collect();
    let program = match &command.program {
        Some(path) => {
            Some(look_at(path, [document.package_digest(), command.program_digest.as_ref()])?)
        }
        None => None,
    };
    let target = match (&command.host, &program) {
        (Some(host), _) => Target::Remote(host),
        (None, Some(program)) => Target::Local { program, bindings: &bindings },
        (None, None) => Target::Unknown,
    };
    let mut requirement = Requirement::new(&scheme, &command.required, target, now)
        .map_err(|error| Failure::usage(format!("`--required`: {error}")))?;
    let list = match &command.revocations {
        Some(path) => {
            Some(RevocationList::verify(&read(path, MAX_REVOCATION_LIST_BYTES)?, &root, now))
        }
        None => None,
    };
    if let Some(list) = &list {
        requirement = requirement.with_revocation_outcome(list);
    }
    Ok(document.verify(&root, &requirement))
}

/// The digests of a program's file, with the algorithms needed for comparison, and the package that
/// the file belongs to.
fn look_at(path: &Path, wanted: [Option<&Digest>; 2]) -> Result<Program, Failure> {
    let algorithms: BTreeSet<Algorithm> =
        wanted.into_iter().flatten().map(Digest::algorithm).collect();
    let wrong = |error: std::io::Error| Failure::usage(format!("`{}`: {error}", path.display()));
    let hashers = algorithms.into_iter().map(DigestHasher::new).collect();
    match digests(File::open(path).map_err(wrong)?, hashers, MAX_PROGRAM_BYTES).map_err(wrong)? {
        Some(file) => Ok(Program { file, package: package_of(path) }),
        None => {
            let told = format!("`{}` has more than {MAX_PROGRAM_BYTES} bytes", path.display());
            Err(Failure::usage(told))
        }
    }
}

fn package_of(path: &Path) -> PackageSighting {
    let launch = StdioLaunch {
        program: path.as_os_str().to_owned(),
        arguments: Vec::new(),
        environment: Vec::new(),
        directory: None,
        confinement: None,
    };
    PackageFinder::new(path, &launch, None).look()
}

/// The digests of a stream of at most `limit` bytes, or none if it is longer. Reads in pieces,
/// never the whole file at once.
fn digests(
    from: impl Read,
    mut hashers: Vec<DigestHasher>,
    limit: u64,
) -> std::io::Result<Option<Vec<Digest>>> {
    let mut from = from.take(limit.saturating_add(1));
    let mut piece = vec![0; PIECE_BYTES];
    let mut length: u64 = 0;
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        length = length.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        for hasher in &mut hashers {
            hasher.update(piece.get(..count).unwrap_or_default());
        }
    }
    Ok((length <= limit).then(|| hashers.into_iter().map(DigestHasher::finish).collect()))
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

fn print_result(outcome: &Result<VerifiedAttestation, Denial>, options: &Options) {
    match outcome {
        Ok(verified) => {
            let server = screen::readable(&format!("{} {}", verified.id(), verified.version()));
            screen::say(format!(
                "{}  {}, level {}, signed by {}",
                styled(GREEN.bold(), "ADMIT"),
                styled(BOLD, server),
                screen::readable(verified.clearance().name()),
                screen::readable(verified.signer().as_str())
            ));
            if let Some(end) = verified.valid_until().filter(|_| !options.quiet) {
                screen::say(styled(DIM, format!("    valid until {end}")));
            }
        }
        Err(denial) => {
            let clause = denial.clause().map(|clause| format!(" ({})", clause.as_str()));
            screen::say(format!(
                "{}{}  {}: {}",
                styled(RED.bold(), "DENY"),
                clause.unwrap_or_default(),
                styled(BOLD, denial.reason()),
                screen::readable(denial.detail())
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_at_its_limit() {
        let bytes = vec![7; PIECE_BYTES + 1];
        let length = u64::try_from(bytes.len()).unwrap();
        let all = [Algorithm::Sha256, Algorithm::Sha512];
        let read = |limit| digests(&bytes[..], all.map(DigestHasher::new).into(), limit).unwrap();
        assert_eq!(read(length), Some(all.map(|algorithm| Digest::of(algorithm, &bytes)).to_vec()));
        assert_eq!(read(length - 1), None);
    }
}
