#!/usr/bin/env python3
"""Writes the attestation vectors anew: python3 make.py (needs the package `cryptography`).

Each vector is a valid document with one thing changed. They are signed here, with keys that everybody knows, and not by
the code that they check.
"""
import base64
import copy
import hashlib
import json
import pathlib

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NOW = "2026-11-16T08:00:00Z"
BEFORE = "2026-11-16T07:59:59Z"
AFTER = "2026-11-16T08:00:01Z"
KEYS = {name: Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number, name in enumerate(("S", "T", "R"), 1)}
LEVELS = ["public", "internal", "confidential", "restricted", "restricted-plus"]

MEMBERS = {
    1: ["v", "id", "publisher", "version", "clearance", "capabilities", "signerKeyId", "verification", "netAllowedHosts"],
    2: ["v", "id", "publisher", "version", "clearance", "capabilities", "signerKeyId", "verification", "netAllowedHosts",
        "notBefore", "expires", "packageDigest", "toolClearance", "toolDigests"],
}
ABSENT = {"capabilities": [], "netAllowedHosts": [], "toolClearance": {}, "toolDigests": {}}


def canonical(document):
    """The bytes that are signed."""
    if document.get("type") == "mcp-attestation-revocations":
        body = {name: value for name, value in document.items() if name != "signature"}
        body["signers"], body["documents"] = sorted(body["signers"]), sorted(body["documents"])
    else:
        body = {name: document.get(name, ABSENT.get(name)) for name in MEMBERS[document["v"]]}
        if document["v"] == 1 and "verification" not in document:
            del body["verification"]
        for name in ("capabilities", "netAllowedHosts"):
            body[name] = sorted(body[name])
        for name, value in body.items():
            if isinstance(value, str):
                body[name] = value.strip()
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sign(document, key="S", body=None):
    signature = KEYS[key].sign(body or canonical(document))
    return {**document, "signature": base64.b64encode(signature).decode()}


def pem(key):
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return KEYS[key].public_key().public_bytes(serialization.Encoding.PEM, kind).decode()


def signer(key, levels, **more):
    return {"keyId": key, "publicKeyPem": pem(key), "approvedClearance": levels, **more}


def root(*signers):
    return {"v": 1, "signers": list(signers) or [signer("S", LEVELS)]}


BASELINE = {
    "v": 1, "id": "mcp.example.mail", "publisher": "acme", "version": "2.3.1", "clearance": "restricted-plus",
    "capabilities": ["mcp-server"], "signerKeyId": "S", "verification": "tested", "netAllowedHosts": [],
}
SECOND = {**BASELINE, "v": 2, "notBefore": "2026-01-01T00:00:00Z", "expires": "2027-01-01T00:00:00Z",
          "toolClearance": {"search": "internal"}, "toolDigests": {"search": "ab" * 32}}
LIST = {"v": 1, "type": "mcp-attestation-revocations", "issued": "2026-11-16T00:00:00Z", "expires": "2026-11-17T00:00:00Z",
        "signers": [], "documents": [], "signerKeyId": "R"}


def of(**changes):
    return {**copy.deepcopy(BASELINE), **changes}


def second(**changes):
    return {**copy.deepcopy(SECOND), **changes}


def without(document, member):
    return {name: value for name, value in document.items() if name != member}


def flipped(document):
    raw = bytearray(base64.b64decode(document["signature"]))
    raw[10] ^= 1
    return {**document, "signature": base64.b64encode(bytes(raw)).decode()}


def vector(name, why, document, verdict="ADMIT", clause=None, reason=None, clearance="RESTRICTED-PLUS", signer="S", **more):
    case = {"name": name, "why": why, "now": NOW, "scheme": "default", "required": "restricted-plus", "host": None,
            "trust_root": root(), "revocations": None, **more}
    case["document" if isinstance(document, dict) else "text"] = document
    case["expect"] = {"verdict": verdict, "clause": clause, "reason": reason, "clearance": clearance, "signer": signer}
    return case


def deny(clause, reason, **more):
    return {"verdict": "DENY", "clause": clause, "reason": reason, **more}


def appendix_d():
    """The eleven vectors of the specification's appendix D."""
    valid = sign(of())
    bound = sign(of(netAllowedHosts=["a.example"]))
    yield vector("01-valid", "The valid baseline, signed by S, bound to no host.", valid)
    yield vector("02-capability", "Another kind of manifest.", sign(of(capabilities=["tool.invoke"])), **deny("a", "not_mcp_server", signer=None))
    yield vector("03-no-signature", "The signature was removed.", without(valid, "signature"), **deny("b", "unsigned", signer=None))
    yield vector("04-unknown-signer", "A signer that the trust root does not have.", sign(of(signerKeyId="unknown")), **deny("c", "signer_not_trusted", signer=None))
    yield vector("05-signer-expired", "The signer's key was trusted until a second ago.", valid, **deny("d", "signer_expired"),
                 trust_root=root(signer("S", LEVELS, notAfter=BEFORE)))
    yield vector("06-signer-not-approved", "The signer is approved only to internal.", valid, **deny("e", "signer_not_approved"),
                 trust_root=root(signer("S", ["public", "internal"])))
    yield vector("07-signature-flipped", "One byte of the signature was flipped.", flipped(valid), **deny("f", "bad_signature"))
    raised = {**sign(of(clearance="internal")), "clearance": "restricted-plus"}
    yield vector("08-clearance-raised", "The level was raised after signing.", raised, **deny("f", "bad_signature"))
    yield vector("09-below-required", "The level is below the required one.", sign(of(clearance="internal")),
                 **deny("g", "below_required", clearance="INTERNAL"))
    yield vector("10-other-host", "The document is for another host.", bound, **deny("h", "host_not_bound"), host="b.example")
    yield vector("11-own-host", "The document is for this host.", bound, host="a.example")


def more():
    """What the specification says in prose, what its reference implementation settles, and version 2."""
    valid = sign(of())
    yield vector("alias", "Level names match without regard to case, by alias too.", sign(of(clearance="Q-Cleared")))
    yield vector("trimmed", "Values are trimmed before they are signed and before they are checked.",
                 {**valid, "id": " mcp.example.mail\n", "clearance": "restricted-plus "})
    yield vector("unknown-member", "Members that no signature covers are passed over.", {**valid, "note": {"anything": [1]}})
    no_verification = without(of(), "verification")
    yield vector("no-verification", "An absent `verification` is left out of the body.", sign(no_verification))
    theirs = canonical(no_verification).replace(b'"v":1,', b'"v":1,"verification":undefined,')
    yield vector("no-verification-reference", "The reference implementation writes `undefined` there, and signs that.",
                 sign(no_verification, body=theirs))
    yield vector("unknown-level", "A level that the scheme does not know.", sign(of(clearance="ultra")),
                 **deny("a", "manifest_invalid", clearance=None, signer=None))
    yield vector("version-3", "A version that nobody here knows.", {**valid, "v": 3}, **deny("a", "manifest_invalid", clearance=None, signer=None))
    yield vector("not-json", "Something else than a document.", "<html>404</html>", **deny("a", "manifest_invalid", clearance=None, signer=None))
    yield vector("duplicate-member", "Two readers could read it differently.",
                 json.dumps(valid).replace('{"v": 1,', '{"v": 1, "id": "other",'), **deny("a", "manifest_invalid", clearance=None, signer=None))
    yield vector("hosts-not-a-list", "A binding that cannot be read is not no binding.", {**valid, "netAllowedHosts": "a.example"},
                 **deny("a", "manifest_invalid", clearance=None, signer=None))
    yield vector("no-signer", "A signature of nobody.", without(valid, "signerKeyId"), **deny("b", "unsigned", signer=None))
    yield vector("other-signer", "A signer of the trust root did not sign it.", {**valid, "signerKeyId": "T"}, **deny("f", "bad_signature", signer="T"),
                 trust_root=root(signer("S", LEVELS), signer("T", LEVELS)))
    yield vector("signer-until-now", "A key counts to the last moment of its window.", valid, trust_root=root(signer("S", LEVELS, notAfter=NOW)))
    yield vector("no-host", "A document for hosts, checked without one.", sign(of(netAllowedHosts=["a.example"])), **deny("h", "host_not_bound"))
    yield vector("host-added", "A host was added after signing.", {**sign(of(netAllowedHosts=["a.example"])), "netAllowedHosts": ["a.example", "b.example"]},
                 **deny("f", "bad_signature"), host="b.example")
    yield vector("host-with-port", "An entry with a port is for that port.", sign(of(netAllowedHosts=["a.example:8443"])), host="a.example:8443")
    yield vector("host-with-other-port", "An entry with a port is for no other.", sign(of(netAllowedHosts=["a.example:8443"])),
                 **deny("h", "host_not_bound"), host="a.example:443")
    yield vector("other-scheme", "Levels are compared within their scheme.", sign(of(clearance="insider")), clearance="MNPI",
                 scheme="financial-services", required="confidential", trust_root=root(signer("S", ["mnpi"])))
    yield vector("v2-valid", "Version 2, within its window.", sign(second()))
    yield vector("v2-expired", "Its window is over.", sign(second(expires=BEFORE)), **deny("f", "attestation_expired"))
    yield vector("v2-not-yet-valid", "Its window has not begun.", sign(second(notBefore=AFTER)), **deny("f", "attestation_not_yet_valid"))
    yield vector("v2-stretched", "Its window was stretched after signing.", {**sign(second(expires=BEFORE)), "expires": AFTER}, **deny("f", "bad_signature"))
    yield vector("v2-as-v1", "Without what version 2 adds it is another document.", {**sign(second()), "v": 1}, **deny("f", "bad_signature"))
    yield vector("v2-tool-above-server", "A tool above its server.", sign(second(toolClearance={"search": "sci"})),
                 **deny("a", "manifest_invalid", signer=None))
    yield vector("v2-package", "A document for a package, checked without one.", sign(second(packageDigest="sha256-" + base64.b64encode(b"p" * 32).decode())),
                 **deny("h", "host_not_bound"))
    revoking = root(signer("S", LEVELS), signer("R", [], mayRevoke=True))
    revoked = {**LIST, "documents": [hashlib.sha256(canonical(of())).hexdigest()]}
    yield vector("revoked-document", "The document is on the list.", valid, **deny("f", "attestation_revoked"),
                 trust_root=revoking, revocations=sign(revoked, "R"))
    yield vector("revoked-signer", "The signer is on the list.", valid, **deny("d", "signer_revoked"),
                 trust_root=revoking, revocations=sign({**LIST, "signers": ["S"]}, "R"))
    yield vector("revoked-others", "Others are on the list.", valid, trust_root=revoking,
                 revocations=sign({**LIST, "signers": ["T"], "documents": ["ab" * 32]}, "R"))


def write(folder, cases):
    place = pathlib.Path(__file__).resolve().parent / folder
    place.mkdir(exist_ok=True)
    for case in cases:
        (place / f"{case['name']}.json").write_text(json.dumps(case, indent=2, ensure_ascii=False) + "\n")


write("appendix-d", appendix_d())
write("more", more())
