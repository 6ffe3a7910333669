//! Ids that leave the gateway and come back. They are sealed, so that they carry the gateway's own
//! data, cannot be used by other callers, and need no table.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};

/// The longest sealed id that is opened.
const MAX_SEALED_BYTES: usize = 64 * 1024;

/// The purpose of an id. An id sealed for another purpose cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Session,
    /// The state that a client of the stateless era returns with its retry.
    RequestState,
    /// The same for a retry after the gateway asked the caller to sign in.
    SignInState,
    Task,
    /// The position from which a client resumes a stream.
    Event,
    /// The link to a decision on a waiting call.
    Approval,
    /// A record of a sign-in in the store.
    SignInRecord,
    /// A sign-in in progress, in a cookie.
    SignInTransaction,
    /// The person signed in with a browser, in a cookie.
    Person,
    /// A link with which one person signs in to one server.
    SignInLink,
    /// The code that a client redeems for its first tokens.
    AuthorizationCode,
    AccessToken,
    RefreshToken,
}

impl Purpose {
    fn label(self) -> &'static [u8] {
        match self {
            Purpose::Session => b"holdpoint session 2",
            Purpose::RequestState => b"holdpoint request state 1",
            Purpose::SignInState => b"holdpoint sign-in state 1",
            Purpose::Task => b"holdpoint task 1",
            Purpose::Event => b"holdpoint event 1",
            Purpose::Approval => b"holdpoint approval 1",
            Purpose::SignInRecord => b"holdpoint sign-in record 1",
            Purpose::SignInTransaction => b"holdpoint sign-in transaction 1",
            Purpose::Person => b"holdpoint person 1",
            Purpose::SignInLink => b"holdpoint sign-in link 1",
            Purpose::AuthorizationCode => b"holdpoint authorization code 1",
            Purpose::AccessToken => b"holdpoint access token 1",
            Purpose::RefreshToken => b"holdpoint refresh token 1",
        }
    }
}

/// Why nothing can be sealed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    #[error("there is no randomness: {0}")]
    NoRandomness(getrandom::Error),
    #[error("the key could not be used")]
    Key,
}

/// Seals and opens ids.
pub(crate) struct Sealer {
    key: LessSafeKey,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sealer").finish_non_exhaustive()
    }
}

impl Sealer {
    /// A sealer with a key derived from the secret, for this purpose only.
    pub(crate) fn of(secret: &[u8; 32]) -> Result<Sealer, SealError> {
        let key = Salt::new(HKDF_SHA256, b"holdpoint").extract(secret);
        let info = [b"sealed ids".as_slice()];
        let key = key.expand(&info, &AES_256_GCM).map_err(|_| SealError::Key)?;
        Ok(Sealer { key: LessSafeKey::new(UnboundKey::from(key)) })
    }

    pub(crate) fn seal(&self, purpose: Purpose, content: &[u8]) -> Result<String, SealError> {
        let mut nonce = [0_u8; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(SealError::NoRandomness)?;
        let mut sealed = content.to_vec();
        let aad = Aad::from(purpose.label());
        self.key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed)
            .map_err(|_| SealError::Key)?;
        Ok(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// The sealed content; `None` if it was not sealed here for this purpose.
    pub(crate) fn open(&self, purpose: Purpose, text: &str) -> Option<Vec<u8>> {
        if text.len() > MAX_SEALED_BYTES {
            return None;
        }
        let mut sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let nonce = Nonce::try_assume_unique_for_key(sealed.get(..NONCE_LEN)?).ok()?;
        let aad = Aad::from(purpose.label());
        // Opened in place: the content moves to the start, and the rest is cut off.
        let length = self.key.open_within(nonce, aad, &mut sealed, NONCE_LEN..).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_here_for_the_same_purpose_opens() {
        let sealer = Sealer::of(&[7; 32]).unwrap();
        let sealed = sealer.seal(Purpose::Session, b"content").unwrap();
        assert_eq!(sealer.open(Purpose::Session, &sealed).as_deref(), Some(b"content".as_slice()));
        assert_eq!(sealer.open(Purpose::RequestState, &sealed), None);
        assert_eq!(Sealer::of(&[8; 32]).unwrap().open(Purpose::Session, &sealed), None);
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(bytes).unwrap();
            // The last character may have unused bits.
            if URL_SAFE_NO_PAD.decode(&forged).is_ok() {
                assert_eq!(sealer.open(Purpose::Session, &forged), None, "at {at}");
            }
        }
        assert_ne!(sealer.seal(Purpose::Session, b"content").unwrap(), sealed);
    }

    #[test]
    fn an_id_past_the_limit_is_not_opened() {
        let sealer = Sealer::of(&[7; 32]).unwrap();
        let fits = sealer.seal(Purpose::Session, &[0; 48_000]).unwrap();
        let too_long = sealer.seal(Purpose::Session, &[0; 49_300]).unwrap();
        assert!(fits.len() <= MAX_SEALED_BYTES && too_long.len() > MAX_SEALED_BYTES);
        assert!(sealer.open(Purpose::Session, &fits).is_some());
        assert!(sealer.open(Purpose::Session, &too_long).is_none());
    }
}
