//! Fits a message received over HTTP on one line: a line break between two tokens is ordinary white
//! space.

/// A line break where JSON allows none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BreakInString;

/// Replaces carriage returns and line feeds with spaces. Inside a string they are not valid JSON,
/// and a space would change the text, so that is refused.
pub(super) fn make(message: &mut [u8]) -> Result<(), BreakInString> {
    if memchr::memchr2(b'\n', b'\r', message).is_none() {
        return Ok(());
    }
    let mut in_string = false;
    let mut escaped = false;
    for byte in message {
        match *byte {
            b'\n' | b'\r' if in_string => return Err(BreakInString),
            b'\n' | b'\r' => *byte = b' ',
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, BreakInString>) {
        let mut bytes = text.as_bytes().to_vec();
        let outcome = make(&mut bytes).map(|()| String::from_utf8(bytes).unwrap());
        assert_eq!(outcome.as_deref().map_err(|error| *error), expected, "{text:?}");
    }

    #[test]
    fn breaks_between_tokens_become_spaces() {
        check("{\"a\":1}", Ok("{\"a\":1}"));
        check("{\n  \"a\":\r\n1\r}\n", Ok("{   \"a\":  1 } "));
        check("{\"a\\\"\":\"\\\\\",\n\"b\":\"\\n\"}", Ok("{\"a\\\"\":\"\\\\\", \"b\":\"\\n\"}"));
    }

    #[test]
    fn breaks_within_strings_are_refused() {
        check("{\"a\":\"x\ny\"}", Err(BreakInString));
        check("{\"a\":\"x\\\"\ry\"}", Err(BreakInString));
        check("{\"a\":\"x\\\ny\"}", Err(BreakInString));
    }
}
