use super::*;

const NAME: &str = "_holdpoint.example.com";

/// A response with these records: owner, type and data.
fn answer(flags: u16, records: &[(&[u8], u16, &[u8])]) -> Vec<u8> {
    let mut bytes = question(7, NAME).unwrap();
    bytes[2..4].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
    for (owner, kind, data) in records {
        bytes.extend_from_slice(owner);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(INTERNET.to_be_bytes());
        bytes.extend([0, 0, 1, 44]);
        bytes.extend((data.len() as u16).to_be_bytes());
        bytes.extend_from_slice(data);
    }
    bytes
}

/// A pointer to the name in the question.
const ASKED: &[u8] = &[0xc0, 12];

fn texts(bytes: &[u8]) -> Option<Vec<String>> {
    match read_answer(bytes, 7, NAME)? {
        DnsAnswer::Texts(texts) => Some(texts),
        DnsAnswer::Failed(_) => None,
    }
}

#[test]
fn a_question_is_as_rfc_1035_has_it() {
    let bytes = question(0x0102, "_holdpoint.a.example").unwrap();
    let expected = b"\x01\x02\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0a_holdpoint\x01a\x07example\x00\x00\x10\x00\x01";
    assert_eq!(bytes, expected);
    for bad in ["", "a..b", &"a".repeat(64), &vec!["a".repeat(60); 5].join(".")] {
        assert_eq!(question(1, bad), None, "{bad}");
    }
}

#[test]
fn texts_of_the_name_are_read_and_those_of_others_are_not() {
    let bytes = answer(
        0x8180,
        &[
            (ASKED, TXT, b"\x03v1 \x04more"),
            (b"\x05other\xc0\x17", TXT, b"\x06forged"),
            (ASKED, 1, &[127, 0, 0, 1]),
            (ASKED, TXT, b"\x02\xff\xfe"),
        ],
    );
    assert_eq!(texts(&bytes).unwrap(), ["v1 more"]);
    assert_eq!(texts(&answer(0x8180, &[])).unwrap(), Vec::<String>::new());
    assert_eq!(texts(&answer(0x8183, &[])).unwrap(), Vec::<String>::new(), "no such name");
    assert_eq!(read_answer(&answer(0x8182, &[]), 7, NAME), Some(DnsAnswer::Failed(2)));
}

#[test]
fn an_alias_is_followed_and_a_circle_ends() {
    let target = b"\x06claims\x07example\x03net\x00";
    let bytes = answer(0x8180, &[(target, TXT, b"\x02hi"), (ASKED, CNAME, target)]);
    assert_eq!(texts(&bytes).unwrap(), ["hi"]);
    let circle = answer(0x8180, &[(ASKED, CNAME, ASKED), (ASKED, TXT, b"\x02hi")]);
    assert_eq!(texts(&circle).unwrap(), ["hi"]);
}

#[test]
fn answers_to_other_questions_and_broken_ones_are_refused() {
    let good = answer(0x8180, &[(ASKED, TXT, b"\x02hi")]);
    assert_eq!(read_answer(&good, 8, NAME), None, "another id");
    assert_eq!(read_answer(&good, 7, "_holdpoint.example.org"), None, "another name");
    assert_eq!(read_answer(&answer(0x0180, &[]), 7, NAME), None, "a question");
    assert_eq!(read_answer(&answer(0x8380, &[]), 7, NAME), None, "cut");
    for end in 0..good.len() {
        assert_eq!(read_answer(&good[..end], 7, NAME), None, "{end}");
    }
    let forward = answer(0x8180, &[(&[0xc0, 0xff], TXT, b"\x02hi")]);
    assert_eq!(read_answer(&forward, 7, NAME), None);
    let own = (HEADER_BYTES + NAME.len() + 2 + 4) as u8;
    let endless = answer(0x8180, &[(&[0xc0, own], TXT, b"\x02hi")]);
    assert_eq!(read_answer(&endless, 7, NAME), None);
}

#[test]
fn the_systems_resolvers_are_read() {
    let text = "# a comment\nsearch example.com\nnameserver 192.0.2.1\n nameserver\t2001:db8::1 # two\nnameserver nonsense\noptions edns0\n";
    let expected = ["192.0.2.1:53", "[2001:db8::1]:53"].map(|it| it.parse::<SocketAddr>().unwrap());
    assert_eq!(read_resolvers(text), expected);
}
