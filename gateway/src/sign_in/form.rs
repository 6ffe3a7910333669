//! The parameters of a query or form. A parameter given twice is ambiguous, and refused.

use super::refused::SignInRefusal;
use url::form_urlencoded;

/// The most parameters of one request.
const MAX_PARAMETERS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    pub(super) fn read(bytes: &[u8]) -> Result<Form, SignInRefusal> {
        let mut read: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(bytes) {
            // RFC 6749 §3.1: a parameter without a value counts as omitted.
            if value.is_empty() {
                continue;
            }
            if read.len() >= MAX_PARAMETERS {
                return Err(SignInRefusal::BadRequest("it has too many parameters"));
            }
            if read.iter().any(|(known, _)| *known == name) {
                return Err(SignInRefusal::RepeatedParameter);
            }
            read.push((name.into_owned(), value.into_owned()));
        }
        Ok(Form(read))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn needed(&self, name: &'static str) -> Result<&str, SignInRefusal> {
        self.get(name).ok_or(SignInRefusal::Missing(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_is_there_twice_is_refused() {
        let form = Form::read(b"a=1&b=x%20y&c=").unwrap();
        assert_eq!((form.get("a"), form.get("b"), form.get("c")), (Some("1"), Some("x y"), None));
        assert!(matches!(form.needed("c"), Err(SignInRefusal::Missing("c"))));
        assert!(matches!(Form::read(b"a=1&a=1"), Err(SignInRefusal::RepeatedParameter)));
        assert!(matches!(Form::read(b"a=1&%61=2"), Err(SignInRefusal::RepeatedParameter)));
    }

    #[test]
    fn the_parameters_are_bounded() {
        let many = |count: usize| {
            (0..count).map(|number| format!("p{number}=1")).collect::<Vec<_>>().join("&")
        };
        assert!(Form::read(many(MAX_PARAMETERS).as_bytes()).is_ok());
        assert!(Form::read(many(MAX_PARAMETERS + 1).as_bytes()).is_err());
    }
}
