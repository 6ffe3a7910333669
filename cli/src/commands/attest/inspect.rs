//! `attest inspect`: describes a document or a revocation list. It checks only the signature.

use super::{find_scheme, read, read_trust_root};
use crate::arguments::Options;
use crate::arguments::attest::InspectCommand;
use crate::failure::{Exit, Failure};
use crate::screen::{self, BOLD, DIM, styled};
use attest::{
    AttestationDigest, Clearance, KeyId, MAX_REVOCATION_LIST_BYTES, PublicKey, Scheme,
    SignatureState, Statement, TrustRoot, UnverifiedAttestation, UnverifiedRevocationList,
};
use serde_json::{Map, Value, json};

/// The result of checking a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignatureCheck {
    Missing,
    /// No key was given to check it with.
    Unchecked,
    UnknownSigner,
    Verifies,
    DoesNotVerify,
}

impl SignatureCheck {
    /// Checks the signature, if there is one, with the key of the named signer.
    fn of(
        signer: Option<&KeyId>,
        root: Option<&TrustRoot>,
        signature_by: impl Fn(&PublicKey) -> SignatureState,
    ) -> SignatureCheck {
        let Some(signer) = signer else { return SignatureCheck::Missing };
        let Some(root) = root else { return SignatureCheck::Unchecked };
        let Some(signer) = root.find(signer) else { return SignatureCheck::UnknownSigner };
        match signature_by(signer.public_key()) {
            SignatureState::Missing => SignatureCheck::Missing,
            SignatureState::Verifies => SignatureCheck::Verifies,
            SignatureState::DoesNotVerify => SignatureCheck::DoesNotVerify,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            SignatureCheck::Missing => "missing",
            SignatureCheck::Unchecked => "unchecked",
            SignatureCheck::UnknownSigner => "unknown_signer",
            SignatureCheck::Verifies => "verifies",
            SignatureCheck::DoesNotVerify => "does_not_verify",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            SignatureCheck::Missing => "missing: the document is not signed",
            SignatureCheck::Unchecked => "not checked: name a trust root with `--trust-root`",
            SignatureCheck::UnknownSigner => {
                "not checked: the trust root does not have this signer"
            }
            SignatureCheck::Verifies => "verifies with the key in the trust root",
            SignatureCheck::DoesNotVerify => {
                "does NOT verify: the document was changed, or another key signed it"
            }
        }
    }
}

pub(super) fn run(command: &InspectCommand, options: &Options) -> Result<Exit, Failure> {
    let root = command.trust_root.as_deref().map(read_trust_root).transpose()?;
    let scheme = find_scheme(&command.scheme)?;
    let statement = Statement::parse(&read(&command.document, MAX_REVOCATION_LIST_BYTES)?)
        .map_err(|denial| Failure::denied(denial.reason().as_str(), denial))?;
    match statement {
        Statement::Attestation(document) => {
            let signer = document.signer().filter(|_| document.is_signed());
            let state = SignatureCheck::of(signer, root.as_ref(), |key| document.signature_by(key));
            if options.json {
                screen::print_json(&as_json(&document, &scheme, state))?;
            } else {
                print_result(&document, &scheme, state);
            }
        }
        Statement::Revocations(list) => {
            let signer = list.signer().filter(|_| list.is_signed());
            let state = SignatureCheck::of(signer, root.as_ref(), |key| list.signature_by(key));
            let may_revoke = root.as_ref().map(|root| {
                signer.and_then(|signer| root.find(signer)).is_some_and(attest::Signer::may_revoke)
            });
            if options.json {
                screen::print_json(&list_as_json(&list, state, may_revoke))?;
            } else {
                print_list(&list, state, may_revoke);
            }
        }
    }
    Ok(Exit::Fine)
}

fn list_as_json(
    list: &UnverifiedRevocationList,
    state: SignatureCheck,
    may_revoke: Option<bool>,
) -> Value {
    let signers: Vec<&str> = list.signers().map(KeyId::as_str).collect();
    let documents: Vec<&str> = list.documents().map(AttestationDigest::as_str).collect();
    json!({
        "type": "revocations",
        "issued": list.issued().to_string(),
        "expires": list.expires().to_string(),
        "revoked_signers": signers,
        "revoked_documents": documents,
        "signer": list.signer().map(KeyId::as_str),
        "signature": state.as_str(),
        "may_revoke": may_revoke,
    })
}

fn print_list(list: &UnverifiedRevocationList, state: SignatureCheck, may_revoke: Option<bool>) {
    screen::say(styled(BOLD, "A revocation list"));
    line("counts", &format!("from {} until {}", list.issued(), list.expires()));
    for signer in list.signers() {
        line("revokes", &format!("the key {signer}"));
    }
    for document in list.documents() {
        line("revokes", &format!("the document {document}"));
    }
    if list.signers().len() + list.documents().len() == 0 {
        line("revokes", "nothing");
    }
    let authority = match may_revoke {
        Some(false) => "  (the trust root does not let it revoke)",
        Some(true) | None => "",
    };
    let signer = list.signer().map_or("none", KeyId::as_str);
    line("signer", &format!("{signer}{authority}"));
    line("signature", state.words());
}

fn line(name: &str, text: &str) {
    screen::say(format!("  {} {}", styled(DIM, format!("{name:<13}")), screen::readable(text)));
}

fn as_json(document: &UnverifiedAttestation, scheme: &Scheme, state: SignatureCheck) -> Value {
    let levels = document.tool_clearances().map(|(tool, level)| (tool.to_owned(), level.into()));
    let digests =
        document.tool_digests().map(|(tool, hash)| (tool.to_owned(), hash.to_string().into()));
    json!({
        "document_version": document.document_version(),
        "id": document.id(),
        "publisher": document.publisher(),
        "version": document.version(),
        "clearance": document.clearance(),
        "level": scheme.level(document.clearance()).as_ref().map(Clearance::name),
        "capabilities": document.capabilities(),
        "hosts": document.net_allowed_hosts(),
        "verification": document.verification(),
        "not_before": document.not_before(),
        "expires": document.expires(),
        "package_digest": document.package_digest().map(ToString::to_string),
        "tool_clearance": Value::Object(levels.collect::<Map<_, _>>()),
        "tool_digests": Value::Object(digests.collect::<Map<_, _>>()),
        "signer": document.signer().map(KeyId::as_str),
        "signature": state.as_str(),
        "digest": document.digest().as_str(),
        "unsigned_members": document.unsigned_members(),
    })
}

fn print_result(document: &UnverifiedAttestation, scheme: &Scheme, state: SignatureCheck) {
    let title = format!("{} {}", document.id(), document.version());
    let publisher = screen::readable(document.publisher());
    screen::say(format!("{}, published by {publisher}", styled(BOLD, screen::readable(&title))));
    line("level", &level_words(document, scheme));
    let kind =
        if document.is_for_mcp_server() { "" } else { "  (not a document for an MCP server)" };
    line("capabilities", &format!("{}{kind}", document.capabilities().join(", ")));
    line("for", &bound_words(document));
    line("verification", document.verification().unwrap_or("not said"));
    line("counts", &window_words(document));
    for (tool, level) in document.tool_clearances() {
        line("tool", &format!("{tool}: level {level}"));
    }
    for (tool, hash) in document.tool_digests() {
        line("tool", &format!("{tool}: contract {hash}"));
    }
    line("signer", document.signer().map_or("none", KeyId::as_str));
    line("signature", state.words());
    line("digest", document.digest().as_str());
    if !document.unsigned_members().is_empty() {
        let names = document.unsigned_members().join(", ");
        line("not signed", &format!("{names}: not covered by the signature, and ignored"));
    }
}

fn level_words(document: &UnverifiedAttestation, scheme: &Scheme) -> String {
    let (written, scheme_id) = (document.clearance(), scheme.id());
    match scheme.level(written) {
        Some(level) => {
            let highest = scheme.levels().len().saturating_sub(1);
            format!(
                "{} (rank {} of 0 to {highest} in `{scheme_id}`), written `{written}`",
                level.name(),
                level.rank()
            )
        }
        None => format!("`{written}`, which the scheme `{scheme_id}` does not know"),
    }
}

fn bound_words(document: &UnverifiedAttestation) -> String {
    let hosts = document.net_allowed_hosts();
    match (hosts.is_empty(), document.package_digest()) {
        (true, None) => "any server that presents it".to_owned(),
        (false, None) => hosts.join(", "),
        (true, Some(digest)) => format!("the package {digest}"),
        (false, Some(digest)) => format!("{} and the package {digest}", hosts.join(", ")),
    }
}

fn window_words(document: &UnverifiedAttestation) -> String {
    match (document.not_before(), document.expires()) {
        (None, None) => "as long as its signer does".to_owned(),
        (Some(from), None) => format!("from {from} on"),
        (None, Some(to)) => format!("until {to}"),
        (Some(from), Some(to)) => format!("from {from} until {to}"),
    }
}
