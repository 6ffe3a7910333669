//! Strict percent decoding (`%2F`).

use percent_encoding::percent_decode_str;

/// Decodes the `%` sequences. Returns `None` if a `%` is not followed by two hexadecimal digits or
/// if the result is not UTF-8. A lenient reader would keep the first as is and replace the second.
pub fn percent_decoded(text: &str) -> Option<String> {
    let is_form = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_form) {
        return None;
    }
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_decoded_and_what_is_no_form_is_refused() {
        assert_eq!(percent_decoded("/a%20b%2Fc%c3%bc").as_deref(), Some("/a b/c\u{fc}"));
        assert_eq!(percent_decoded("%2525").as_deref(), Some("%25"));
        for text in ["%", "a%2", "%zz", "%%20", "%+1", "%c3", "%\u{fc}"] {
            assert_eq!(percent_decoded(text), None, "{text}");
        }
    }
}
