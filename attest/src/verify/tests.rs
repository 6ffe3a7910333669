use super::*;
use crate::fixture::{
    NOW, SIGNER, baseline, baseline_2, key, now, requirement, requirement_of, revocations,
    revoker_key, root, root_document, root_of, signed, signed_by, signer,
};
use crate::{Binding, Digest, Host, Package, PackageSighting, Program};
use serde_json::{Value, json};

fn outcome(
    document: &Value,
    root: &TrustRoot,
    requirement: &Requirement<'_>,
) -> Result<VerifiedAttestation, Denial> {
    verify(document.to_string().as_bytes(), root, requirement)
}

#[track_caller]
fn denied(outcome: Result<VerifiedAttestation, Denial>, clause: Clause, reason: Reason) -> Denial {
    let denial = outcome.unwrap_err();
    assert_eq!((denial.clause(), denial.reason()), (Some(clause), reason), "{denial}");
    denial
}

#[track_caller]
fn check(document: &Value, clause: Clause, reason: Reason) -> Denial {
    denied(outcome(document, &root(), &requirement()), clause, reason)
}

fn changed(document: &Value, member: &str, value: Value) -> Value {
    let mut changed = document.clone();
    changed[member] = value;
    changed
}

#[test]
fn a_valid_document_is_admitted_with_what_it_says() {
    let verified = outcome(&signed(&baseline()), &root(), &requirement()).unwrap();
    assert_eq!(verified.id(), "mcp.example.mail");
    assert_eq!((verified.publisher(), verified.version()), ("acme", "2.3.1"));
    assert_eq!(verified.clearance().name(), "RESTRICTED-PLUS");
    assert_eq!(verified.signer(), &signer());
    assert_eq!(verified.identity().key, key().public_key().fingerprint());
    assert_eq!(verified.valid_until(), None);
}

#[test]
fn the_first_clause_that_fails_decides() {
    // Everything is wrong with this document; the test fixes one clause after the other.
    let host = Host::parse("b.example").unwrap();
    let requirement = requirement_of("sci", Target::Remote(&host));
    let mut document = baseline();
    document["netAllowedHosts"] = json!(["a.example"]);
    document["clearance"] = json!("no such level");
    document["capabilities"] = json!([]);
    document["signerKeyId"] = Value::Null;
    let mut trust = root_document();
    trust["signers"][0]["notAfter"] = json!("2026-01-01");
    let judge = |document: &Value, trust: &Value| outcome(document, &root_of(trust), &requirement);
    denied(judge(&document, &trust), Clause::A, Reason::ManifestInvalid);
    document["clearance"] = json!("sci");
    denied(judge(&document, &trust), Clause::A, Reason::NotMcpServer);
    document["capabilities"] = json!(["mcp-server"]);
    denied(judge(&document, &trust), Clause::B, Reason::Unsigned);
    document["signerKeyId"] = json!("unknown");
    document["signature"] = json!("AAAA");
    denied(judge(&document, &trust), Clause::C, Reason::SignerNotTrusted);
    document["signerKeyId"] = json!(SIGNER);
    denied(judge(&document, &trust), Clause::D, Reason::SignerExpired);
    trust["signers"][0].as_object_mut().unwrap().remove("notAfter");
    denied(judge(&document, &trust), Clause::E, Reason::SignerNotApproved);
    document["clearance"] = json!("restricted");
    denied(judge(&document, &trust), Clause::F, Reason::BadSignature);
    let document = signed(&document);
    denied(judge(&document, &trust), Clause::G, Reason::BelowRequired);
    let requirement = requirement_of("restricted", Target::Remote(&host));
    denied(outcome(&document, &root(), &requirement), Clause::H, Reason::HostNotBound);
    let host = Host::parse("a.example").unwrap();
    let requirement = requirement_of("restricted", Target::Remote(&host));
    assert!(outcome(&document, &root(), &requirement).is_ok());
}

#[test]
fn a_denial_names_the_signer_only_once_it_is_known() {
    let unknown = changed(&signed(&baseline()), "signerKeyId", json!("somebody"));
    let denial = check(&unknown, Clause::C, Reason::SignerNotTrusted);
    assert_eq!(denial.signer(), None);
    assert_eq!(denial.clearance().unwrap().name(), "RESTRICTED-PLUS");
    let tampered = changed(&signed(&baseline()), "id", json!("other"));
    let denial = check(&tampered, Clause::F, Reason::BadSignature);
    assert_eq!(denial.signer(), Some(&signer()));
}

#[test]
fn missing_parts_have_their_own_reasons() {
    let document = signed(&baseline());
    let without = |member: &str| {
        let mut document = document.clone();
        document.as_object_mut().unwrap().remove(member);
        document
    };
    check(&without("capabilities"), Clause::A, Reason::NotMcpServer);
    check(&without("signerKeyId"), Clause::B, Reason::Unsigned);
    check(&without("signature"), Clause::B, Reason::Unsigned);
    check(&changed(&document, "signature", json!(" ")), Clause::B, Reason::Unsigned);
    check(&changed(&document, "signature", json!("not base64")), Clause::F, Reason::BadSignature);
    check(&changed(&document, "signature", json!(7)), Clause::A, Reason::ManifestInvalid);
    check(&without("id"), Clause::A, Reason::ManifestInvalid);
    check(
        &changed(&document, "capabilities", json!(["MCP-SERVER"])),
        Clause::A,
        Reason::NotMcpServer,
    );
    check(
        &changed(&document, "capabilities", json!(["mcp-server "])),
        Clause::A,
        Reason::NotMcpServer,
    );
}

#[test]
fn unknown_members_are_passed_over() {
    let document = changed(&signed(&baseline()), "note", json!({ "anything": [1] }));
    assert!(outcome(&document, &root(), &requirement()).is_ok());
}

#[test]
fn a_signer_counts_until_its_last_moment() {
    let until = |end: &str| {
        let mut trust = root_document();
        trust["signers"][0]["notAfter"] = json!(end);
        outcome(&signed(&baseline()), &root_of(&trust), &requirement())
    };
    assert_eq!(until(NOW).unwrap().valid_until(), Some(now()));
    denied(until("2026-11-16T07:59:59.999Z"), Clause::D, Reason::SignerExpired);
}

#[test]
fn a_signer_vouches_for_the_levels_it_is_listed_for_and_no_others() {
    let approved = |levels: Value| {
        let mut trust = root_document();
        trust["signers"][0]["approvedClearance"] = levels;
        outcome(&signed(&baseline()), &root_of(&trust), &requirement())
    };
    assert!(approved(json!(["restricted-plus"])).is_ok());
    assert!(approved(json!(["public", "Q-Cleared"])).is_ok());
    for levels in [json!(["internal"]), json!(["sci"]), json!(["mnpi", "restricted"])] {
        denied(approved(levels), Clause::E, Reason::SignerNotApproved);
    }
}

#[test]
fn a_trust_root_may_be_for_one_scheme() {
    let judge = |scheme: Option<&str>| {
        let mut trust = root_document();
        trust["signers"][0]["approvedClearance"] = json!(["restricted"]);
        if let Some(scheme) = scheme {
            trust["scheme"] = json!(scheme);
        }
        let document = signed(&changed(&baseline(), "clearance", json!("restricted")));
        let requirement = requirement_of("restricted", Target::Unknown);
        outcome(&document, &root_of(&trust), &requirement)
    };
    assert!(judge(None).is_ok());
    assert!(judge(Some("default")).is_ok());
    // The same name exists in the other scheme, where it is the highest level.
    let denial = denied(judge(Some("generic-3-tier")), Clause::E, Reason::SignerNotApproved);
    assert!(denial.detail().contains("`generic-3-tier`"), "{denial}");
}

#[test]
fn a_level_is_compared_within_its_scheme() {
    let scheme = Scheme::built_in("financial-services").unwrap();
    let mut trust = root_document();
    trust["signers"][0]["approvedClearance"] = json!(["insider", "confidential"]);
    let judge = |clearance: &str, required: &str| {
        let document = signed(&changed(&baseline(), "clearance", json!(clearance)));
        let requirement = Requirement::new(scheme, required, Target::Unknown, now()).unwrap();
        outcome(&document, &root_of(&trust), &requirement)
    };
    assert_eq!(judge("MNPI", "mnpi").unwrap().clearance().name(), "MNPI");
    assert!(judge("mnpi", "confidential").is_ok());
    denied(judge("confidential", "mnpi"), Clause::G, Reason::BelowRequired);
    denied(judge("restricted-plus", "mnpi"), Clause::A, Reason::ManifestInvalid);
    let unknown = Requirement::new(scheme, "restricted-plus", Target::Unknown, now()).unwrap_err();
    assert!(unknown.to_string().contains("PRIVILEGED-COUNSEL"), "{unknown}");
}

#[test]
fn a_signature_of_the_reference_counts_where_verification_is_absent() {
    let mut document = baseline();
    document.as_object_mut().unwrap().remove("verification");
    let read = UnverifiedAttestation::parse(document.to_string().as_bytes()).unwrap();
    let reference = read.body.canonical_of_reference().unwrap();
    for body in [reference, read.canonical_body()] {
        document["signature"] = json!(key().sign_text(&body));
        assert!(outcome(&document, &root(), &requirement()).is_ok());
        let said = changed(&document, "verification", json!("tested"));
        check(&said, Clause::F, Reason::BadSignature);
    }
}

#[test]
fn hosts_are_bound() {
    let document =
        signed(&changed(&baseline(), "netAllowedHosts", json!(["a.example", "c.example:8443"])));
    let judge = |host: &str| {
        let host = Host::parse(host).unwrap();
        outcome(&document, &root(), &requirement_of("public", Target::Remote(&host)))
    };
    for host in ["a.example", "A.example:443", "c.example:8443"] {
        assert!(judge(host).is_ok(), "{host}");
    }
    for host in ["b.example", "a.example.b.example", "c.example", "c.example:443", "example"] {
        denied(judge(host), Clause::H, Reason::HostNotBound);
    }
    check(&document, Clause::H, Reason::HostNotBound);
}

fn program(byte: u8) -> Program {
    let package = Package {
        name: "mail".to_owned(),
        version: "2.3.1".to_owned(),
        integrity: Digest::sha256(&[byte]),
    };
    Program { package: PackageSighting::Known(package), file: vec![Digest::sha256(&[byte, byte])] }
}

#[test]
fn a_program_is_bound_by_the_configuration() {
    let document = signed(&baseline());
    let judge = |bindings: &[Binding]| {
        let program = program(1);
        outcome(
            &document,
            &root(),
            &requirement_of("public", Target::Local { program: &program, bindings }),
        )
    };
    let package = |name: &str, version: &str, byte: u8| {
        Binding::Package(Package {
            name: name.to_owned(),
            version: version.to_owned(),
            integrity: Digest::sha256(&[byte]),
        })
    };
    let (right, file) = (package("mail", "2.3.1", 1), Binding::File(Digest::sha256(&[1, 1])));
    assert!(judge(std::slice::from_ref(&right)).is_ok());
    assert!(judge(std::slice::from_ref(&file)).is_ok());
    assert!(judge(&[right.clone(), file.clone()]).is_ok());
    for binding in [
        package("male", "2.3.1", 1),
        package("mail", "2.3.2", 1),
        package("mail", "2.3.1", 2),
        Binding::File(Digest::sha256(&[2, 2])),
    ] {
        // One failing binding is not compensated by others that match.
        for bindings in [vec![binding.clone()], vec![right.clone(), file.clone(), binding]] {
            denied(judge(&bindings), Clause::H, Reason::HostNotBound);
        }
    }
    denied(judge(&[]), Clause::H, Reason::HostNotBound);
}

#[test]
fn a_denial_says_which_package_was_found_or_why_none() {
    let document = signed(&baseline());
    let wanted = Package {
        name: "mail".to_owned(),
        version: "9".to_owned(),
        integrity: Digest::sha256(&[1]),
    };
    let bindings = [Binding::Package(wanted)];
    let detail = |program: &Program, bindings: &[Binding]| {
        let requirement = requirement_of("public", Target::Local { program, bindings });
        outcome(&document, &root(), &requirement).unwrap_err().detail().to_owned()
    };
    let found = "its package is `mail` in version `2.3.1` with the integrity `sha256-";
    for told in [detail(&program(1), &bindings), detail(&program(1), &[])] {
        assert!(told.contains(found), "{told}");
    }
    let unknown =
        Program { package: PackageSighting::Unknown("no record".to_owned()), file: Vec::new() };
    let told = detail(&unknown, &bindings);
    assert!(told.ends_with("its package is not known: no record"), "{told}");
}

#[test]
fn a_document_for_hosts_is_not_for_a_program() {
    let document = signed(&changed(&baseline(), "netAllowedHosts", json!(["a.example"])));
    let (program, binding) = (program(1), Binding::File(Digest::sha256(&[1, 1])));
    let target = Target::Local { program: &program, bindings: &[binding] };
    denied(
        outcome(&document, &root(), &requirement_of("public", target)),
        Clause::H,
        Reason::HostNotBound,
    );
}

#[test]
fn a_document_may_bind_its_program_itself() {
    let of = |digest: &Digest| {
        signed(&changed(&baseline_2(), "packageDigest", json!(digest.to_string())))
    };
    let (archive, file) = (of(&Digest::sha256(&[1])), of(&Digest::sha256(&[1, 1])));
    for document in [&archive, &file] {
        let judge = |target| outcome(document, &root(), &requirement_of("public", target));
        let (right, wrong, host) = (program(1), program(2), Host::parse("a.example").unwrap());
        let nothing = Program::default();
        assert!(judge(Target::Local { program: &right, bindings: &[] }).is_ok());
        let file = |bytes: [u8; 2]| Binding::File(Digest::sha256(&bytes));
        let (same, other) = ([file([1, 1])], [file([2, 2])]);
        assert!(judge(Target::Local { program: &right, bindings: &same }).is_ok());
        for target in [
            Target::Local { program: &right, bindings: &other },
            Target::Local { program: &wrong, bindings: &other },
            Target::Local { program: &wrong, bindings: &[] },
            Target::Local { program: &nothing, bindings: &[] },
            Target::Remote(&host),
            Target::Unknown,
        ] {
            denied(judge(target), Clause::H, Reason::HostNotBound);
        }
    }
}

#[test]
fn a_digest_of_any_algorithm_binds_a_file() {
    use crate::Algorithm;
    for algorithm in [Algorithm::Sha256, Algorithm::Sha384, Algorithm::Sha512] {
        let digest = Digest::of(algorithm, b"program").to_string();
        let document = signed(&changed(&baseline_2(), "packageDigest", json!(digest)));
        let judge = |bytes: &[u8]| {
            let file = vec![Digest::sha256(bytes), Digest::of(algorithm, bytes)];
            let program = Program { package: PackageSighting::default(), file };
            let target = Target::Local { program: &program, bindings: &[] };
            outcome(&document, &root(), &requirement_of("public", target))
        };
        assert!(judge(b"program").is_ok(), "{digest}");
        denied(judge(b"other"), Clause::H, Reason::HostNotBound);
    }
}

#[test]
fn a_document_counts_within_its_window_both_ends_included() {
    let window = |from: &str, to: &str| {
        let document = changed(&baseline_2(), "notBefore", json!(from));
        outcome(&signed(&changed(&document, "expires", json!(to))), &root(), &requirement())
    };
    let (before, after) = ("2026-11-16T07:59:59Z", "2026-11-16T08:00:01Z");
    assert!(window(NOW, after).is_ok());
    assert_eq!(window(before, NOW).unwrap().valid_until(), Some(now()));
    denied(window(after, "2027-01-01"), Clause::F, Reason::AttestationNotYetValid);
    denied(window("2026-01-01", before), Clause::F, Reason::AttestationExpired);
}

#[test]
fn a_window_that_was_stretched_is_a_bad_signature() {
    let expired = signed(&changed(&baseline_2(), "expires", json!("2026-11-01T00:00:00Z")));
    check(&expired, Clause::F, Reason::AttestationExpired);
    let stretched = changed(&expired, "expires", json!("2099-01-01T00:00:00Z"));
    check(&stretched, Clause::F, Reason::BadSignature);
    check(&changed(&expired, "v", json!(1)), Clause::F, Reason::BadSignature);
}

#[test]
fn a_tool_has_its_own_level_or_its_servers() {
    let document = signed(&baseline_2());
    let verified = outcome(&document, &root(), &requirement()).unwrap();
    assert_eq!(verified.tool_clearance("search").name(), "INTERNAL");
    assert_eq!(verified.tool_clearance("send").name(), "RESTRICTED-PLUS");
    assert_eq!(verified.check_tool("send"), Ok(()));
    let denial = verified.check_tool("search").unwrap_err();
    assert_eq!((denial.clause(), denial.reason()), (Some(Clause::G), Reason::BelowRequired));
    let modest = requirement_of("internal", Target::Unknown);
    assert_eq!(outcome(&document, &root(), &modest).unwrap().check_tool("search"), Ok(()));
    let above = signed(&changed(&baseline_2(), "toolClearance", json!({ "search": "sci" })));
    check(&above, Clause::A, Reason::ManifestInvalid);
    let unknown = signed(&changed(&baseline_2(), "toolClearance", json!({ "search": "mnpi" })));
    check(&unknown, Clause::A, Reason::ManifestInvalid);
}

#[test]
fn a_tools_contract_is_the_one_that_was_vouched_for() {
    let verified = outcome(&signed(&baseline_2()), &root(), &requirement()).unwrap();
    let vouched = EntryHash::from_bytes([0xab; 32]);
    assert_eq!(verified.check_digest("search", vouched), Ok(Vouched::Yes));
    assert_eq!(verified.check_digest("send", vouched), Ok(Vouched::NotNamed));
    let denial = verified.check_digest("search", EntryHash::from_bytes([0xac; 32])).unwrap_err();
    assert_eq!((denial.clause(), denial.reason()), (None, Reason::ToolDigestMismatch));
}

#[test]
fn what_was_revoked_does_not_count() {
    let document = signed(&baseline_2());
    let judge = |changes: Value| {
        let list = signed_by(&revocations(&changes), &revoker_key()).to_string();
        let list = RevocationList::verify(list.as_bytes(), &root(), now()).unwrap();
        let requirement = requirement().with_revocations(&list);
        outcome(&document, &root(), &requirement)
    };
    let verified = judge(json!({ "signers": ["other"], "documents": ["ab".repeat(32)] })).unwrap();
    assert_eq!(verified.valid_until().unwrap().to_string(), "2026-11-17T00:00:00Z");
    denied(judge(json!({ "signers": [SIGNER] })), Clause::D, Reason::SignerRevoked);
    let digest = verified.digest();
    denied(judge(json!({ "documents": [digest.as_str()] })), Clause::F, Reason::AttestationRevoked);
}

#[test]
fn a_stale_list_admits_nobody() {
    let list = signed_by(&revocations(&json!({})), &revoker_key()).to_string();
    let list = RevocationList::verify(list.as_bytes(), &root(), now()).unwrap();
    let later = Timestamp::parse("2026-11-18").unwrap();
    let scheme = Scheme::built_in("default").unwrap();
    let requirement = Requirement::new(scheme, "public", Target::Unknown, later).unwrap();
    assert!(outcome(&signed(&baseline()), &root(), &requirement).is_ok());
    let requirement = requirement.with_revocations(&list);
    denied(outcome(&signed(&baseline()), &root(), &requirement), Clause::D, Reason::FetchFailed);
}

#[test]
fn a_signature_has_one_spelling() {
    let document = signed(&baseline());
    assert!(outcome(&document, &root(), &requirement()).is_ok());
    let signature = document["signature"].as_str().unwrap();
    for spelling in
        [format!(" {signature}"), format!("{signature}\n"), format!("{signature}\u{feff}")]
    {
        let forged = changed(&document, "signature", json!(spelling));
        denied(outcome(&forged, &root(), &requirement()), Clause::F, Reason::BadSignature);
    }
}

#[test]
fn a_list_that_does_not_count_clears_nobody_at_its_clause() {
    let judge = |document: &Value, list: &Value| {
        let list = RevocationList::verify(list.to_string().as_bytes(), &root(), now());
        outcome(document, &root(), &requirement().with_revocation_outcome(&list))
    };
    let document = signed(&baseline());
    let list = revocations(&json!({}));
    assert!(judge(&document, &signed_by(&list, &revoker_key())).is_ok());
    let denial = denied(judge(&document, &list), Clause::D, Reason::FetchFailed);
    assert_eq!(denial.signer(), Some(&signer()));
    denied(judge(&document, &json!({})), Clause::D, Reason::FetchFailed);
    let unknown = changed(&document, "signerKeyId", json!("somebody"));
    denied(judge(&unknown, &list), Clause::C, Reason::SignerNotTrusted);
}

/// Thousands of levels, looked up in a scheme of thousands of names. Anyone can send this, since
/// none of it is signed.
#[test]
fn an_unsigned_document_costs_little_whatever_the_scheme() {
    let alias = |rank: usize, at: usize| format!("Ä{rank}-{at}-{}", "é".repeat(8));
    let levels = (0..crate::MAX_LEVELS).map(|rank| {
        let aliases: Vec<String> = (0..60).map(|at| alias(rank, at)).collect();
        json!({ "rank": rank, "canonicalName": format!("L{rank}"), "aliases": aliases })
    });
    let scheme = json!({ "id": "wide", "levels": levels.collect::<Vec<_>>() }).to_string();
    let scheme = Scheme::parse(scheme.as_bytes()).unwrap();
    let last = alias(crate::MAX_LEVELS - 1, 59);
    let tools = (0..crate::MAX_TOOLS).map(|at| (format!("t{at}"), json!(last)));
    let mut document = changed(&baseline_2(), "clearance", json!(last));
    document["toolClearance"] = Value::Object(tools.collect());
    let requirement = Requirement::new(&scheme, "L0", Target::Unknown, now()).unwrap();
    let start = std::time::Instant::now();
    check_unsigned(&outcome(&document, &root(), &requirement));
    // A hundredth of that is usual. Searching all names for every tool would take a minute.
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[track_caller]
fn check_unsigned(outcome: &Result<VerifiedAttestation, Denial>) {
    assert_eq!(outcome.as_ref().unwrap_err().reason(), Reason::Unsigned);
}
