use super::*;

fn query(name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0]);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes
}

fn rules() -> Vec<HostRule> {
    vec!["api.example.com".parse().unwrap(), "*.example.org:8443".parse().unwrap()]
}

#[test]
fn an_allowed_name_gets_an_address_of_its_own_and_keeps_it() {
    let (rules, mut names) = (rules(), Names::default());
    let mut ask = |name: &str| answer(&rules, &mut names, &query(name, TYPE_A)).unwrap();
    let first = ask("api.example.com");
    assert_eq!(first.refused, None);
    assert_eq!(first.bytes[..4], [0xab, 0xcd, 0x81, 0x80]);
    assert_eq!(first.bytes[first.bytes.len() - 4..], [198, 18, 1, 0]);
    let second = ask("deep.a.example.org");
    assert_eq!(second.bytes[second.bytes.len() - 4..], [198, 18, 1, 1]);
    assert_eq!(ask("API.example.com").bytes[first.bytes.len() - 4..], [198, 18, 1, 0]);
    assert_eq!(names.name_of(Ipv4Addr::new(198, 18, 1, 1)), Some("deep.a.example.org"));
    assert_eq!(names.name_of(Ipv4Addr::new(198, 18, 1, 2)), None);
    assert_eq!(names.name_of(RESOLVER), None);
}

#[test]
fn another_name_is_unknown_and_reported_once_for_both_kinds_of_address() {
    let (rules, mut names) = (rules(), Names::default());
    let first = answer(&rules, &mut names, &query("evil.com", TYPE_A)).unwrap();
    assert_eq!(first.bytes[3] & 0xf, NAME_UNKNOWN);
    assert_eq!(first.refused.as_deref(), Some("evil.com"));
    let second = answer(&rules, &mut names, &query("evil.com", TYPE_AAAA)).unwrap();
    assert_eq!(second.bytes[3] & 0xf, NAME_UNKNOWN);
    assert_eq!(second.refused, None);
    let text = answer(&rules, &mut names, &query("secret.evil.com", 16)).unwrap();
    assert_eq!(text.refused.as_deref(), Some("secret.evil.com"));
}

#[test]
fn an_allowed_name_has_no_other_kind_of_address() {
    let (rules, mut names) = (rules(), Names::default());
    let reply = answer(&rules, &mut names, &query("api.example.com", TYPE_AAAA)).unwrap();
    assert_eq!((reply.bytes[3] & 0xf, reply.bytes[7], reply.refused), (0, 0, None));
}

#[test]
fn what_is_no_question_gets_no_answer() {
    let (rules, mut names) = (rules(), Names::default());
    let good = query("api.example.com", TYPE_A);
    for cut in 0..good.len() {
        assert_eq!(answer(&rules, &mut names, &good[..cut]), None, "{cut}");
    }
    let mut response = good.clone();
    response[2] |= 0x80;
    let mut two = good.clone();
    two[5] = 2;
    let mut pointer = good.clone();
    pointer[12] = 0xc0;
    for bytes in [response, two, pointer] {
        assert_eq!(answer(&rules, &mut names, &bytes), None);
    }
}

#[test]
fn names_of_a_wildcard_are_bounded() {
    let (rules, mut names) = (rules(), Names::default());
    for index in 0..MAX_NAMES {
        let name = format!("n{index}.example.org");
        assert_eq!(answer(&rules, &mut names, &query(&name, TYPE_A)).unwrap().bytes[7], 1);
    }
    let past = answer(&rules, &mut names, &query("past.example.org", TYPE_A)).unwrap();
    assert_eq!((past.bytes[3] & 0xf, past.bytes[7]), (NAME_UNKNOWN, 0));
}
