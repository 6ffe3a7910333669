//! Measures the cost of admission: verifying one document, compared with only the strict Ed25519
//! verification of the same bytes.
//!
//! Prints each figure with its bound, and exits with 1 if one exceeds it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use attest::{Draft, Host, KeyId, Requirement, Scheme, SigningKey, Target, TrustRoot};
use attest::{ToolAllowlist, UnverifiedAttestation, VerifiedAttestation};
use contract::time::Timestamp;
use ed25519_dalek::{Signature, Signer};
use holdpoint_bench::figures::{Figures, exit_code};
use holdpoint_bench::timing::{best_times, ratio};
use serde_json::{Value, json};
use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;

/// Many short rounds, so that some are not interrupted by other activity on the machine.
const ROUNDS: usize = 400;
/// The number of verifications per round.
const EACH: usize = 20;
const SEED: [u8; 32] = [7; 32];
const SIGNER: &str = "acme-2026";

fn main() -> ExitCode {
    exit_code(measure())
}

fn measure() -> Result<Figures, Box<dyn Error>> {
    let mut figures = Figures::default();
    let root = trust_root()?;
    let host = Host::parse("mail.example.com")?;
    let scheme = Scheme::built_in("default").ok_or("no scheme")?;
    let requirement =
        Requirement::new(scheme, "internal", Target::Remote(&host), Timestamp(1_794_816_000_000))?;
    // A document that names many tools is mostly text; its figure has no bound.
    for (name, document, bound) in [
        ("version 1", document(1, 0), Some(1.5)),
        ("version 2", document(2, 0), Some(1.5)),
        ("version 2, 40 tools", document(2, 40), None),
    ] {
        let draft = Draft::parse(document.to_string().as_bytes())?;
        let signed = draft.signed_as(KeyId::parse(SIGNER)?)?.sign(&SigningKey::from_seed(SEED))?;
        let body = UnverifiedAttestation::parse(signed.as_bytes())?.canonical_body();
        let key = ed25519_dalek::SigningKey::from_bytes(&SEED);
        let (public, signature) = (key.verifying_key(), key.sign(&body));
        let verify = || attest::verify(signed.as_bytes(), &root, &requirement);
        verify()?;
        let [bare, ours] = best_times(
            ROUNDS,
            [&mut || bare_verifications(&public, &body, &signature), &mut || {
                verifications(&verify);
            }],
        );
        println!(
            "{name}: {} bytes, {} of them signed; bare {bare:?}, ours {ours:?}, {EACH} each",
            signed.len(),
            body.len()
        );
        match bound {
            Some(bound) => {
                let what = format!("{name}, times bare Ed25519");
                figures.tell(&what, ratio(ours, bare), bound);
            }
            None => println!("{name}, times bare Ed25519: {:.2}", ratio(ours, bare)),
        }
    }
    allowlist()?;
    Ok(figures)
}

fn bare_verifications(public: &ed25519_dalek::VerifyingKey, body: &[u8], signature: &Signature) {
    for _ in 0..EACH {
        drop(black_box(public.verify_strict(black_box(body), signature)));
    }
}

fn verifications(verify: &impl Fn() -> Result<VerifiedAttestation, attest::Denial>) {
    for _ in 0..EACH {
        drop(black_box(verify()));
    }
}

fn trust_root() -> Result<TrustRoot, Box<dyn Error>> {
    let pem = SigningKey::from_seed(SEED).public_key().to_pem()?;
    let signer = json!({ "keyId": SIGNER, "publicKeyPem": pem, "approvedClearance": ["public", "internal"] });
    Ok(TrustRoot::parse(json!({ "v": 1, "signers": [signer] }).to_string().as_bytes())?)
}

fn document(version: u8, tools: usize) -> Value {
    let mut document = json!({
        "v": version,
        "id": "mcp.example.mail",
        "publisher": "acme",
        "version": "2.3.1",
        "clearance": "internal",
        "capabilities": ["mcp-server"],
        "netAllowedHosts": ["mail.example.com"],
        "verification": "tested",
    });
    if let Some(members) = document.as_object_mut().filter(|_| version == 2) {
        let digests = (0..tools).map(|at| (format!("tool_number_{at}"), json!("ab".repeat(32))));
        members.insert("toolDigests".to_owned(), Value::Object(digests.collect()));
        members.insert("expires".to_owned(), json!("2099-01-01T00:00:00Z"));
    }
    document
}

/// Only for information: this figure has no bound.
fn allowlist() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = (0..100).map(|at| format!("tool_number_{at}")).collect();
    let list = ToolAllowlist::new(names.iter().map(String::as_str))?;
    let [time] = best_times(
        ROUNDS,
        [&mut || {
            for name in &names {
                drop(black_box(list.check(black_box(name))));
            }
        }],
    );
    println!("a tool is found on a list of 100 in {:?}", time / 100);
    Ok(())
}
