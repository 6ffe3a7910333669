//! Almost valid documents: valid ones with one change, and ones signed by someone else.

use attest::{
    Denial, Draft, Host, MAX_DOCUMENT_BYTES, Requirement, Scheme, SigningKey, Target, TrustRoot,
    VerifiedAttestation,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use contract::time::Timestamp;
use serde_json::{Value, json};

pub(crate) const CATEGORIES: [&str; 10] = [
    "one member changed",
    "one letter changed",
    "one bit of the signature",
    "swapped signers",
    "signed by somebody else",
    "another spelling of the signature",
    "duplicate members",
    "more behind or in front",
    "huge and deep",
    "one byte of the text",
];

const HOST: &str = "a.example";
const SIGNERS: [&str; 3] = ["acme-2026", "acme-2025", "other-2026"];

/// A trust root with three signers, and documents that the first of them signed.
pub(crate) struct Setting {
    root: TrustRoot,
    host: Host,
    documents: Vec<Value>,
}

type Forged = (&'static str, Vec<u8>);

impl Setting {
    pub(crate) fn new() -> Setting {
        let root = TrustRoot::parse(root_document().to_string().as_bytes()).expect("a trust root");
        let documents = drafts().iter().map(|draft| sign(draft, 0)).collect();
        Setting { root, host: Host::parse(HOST).expect("a host"), documents }
    }

    /// The same trust root again, to be held for the lifetime of a session.
    #[allow(dead_code, reason = "the engine's campaign uses it")]
    pub(crate) fn trust_root(&self) -> std::sync::Arc<TrustRoot> {
        std::sync::Arc::new(
            TrustRoot::parse(root_document().to_string().as_bytes()).expect("a root"),
        )
    }

    pub(crate) fn originals(&self) -> impl Iterator<Item = String> {
        self.documents.iter().map(Value::to_string)
    }

    /// As lenient as a requirement can be, so that a document is only denied because it is forged.
    pub(crate) fn judge(&self, bytes: &[u8]) -> Result<VerifiedAttestation, Denial> {
        let scheme = Scheme::built_in("default").expect("a scheme");
        let now = Timestamp::parse("2026-11-16T08:00:00Z").expect("a moment");
        let target = Target::Remote(&self.host);
        let requirement = Requirement::new(scheme, "public", target, now).expect("a level");
        attest::verify(bytes, &self.root, &requirement)
    }

    pub(crate) fn forgeries(&self) -> impl Iterator<Item = Forged> {
        self.documents.iter().flat_map(|document| {
            let mut all = Vec::new();
            let mut put = |category: usize, forged: Vec<String>| {
                let forged = forged.into_iter().map(String::into_bytes);
                all.extend(forged.map(|bytes| (CATEGORIES[category], bytes)));
            };
            put(0, members_changed(document));
            put(1, letters_changed(document));
            put(2, bits_flipped(document));
            put(3, self.swapped(document));
            put(4, signed_by_others(document));
            put(5, respelled(document));
            put(6, duplicated(document));
            put(7, surrounded(document));
            put(8, huge_and_deep(document));
            all.extend(bytes_changed(document).into_iter().map(|bytes| (CATEGORIES[9], bytes)));
            all
        })
    }

    /// Documents with another signer's name, or with the signature of another document.
    fn swapped(&self, document: &Value) -> Vec<String> {
        let mut forged: Vec<String> =
            ["acme-2025", "other-2026", "", "nobody", "ACME-2026", "acme-2026 x"]
                .map(|name| with(document, "signerKeyId", json!(name)))
                .into();
        for other in self.documents.iter().filter(|other| *other != document) {
            forged.push(with(document, "signature", other["signature"].clone()));
        }
        for number in 1..SIGNERS.len() {
            let signature = sign(document, number)["signature"].clone();
            forged.push(with(document, "signature", signature));
        }
        forged
    }
}

fn root_document() -> Value {
    let records = SIGNERS.iter().enumerate().map(|(number, key_id)| {
        json!({
            "keyId": key_id,
            "publicKeyPem": key(number).public_key().to_pem().expect("a key"),
            "approvedClearance": ["public", "internal", "restricted", "restricted-plus", "sci"],
        })
    });
    json!({ "v": 1, "signers": records.collect::<Vec<_>>() })
}

fn key(number: usize) -> SigningKey {
    SigningKey::from_seed([u8::try_from(number).expect("few keys") + 1; 32])
}

fn sign(document: &Value, number: usize) -> Value {
    let draft = Draft::parse(document.to_string().as_bytes()).expect("a draft");
    serde_json::from_str(&draft.sign(&key(number)).expect("signed")).expect("JSON")
}

/// All members are present and nonempty, so that each of them matters.
fn drafts() -> Vec<Value> {
    let first = json!({
        "v": 1, "id": "mcp.example.mail", "publisher": "acme", "version": "2.3.1",
        "clearance": "restricted", "capabilities": ["mcp-server", "tool.invoke"],
        "netAllowedHosts": [HOST], "verification": "tested", "signerKeyId": SIGNERS[0],
    });
    let mut second = first.clone();
    second["id"] = json!("mcp.example.files");
    second["clearance"] = json!("internal");
    second["netAllowedHosts"] = json!([HOST, "b.example:8443"]);
    let mut third = first.clone();
    third["v"] = json!(2);
    third["notBefore"] = json!("2026-01-01T00:00:00Z");
    third["expires"] = json!("2027-01-01T00:00:00Z");
    third["toolClearance"] = json!({ "search": "internal", "send": "restricted" });
    third["toolDigests"] = json!({ "search": "ab".repeat(32) });
    vec![first, second, third]
}

fn with(document: &Value, member: &str, value: Value) -> String {
    let mut changed = document.clone();
    changed[member] = value;
    changed.to_string()
}

fn members(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document.as_object().expect("an object").iter()
}

/// Values that a careless reader might mistake for something else.
fn odd_values() -> Vec<Value> {
    let texts = [
        "",
        " ",
        "a",
        "0",
        "1",
        "2",
        "null",
        "undefined",
        "true",
        "mcp-server",
        "*",
        "sci",
        "public",
        "internal",
        "confidential",
        "restricted-plus",
        "b.example",
        "*.example",
        ".",
        "../",
        "%00",
        "__proto__",
        "\u{0}",
        "\u{200b}",
        "\u{202e}",
        "\u{feff}x",
        "9999-12-31T23:59:59Z",
        "2026-11-16",
        "[object Object]",
        "{}",
        "[]",
        "AAAA",
        "x y",
    ];
    let mut values: Vec<Value> = texts.into_iter().map(Value::from).collect();
    values.extend([
        Value::Null,
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(2),
        json!(-1),
        json!(1.5),
        json!(1e30),
        json!([]),
        json!([1]),
        json!([null]),
        json!(["mcp-server"]),
        json!(["*"]),
        json!([HOST]),
        json!([[HOST]]),
        json!({}),
        json!({ "0": HOST }),
        json!({ "search": "sci" }),
        json!({ "search": "cd".repeat(32) }),
        json!({ "length": 0 }),
        json!("x".repeat(1_024)),
        json!("x".repeat(1_025)),
        json!(vec!["mcp-server"; 65]),
        json!(vec![HOST; 300]),
    ]);
    values
}

fn members_changed(document: &Value) -> Vec<String> {
    let mut forged = Vec::new();
    for (member, value) in members(document) {
        let odd = odd_values().into_iter().filter(|odd| odd != value);
        forged.extend(odd.map(|odd| with(document, member, odd)));
        let mut removed = document.clone();
        removed.as_object_mut().expect("an object").shift_remove(member);
        forged.push(removed.to_string());
        for name in [
            member.to_uppercase(),
            format!("{member} "),
            format!("x-{member}"),
            format!("{member}\u{200b}"),
        ] {
            let mut renamed = removed.clone();
            renamed[name] = value.clone();
            forged.push(renamed.to_string());
        }
        if let Some(items) = value.as_array() {
            forged.push(with(document, member, items.iter().skip(1).cloned().collect()));
            forged.push(with(document, member, items.iter().chain(items).cloned().collect()));
            for more in ["b.example", "mcp-server", "", "*"] {
                let longer = items.iter().cloned().chain([json!(more)]);
                forged.push(with(document, member, longer.collect()));
            }
        }
    }
    forged
}

/// Replaces every letter of every text with several others.
fn letters_changed(document: &Value) -> Vec<String> {
    let mut forged = Vec::new();
    for (member, value) in members(document).filter(|(member, _)| *member != "signature") {
        let Some(text) = value.as_str() else { continue };
        for at in 0..text.len() {
            let (before, letter, after) = (&text[..at], &text[at..=at], &text[at + 1..]);
            let others = ["a", "Z", "0", "-", "_", ".", "é", "\u{200b}", "\u{430}"];
            let mut changes: Vec<String> = others
                .iter()
                .filter(|other| **other != letter)
                .map(|other| format!("{before}{other}{after}"))
                .collect();
            changes.push(format!("{before}{after}"));
            changes.push(format!("{before}{letter}{letter}{after}"));
            forged.extend(changes.into_iter().map(|text| with(document, member, json!(text))));
        }
    }
    forged
}

fn raw_signature(document: &Value) -> Vec<u8> {
    STANDARD.decode(document["signature"].as_str().expect("text")).expect("base64")
}

fn with_signature(document: &Value, raw: &[u8]) -> String {
    with(document, "signature", json!(STANDARD.encode(raw)))
}

fn bits_flipped(document: &Value) -> Vec<String> {
    let raw = raw_signature(document);
    let flipped = (0..raw.len() * 8).map(|bit| {
        let mut raw = raw.clone();
        raw[bit / 8] ^= 1 << (bit % 8);
        with_signature(document, &raw)
    });
    let mut forged: Vec<String> = flipped.collect();
    // With a weak key, the point at infinity and the null scalar pass a verifier that is not
    // strict.
    let mut neutral = vec![0; 64];
    neutral[0] = 1;
    let halves = [raw[32..].to_vec(), raw[..32].to_vec()].concat();
    for other in [
        neutral,
        vec![0; 64],
        vec![0xff; 64],
        halves,
        raw[..63].to_vec(),
        [raw.clone(), vec![0]].concat(),
        vec![],
    ] {
        forged.push(with_signature(document, &other));
    }
    forged
}

fn signed_by_others(document: &Value) -> Vec<String> {
    let mut forged = Vec::new();
    for number in 3..60 {
        forged.push(sign(document, number).to_string());
        let mut named = document.clone();
        named["signerKeyId"] = json!(format!("key-{number}"));
        forged.push(sign(&named, number).to_string());
        named = document.clone();
        named["id"] = json!(format!("mcp.example.{number}"));
        named["clearance"] = json!("sci");
        forged.push(sign(&named, number).to_string());
    }
    forged
}

fn respelled(document: &Value) -> Vec<String> {
    let raw = raw_signature(document);
    let text = STANDARD.encode(&raw);
    let hex: String = raw.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut spellings = vec![
        STANDARD_NO_PAD.encode(&raw),
        format!("{text}="),
        format!("{text}A"),
        hex,
        text.to_lowercase(),
    ];
    spellings.extend(Some(URL_SAFE.encode(&raw)).filter(|safe| *safe != text));
    for at in 0..=text.len() {
        for inside in [" ", "\n", "=", "-", "\u{200b}"] {
            spellings.push(format!("{}{inside}{}", &text[..at], &text[at..]));
        }
    }
    // The last letter before the padding contains unused bits.
    let body = &text[..text.len() - 3];
    let alphabet = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain("+/".chars());
    let last = alphabet.map(|letter| format!("{body}{letter}==")).filter(|other| *other != text);
    spellings.extend(last);
    spellings.into_iter().map(|text| with(document, "signature", json!(text))).collect()
}

fn duplicated(document: &Value) -> Vec<String> {
    let text = document.to_string();
    let inner = &text[1..text.len() - 1];
    let mut forged = Vec::new();
    for (member, value) in members(document) {
        let escaped = format!("\\u{:04x}{}", u32::from(member.as_bytes()[0]), &member[1..]);
        for name in [member.as_str(), &escaped] {
            for other in
                [value.clone(), Value::Null, json!("sci"), json!([]), json!(["*"]), json!({})]
            {
                forged.push(format!("{{\"{name}\":{other},{inner}}}"));
                forged.push(format!("{{{inner},\"{name}\":{other}}}"));
            }
        }
    }
    forged
}

fn surrounded(document: &Value) -> Vec<String> {
    let text = document.to_string();
    let others = [
        "x", "{}", "[]", "null", ",", "}", "]", "\0", "\u{feff}", "//", "/* */", "#", ";", "0",
        "\"\"", "\u{a0}", "\u{1}", "\u{2028}", "--", "<!-- -->", ")]}',\n", "\u{b}", "\u{c}",
        "\u{85}",
    ];
    let mut forged: Vec<String> = others
        .iter()
        .flat_map(|other| [format!("{other}{text}"), format!("{text}{other}")])
        .collect();
    forged.extend([
        format!("[{text}]"),
        format!("{text}\n{text}"),
        json!({ "document": document }).to_string(),
        json!(text).to_string(),
    ]);
    forged
}

fn huge_and_deep(document: &Value) -> Vec<String> {
    let text = document.to_string();
    let inner = &text[1..];
    let deep = |depth: usize| format!("{{\"x\":{}{},{inner}", "[".repeat(depth), "]".repeat(depth));
    let objects =
        |depth: usize| format!("{{\"x\":{}1{},{inner}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let mut forged: Vec<String> = [128, 129, 1_000, 10_000].map(deep).into();
    forged.extend([128, 129, 1_000, 10_000].map(objects));
    let padding = MAX_DOCUMENT_BYTES + 1 - text.len();
    forged.push(format!("{text}{}", " ".repeat(padding)));
    forged.push(format!("{}{text}", "\n".repeat(padding)));
    forged.push(format!("{{\"x\":\"{}\",{inner}", "y".repeat(MAX_DOCUMENT_BYTES)));
    forged.push(format!("{{\"x\":{},{inner}", "9".repeat(2_000)));
    forged.push(format!("{{\"x\":1e99999,{inner}"));
    forged.push("[".repeat(MAX_DOCUMENT_BYTES));
    forged.push("{\"a\":".repeat(MAX_DOCUMENT_BYTES / 5));
    forged
}

/// Removes, doubles or changes every byte of the text, and truncates the text before it.
fn bytes_changed(document: &Value) -> Vec<Vec<u8>> {
    let text = document.to_string().into_bytes();
    let mut forged = Vec::new();
    for at in 0..text.len() {
        let (before, after) = (&text[..at], &text[at + 1..]);
        for other in
            [&b""[..], b"\0", b"\"", b"\\", b"{", b"1", b"a", b"\xff", &[text[at], text[at]]]
        {
            let changed = [before, other, after].concat();
            if changed != text {
                forged.push(changed);
            }
        }
        forged.push(before.to_vec());
    }
    forged
}
