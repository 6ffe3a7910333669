//! Parses a server's request to sign in: the `WWW-Authenticate` header (RFC 9110 §11.6.1, RFC 6750
//! §3, RFC 9728 §5.1).

use crate::reading::MAX_SCOPES;

/// The most bytes of all header values together.
pub const MAX_CHALLENGE_BYTES: usize = 16 * 1024;
/// The most parameters of all challenges together.
pub const MAX_PARAMETERS: usize = 64;

/// The challenge that this client can respond to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Challenge {
    /// The address of the resource's metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the request requires.
    pub scopes: Vec<String>,
    pub error: Option<String>,
    /// The server asks for tokens that are bound to a key.
    pub is_dpop: bool,
}

/// What a server requires before it accepts a request, as far as this client can provide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Token,
    Nonce,
    MoreScopes,
}

impl Challenge {
    /// The first challenge with the scheme `Bearer` or `DPoP`. Returns `None` if there is none, or
    /// if the header is ambiguous.
    pub fn read<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Option<Challenge> {
        let mut text = String::new();
        for value in values {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(std::str::from_utf8(value).ok()?);
            if text.len() > MAX_CHALLENGE_BYTES {
                return None;
            }
        }
        let challenges = Reader { rest: &text, parameters: 0 }.challenges()?;
        let known = |scheme: &str| {
            scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("dpop")
        };
        let mut own = challenges.into_iter().filter(|(scheme, _)| known(scheme));
        let (scheme, parameters) = own.next()?;
        let mut challenge =
            Challenge { is_dpop: scheme.eq_ignore_ascii_case("dpop"), ..Challenge::default() };
        challenge.take(parameters)?;
        // A server that accepts both kinds of token sends both schemes, and may put the other
        // parameters into the second one.
        if let Some((_, more)) = own.next() {
            let mut second = Challenge::default();
            second.take(more)?;
            let Challenge { resource_metadata, scopes, error, .. } = second;
            challenge.resource_metadata = challenge.resource_metadata.or(resource_metadata);
            challenge.error = challenge.error.or(error);
            if challenge.scopes.is_empty() {
                challenge.scopes = scopes;
            }
        }
        Some(challenge)
    }

    fn take(&mut self, parameters: Vec<(String, String)>) -> Option<()> {
        for (name, value) in parameters {
            match name.as_str() {
                "resource_metadata" => self.resource_metadata = Some(value),
                "scope" => self.scopes = scopes(&value)?,
                "error" => self.error = Some(value),
                _ => {}
            }
        }
        Some(())
    }

    /// What would make the server accept the request, given its status of 401 or 403.
    pub fn wanted(&self, status: u16) -> Option<Wanted> {
        match (status, self.error.as_deref()) {
            (_, Some("use_dpop_nonce")) => Some(Wanted::Nonce),
            (403, Some("insufficient_scope")) => Some(Wanted::MoreScopes),
            (401, _) => Some(Wanted::Token),
            _ => None,
        }
    }
}

/// The scopes of a `scope` parameter. Returns `None` if it contains invalid characters or too many
/// scopes.
pub(crate) fn scopes(text: &str) -> Option<Vec<String>> {
    let is_scope = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    let mut all: Vec<String> = Vec::new();
    for scope in text.split(' ').filter(|scope| !scope.is_empty()) {
        if !scope.bytes().all(is_scope) {
            return None;
        }
        if !all.iter().any(|known| known == scope) {
            all.push(scope.to_owned());
        }
    }
    (all.len() <= MAX_SCOPES).then_some(all)
}

type Parameters = Vec<(String, String)>;

struct Reader<'t> {
    rest: &'t str,
    parameters: usize,
}

impl<'t> Reader<'t> {
    fn challenges(mut self) -> Option<Vec<(String, Parameters)>> {
        let mut all: Vec<(String, Parameters)> = Vec::new();
        loop {
            self.skip(&[' ', '\t', ',']);
            if self.rest.is_empty() {
                return Some(all);
            }
            let word = self.token()?;
            let before_blank = self.rest;
            self.skip(&[' ', '\t']);
            if self.rest.starts_with('=') {
                let (_, parameters) = all.last_mut()?;
                self.parameter(word, parameters)?;
                continue;
            }
            let is_separate = self.rest.len() < before_blank.len();
            all.push((word.to_owned(), Vec::new()));
            if self.rest.is_empty() || self.rest.starts_with(',') {
                continue;
            }
            if !is_separate {
                return None;
            }
            self.token68();
        }
    }

    /// Parses the value of a parameter. A repeated parameter makes the challenge ambiguous.
    fn parameter(&mut self, name: &str, into: &mut Parameters) -> Option<()> {
        self.rest = self.rest.get(1..)?;
        self.skip(&[' ', '\t']);
        let value = match self.rest.strip_prefix('"') {
            Some(rest) => self.quoted(rest)?,
            None => self.token()?.to_owned(),
        };
        self.skip(&[' ', '\t']);
        if !self.rest.is_empty() && !self.rest.starts_with(',') {
            return None;
        }
        self.parameters += 1;
        let name = name.to_ascii_lowercase();
        let is_new = into.iter().all(|(known, _)| *known != name);
        (is_new && self.parameters <= MAX_PARAMETERS).then(|| into.push((name, value)))
    }

    fn quoted(&mut self, text: &'t str) -> Option<String> {
        let mut value = String::new();
        let mut characters = text.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = text.get(at + 1..)?;
                    return Some(value);
                }
                '\\' => value.push(characters.next()?.1),
                character if character.is_control() && character != '\t' => return None,
                character => value.push(character),
            }
        }
        None
    }

    /// Skips the single token that some schemes have instead of parameters.
    fn token68(&mut self) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let word = self.rest.trim_start_matches(is_part).trim_start_matches('=');
        let after = word.trim_start_matches([' ', '\t']);
        if word.len() < self.rest.len() && (after.is_empty() || after.starts_with(',')) {
            self.rest = after;
        }
    }

    fn token(&mut self) -> Option<&'t str> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        (!token.is_empty()).then_some(token)
    }

    fn skip(&mut self, characters: &[char]) {
        self.rest = self.rest.trim_start_matches(characters);
    }
}

#[cfg(test)]
mod tests;
