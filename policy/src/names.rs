//! Entity ids of the things that policies name. INVARIANT: two different things never have the same
//! id.

use std::borrow::Cow;

/// The id of a server's tool, prompt or resource: `server__name`, split at the first `__`.
///
/// Configured server ids never contain `__` or end in `_`, so they are simply joined. In any other
/// server id the offending `_` is escaped, which keeps the split unambiguous. The name is
/// everything after the split, unescaped.
pub fn qualified(server: &str, name: &str) -> String {
    format!("{}__{name}", escape_server(server))
}

fn escape_server(server: &str) -> Cow<'_, str> {
    if !server.contains("__") && !server.ends_with('_') && !server.contains('%') {
        return Cow::Borrowed(server);
    }
    let mut escaped = String::with_capacity(server.len() + 8);
    let mut characters = server.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '%' => escaped.push_str("%25"),
            '_' if matches!(characters.peek(), None | Some('_')) => escaped.push_str("%5F"),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// The id of a principal: `issuer|subject`, split at the first `|`. A `|` or `%` in the issuer is
/// percent-encoded; the subject is unchanged.
pub fn principal(issuer: &str, subject: &str) -> String {
    if issuer.contains(['%', '|']) {
        let issuer = issuer.replace('%', "%25").replace('|', "%7C");
        return format!("{issuer}|{subject}");
    }
    format!("{issuer}|{subject}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_names_are_joined_as_they_are() {
        assert_eq!(qualified("files", "read_file"), "files__read_file");
        assert_eq!(qualified("my-server.v2", "Ünïcode tool/x"), "my-server.v2__Ünïcode tool/x");
        assert_eq!(
            principal("https://idp.example.com", "auth0|7"),
            "https://idp.example.com|auth0|7"
        );
    }

    #[test]
    fn names_that_would_join_to_one_id_do_not() {
        assert_ne!(qualified("a", "b__c"), qualified("a__b", "c"));
        assert_ne!(qualified("a_", "b"), qualified("a", "_b"));
        assert_ne!(qualified("a%5F", "b"), qualified("a_", "b"));
        assert_ne!(principal("a|b", "c"), principal("a", "b|c"));
        assert_ne!(principal("a%7Cb", "c"), principal("a|b", "c"));
    }

    proptest! {
        #[test]
        fn ids_are_injective(
            a in "[a%_5F]{0,6}", b in "[a%_5F]{0,6}", c in "[a%_5F]{0,6}", d in "[a%_5F]{0,6}"
        ) {
            prop_assert_eq!(qualified(&a, &b) == qualified(&c, &d), a == c && b == d);
        }

        #[test]
        fn principal_ids_are_injective(
            a in "[a%|7C]{0,6}", b in "[a%|7C]{0,6}", c in "[a%|7C]{0,6}", d in "[a%|7C]{0,6}"
        ) {
            prop_assert_eq!(principal(&a, &b) == principal(&c, &d), a == c && b == d);
        }
    }
}
