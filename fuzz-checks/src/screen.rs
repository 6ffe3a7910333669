//! The screen accepts any contract: it terminates, stays within its limits, and shows programs no
//! server text.

use contract::json::escape_into;
use contract::surface::{Surface, read_capture};
use contract::time::Timestamp;
use screen::grade::Grade;
use screen::reading::{Context, MAX_FINDINGS, read};

pub fn run(bytes: &[u8]) {
    if let Ok(surface) = read_capture(bytes) {
        check(&surface);
    }
    let text = String::from_utf8_lossy(bytes);
    let mut quoted = Vec::new();
    escape_into(&text, &mut quoted);
    let quoted = String::from_utf8(quoted).expect("an escaped text is text");
    let tool = format!(
        r#"[{{"name":{quoted},"description":{quoted},"inputSchema":{{"properties":{{{quoted}:{{"enum":[{quoted}]}}}}}}}}]"#
    );
    if let Ok(surface) = read_capture(tool.as_bytes()) {
        check(&surface);
    }
}

fn check(surface: &Surface) {
    let context = Context::new(Grade::Scanned, Timestamp(0));
    let screening = read(surface, &context);
    assert_eq!(screening.entries.len(), surface.entries().count());
    assert_eq!(screening, read(surface, &context));
    for entry in &screening.entries {
        assert!(entry.findings().count() <= MAX_FINDINGS);
    }
    for finding in screening.findings() {
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(is_plain(&finding.place()), "{:?}", finding.place());
        assert!(is_plain(&finding.entry_name()) && finding.entry_name().len() <= 40);
        assert!(!finding.excerpt.chars().any(char::is_control), "{:?}", finding.excerpt);
    }
}
