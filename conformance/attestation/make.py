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
# What JavaScript's trim() takes off: not what Python's strip() does.
WHITE = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
# The order of the curve's group.
ORDER = 2**252 + 27742317777372353535851937790883648493


def utf16(text):
    """JavaScript sorts by these."""
    return text.encode("utf-16-be", "surrogatepass")


def written(value):
    """JSON without white space, members in the order of UTF-16 code units."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{written(name)}:{written(value[name])}" for name in sorted(value, key=utf16)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def canonical(document):
    """The bytes that are signed."""
    if document.get("type") == "mcp-attestation-revocations":
        body = {name: value for name, value in document.items() if name != "signature"}
        body["signers"], body["documents"] = sorted(body["signers"], key=utf16), sorted(body["documents"])
    else:
        body = {name: document.get(name, ABSENT.get(name)) for name in MEMBERS[document["v"]]}
        if document["v"] == 1 and "verification" not in document:
            del body["verification"]
        for name in ("capabilities", "netAllowedHosts"):
            body[name] = sorted(body[name], key=utf16)
        for name, value in body.items():
            if isinstance(value, str):
                body[name] = value.strip(WHITE)
    return written(body).encode()


def sign(document, key="S", body=None):
    signature = KEYS[key].sign(body or canonical(document))
    return {**document, "signature": base64.b64encode(signature).decode()}


def anybodys(document, key="S"):
    """A signature whose first half is the neutral point. openssl takes it; whoever verifies strictly does not."""
    public = KEYS[key].public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    seed = KEYS[key].private_bytes(serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption())
    secret = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little") & ((1 << 254) - 8) | 1 << 254
    point = bytes([1]) + bytes(31)
    challenge = int.from_bytes(hashlib.sha512(point + public + canonical(document)).digest(), "little")
    signature = point + (challenge * secret % ORDER).to_bytes(32, "little")
    KEYS[key].public_key().verify(signature, canonical(document))
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
    yield vector("trimmed-as-the-reference", "A byte order mark is white space to the reference, and a next line is none.",
                 sign(of(id="\ufeff\u3000mcp.example.mail\u0085\u2028", publisher="\u200bacme")))
    yield vector("sorted-by-utf-16", "Lists are sorted by UTF-16 code unit: a pair of surrogates comes before U+FF5E.",
                 sign(of(capabilities=["mcp-server", "\uff5e", "\U0001f600", "tool.invoke", "\u00e9", "Z"])))
    yield vector("escaped", "Strings are escaped as RFC 8785 says, and no more than that.",
                 sign(of(publisher="a\"b\\c/d\u0000\u0008\u001f\u007f\u2028e\U0001f600")))
    yield vector("unknown-member", "Members that no signature covers are passed over.", {**valid, "note": {"anything": [1]}})
    no_verification = without(of(), "verification")
    yield vector("no-verification", "An absent `verification` is left out of the body.", sign(no_verification))
    theirs = canonical(no_verification).replace(b'"v":1,', b'"v":1,"verification":undefined,')
    yield vector("no-verification-reference", "The reference implementation writes `undefined` there, and signs that.",
                 sign(no_verification, body=theirs))
    yield vector("signature-of-anybody", "Half of the signature is the neutral point: plain verification takes it, strict does not.",
                 anybodys(of()), **deny("f", "bad_signature"))
    yield vector("signature-with-white-space", "A signature has one spelling.", {**valid, "signature": " " + valid["signature"] + "\n"},
                 **deny("f", "bad_signature"))
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
    yield vector("other-scheme-than-the-trust-roots", "A trust root that names its scheme approves nothing in another.",
                 sign(of(clearance="restricted")), required="restricted", **deny("e", "signer_not_approved", clearance="RESTRICTED"),
                 trust_root={"v": 1, "scheme": "generic-3-tier", "signers": [signer("S", ["restricted"])]})
    yield vector("the-trust-roots-scheme", "A trust root may name its scheme.", valid, trust_root={**root(), "scheme": "default"})
    yield vector("no-host", "A document for hosts, checked without one.", sign(of(netAllowedHosts=["a.example"])), **deny("h", "host_not_bound"))
    yield vector("host-added", "A host was added after signing.", {**sign(of(netAllowedHosts=["a.example"])), "netAllowedHosts": ["a.example", "b.example"]},
                 **deny("f", "bad_signature"), host="b.example")
    yield vector("host-with-port", "An entry with a port is for that port.", sign(of(netAllowedHosts=["a.example:8443"])), host="a.example:8443")
    yield vector("host-with-padded-port", "An entry has one spelling, but for the case of letters.", sign(of(netAllowedHosts=["a.example:08443"])),
                 **deny("h", "host_not_bound"), host="a.example:8443")
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
    yield vector("v2-expires-blank", "A window that is there and says nothing is no window without an end.", {**sign(without(second(), "expires")), "expires": " "},
                 **deny("a", "manifest_invalid", clearance=None, signer=None))
    yield vector("v2-package", "A document for a package, checked without one.", sign(second(packageDigest="sha256-" + base64.b64encode(b"p" * 32).decode())),
                 **deny("h", "host_not_bound"))
    revoking = root(signer("S", LEVELS), signer("R", [], mayRevoke=True))
    revoked = {**LIST, "documents": [hashlib.sha256(canonical(of())).hexdigest()]}
    yield vector("revoked-document", "The document is on the list.", valid, **deny("f", "attestation_revoked"),
                 trust_root=revoking, revocations=sign(revoked, "R"))
    yield vector("revoked-signer", "The signer is on the list.", valid, **deny("d", "signer_revoked"),
                 trust_root=revoking, revocations=sign({**LIST, "signers": ["S"]}, "R"))
    yield vector("list-stale", "A list that is over clears nobody.", valid, **deny("d", "fetch_failed"), trust_root=revoking,
                 revocations=sign({**LIST, "issued": "2026-11-14T00:00:00Z", "expires": BEFORE}, "R"))
    yield vector("list-of-tomorrow", "A list that is not issued yet clears nobody.", valid, **deny("d", "fetch_failed"), trust_root=revoking,
                 revocations=sign({**LIST, "issued": AFTER}, "R"))
    yield vector("list-forged", "A list that somebody else has signed clears nobody.", valid, **deny("d", "fetch_failed"), trust_root=revoking,
                 revocations=sign(LIST, "T"))
    yield vector("list-of-one-who-may-not", "A list of a signer that may not revoke clears nobody.", valid, **deny("d", "fetch_failed"), trust_root=revoking,
                 revocations=sign({**LIST, "signerKeyId": "S"}, "S"))
    yield vector("list-unsigned", "A list that nobody has signed clears nobody.", valid, **deny("d", "fetch_failed"), trust_root=revoking, revocations=LIST)
    yield vector("list-for-years", "A list that says it is good for longer than 31 days clears nobody.", valid, **deny("d", "fetch_failed"), trust_root=revoking,
                 revocations=sign({**LIST, "expires": "2026-12-17T00:00:01Z"}, "R"))
    yield vector("list-with-null", "A list without its lists clears nobody.", valid, **deny("d", "fetch_failed"), trust_root=revoking,
                 revocations={**sign(LIST, "R"), "signers": None})
    yield vector("list-after-the-signer", "The clauses keep their order: an unknown signer comes before the list.", sign(of(signerKeyId="unknown")),
                 **deny("c", "signer_not_trusted", signer=None), trust_root=revoking, revocations=LIST)
    yield vector("revoked-others", "Others are on the list.", valid, trust_root=revoking,
                 revocations=sign({**LIST, "signers": ["T"], "documents": ["ab" * 32]}, "R"))


def write(folder, cases):
    place = pathlib.Path(__file__).resolve().parent / folder
    place.mkdir(exist_ok=True)
    for case in cases:
        (place / f"{case['name']}.json").write_text(json.dumps(case, indent=2, ensure_ascii=False) + "\n")


write("appendix-d", appendix_d())
write("more", more())
