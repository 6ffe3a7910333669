//! A line from an application is parsed unambiguously or refused, and a message in it is passed on
//! byte for byte.

use wire::application::{Open, Said};

pub fn run(bytes: &[u8]) {
    let Ok(said) = Said::read(bytes) else { return };
    // A message is a part of the line, which must then be valid text.
    let line = std::str::from_utf8(bytes).expect("what was read is text");
    match said {
        Said::Client(message) => handed_over("client", message.get(), line),
        Said::Server(message) => handed_over("server", message.get(), line),
        Said::Open(open) => {
            if let Ok(read) = Open::read(open) {
                assert_eq!(read.version, wire::application::VERSION);
            }
        }
        Said::Review(request) => assert!(line.contains("review"), "{request:?}"),
        Said::Approve(request) => assert!(line.contains("approve"), "{request:?}"),
        Said::Lost(_) => assert!(line.contains("lost")),
    }
}

fn handed_over(member: &str, message: &str, line: &str) {
    assert!(line.contains(message));
    let again = format!("{{\"{member}\":{message}}}");
    let read = match Said::read(again.as_bytes()) {
        Ok(Said::Client(read)) if member == "client" => read.get(),
        Ok(Said::Server(read)) if member == "server" => read.get(),
        other => panic!("the same message was read as {other:?}"),
    };
    assert_eq!(read, message);
}
