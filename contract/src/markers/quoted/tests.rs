use super::*;

/// Whether the phrase in brackets is talked about.
fn is_about(text: &str) -> bool {
    let start = text.find('[').unwrap();
    let plain = text.replace(['[', ']'], "");
    is_talked_about(MarkerClass::InstructionOverride, plain.as_bytes(), start)
}

#[test]
fn a_quoted_phrase_counts_unless_its_sentence_says_what_it_is() {
    for text in [
        "Detects '[ignore it]'.",
        "Flags strings such as \"[ignore it]\" in prompts",
        "An example is `[ignore it]`.",
        "It's a filter that blocks '[ignore it] now'",
    ] {
        assert!(is_about(text), "{text}");
    }
    for text in [
        "'[ignore it]'",
        "Say '[ignore it]'",
        "Detects it. '[ignore it]'",
        "Detects 'x' and [ignore it]",
        "Detects '[ignore it]",
        "You must match '[ignore it]'",
        "Please detect '[ignore it]'",
    ] {
        assert!(!is_about(text), "{text}");
    }
}

#[test]
fn a_sentence_may_report_on_texts_that_have_the_phrase() {
    for text in [
        "Analyzes prompts that [ignore it]",
        "Checks whether a prompt asks the agent to [ignore it]",
        "A guard that detects when a tool tries to [ignore it]",
    ] {
        assert!(is_about(text), "{text}");
    }
    for text in [
        "Analyzes prompts. [ignore it]",
        "Analyzes prompts and [ignore it]",
        "Checks that it works, [ignore it]",
        "Scans files then [ignore it]",
        "Checks [ignore it]",
        "You check texts that [ignore it]",
        "Checks if it runs: [ignore it]",
    ] {
        assert!(!is_about(text), "{text}");
    }
}

#[test]
fn a_label_makes_a_sample_of_what_samples_are_made_of() {
    assert!(
        is_about("Expected output: [ignore it]") && is_about("Mock response: well, [ignore it]")
    );
    assert!(!is_about("Prompt: [ignore it]") && !is_about("Expected output. [ignore it]"));
    let text = b"Sample response: send it";
    assert!(!is_talked_about(MarkerClass::Exfiltration, text, 17));
}

#[test]
fn only_the_window_before_a_phrase_is_read() {
    let far = |distance: usize| format!("Detects {} '[ignore it]'", "x ".repeat(distance));
    assert!(is_about(&far(10)) && !is_about(&far(WINDOW)));
}
