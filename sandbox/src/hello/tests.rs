use super::*;

fn short(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap().to_be_bytes()
}

fn extension(kind: u16, body: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &short(body.len()), body].concat()
}

fn name_extension(name: &str) -> Vec<u8> {
    let entry = [&[0][..], &short(name.len()), name.as_bytes()].concat();
    extension(0, &[&short(entry.len())[..], &entry].concat())
}

fn message(extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(short(extensions.len()));
    body.extend(extensions);
    let [_, high, middle, low] = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[CLIENT_HELLO, high, middle, low][..], &body].concat()
}

fn record(part: &[u8]) -> Vec<u8> {
    [&[HANDSHAKE, 3, 1][..], &short(part.len()), part].concat()
}

#[test]
fn the_name_is_read_when_all_of_it_is_there() {
    let extensions = [extension(10, &[0, 2, 0, 29]), name_extension("API.Example.com")].concat();
    let hello = record(&message(&extensions));
    assert_eq!(read(&hello), Hello::Named("api.example.com".to_owned()));
    for cut in 0..hello.len() {
        assert_eq!(read(&hello[..cut]), Hello::Incomplete, "{cut}");
    }
    assert_eq!(
        read(&[&hello[..], &[1, 2, 3]].concat()),
        Hello::Named("api.example.com".to_owned())
    );
}

#[test]
fn a_handshake_may_be_cut_into_records() {
    let message = message(&name_extension("a.example"));
    for cut in 1..message.len() {
        let bytes = [record(&message[..cut]), record(&message[cut..])].concat();
        assert_eq!(read(&bytes), Hello::Named("a.example".to_owned()), "{cut}");
    }
}

#[test]
fn what_has_no_name_or_two_is_told() {
    assert_eq!(read(&record(&message(&extension(10, &[0, 2, 0, 29])))), Hello::Nameless);
    let twice = [name_extension("a.example"), name_extension("b.example")].concat();
    assert_eq!(read(&record(&message(&twice))), Hello::NotTls);
    assert_eq!(read(&record(&message(&extension(0, &[0, 0])))), Hello::NotTls);
}

#[test]
fn another_protocol_is_not_tls() {
    for bytes in
        [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-x\r\n", &[HANDSHAKE, 2], &[HANDSHAKE, 3, 1, 0, 0]]
    {
        assert_eq!(read(bytes), Hello::NotTls, "{bytes:?}");
    }
    assert_eq!(read(&record(&[2, 0, 0, 1, 0])), Hello::NotTls);
}

#[test]
fn a_handshake_over_the_limit_is_refused() {
    let most = MAX_HELLO_BYTES - message(&extension(21, &[])).len();
    assert_ne!(read(&record(&message(&extension(21, &vec![0; most])))), Hello::NotTls);
    assert_eq!(read(&record(&message(&extension(21, &vec![0; most + 1])))), Hello::NotTls);
}
