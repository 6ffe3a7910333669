//! Measures how fast a frame is read, in an optimized build: `cargo test --profile dist -p
//! holdpoint-wire envelope::tests::speed -- --ignored --nocapture`.
use super::*;
use std::hint::black_box;
use std::time::Instant;

fn report(what: &str, frame: &str) {
    assert!(scan(frame.as_bytes()).is_ok());
    // Takes the best of many short runs: other load on the machine falls into the others.
    let runs = (100_000 / frame.len()).max(1);
    let mut best = f64::MAX;
    for _ in 0..400 {
        let start = Instant::now();
        for _ in 0..runs {
            let _ = black_box(scan(black_box(frame.as_bytes())));
        }
        best = best.min(start.elapsed().as_secs_f64() / runs as f64);
    }
    let speed = frame.len() as f64 / best / 1e6;
    println!("{what}: {} bytes, {:.0} ns, {speed:.0} MB/s", frame.len(), best * 1e9);
}

fn call(arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{{"name":"echo","arguments":{arguments},"_meta":{{"progressToken":42}}}}}}"#
    )
}

#[test]
#[ignore = "a measurement"]
fn frames_are_read_this_fast() {
    report("a small call", &call(r#"{"message":"hello, how are you today"}"#));
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(24_000);
    report("one long string", &call(&format!(r#"{{"text":"{text}"}}"#)));
    report("a file with lines", &call(&format!(r#"{{"text":"{}"}}"#, text.replace(". ", r".\n"))));
    report(
        "a long string, not ASCII",
        &call(&format!(r#"{{"text":"{}"}}"#, "日本語テ ".repeat(60_000))),
    );
    let members: Vec<_> = (0..60_000).map(|number| format!("\"k{number}\":{number}")).collect();
    report("small members", &call(&format!("{{{}}}", members.join(","))));
    report("small numbers", &call(&format!("[{}0]", "1,".repeat(300_000))));
    report("brackets", &call(&format!("[{}0]", "[{}],".repeat(100_000))));
    let small: Vec<_> =
        (0..8_000).map(|_| r#"{"type":"text","text":"one of many","n":17}"#).collect();
    report("small objects", &call(&format!("[{}]", small.join(","))));
}
