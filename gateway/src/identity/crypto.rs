//! Verifies token signatures for `jsonwebtoken` with `ring`, which TLS already uses.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{self as ring_signature, RsaPublicKeyComponents, UnparsedPublicKey};

/// The accepted algorithms. INVARIANT: neither `none` nor HMAC, for which the public key would be
/// the secret.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs `ring` for this process. Must come before the first token, because the library panics
/// without a provider.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let (algorithm, key) = (*algorithm, key.kind().clone());
    if Method::of(algorithm).is_none() {
        return Err(ErrorKind::UnsupportedAlgorithm.into());
    }
    Ok(Box::new(RingVerifier { algorithm, key }))
}

/// The name of an algorithm in `ring`.
enum Method {
    Rsa(&'static ring_signature::RsaParameters),
    Curve(&'static dyn ring_signature::VerificationAlgorithm),
}

impl Method {
    fn of(algorithm: Algorithm) -> Option<Method> {
        // These parameters refuse RSA keys of less than 2048 bits.
        Some(match algorithm {
            Algorithm::RS256 => Method::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Method::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Method::Rsa(&ring_signature::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Method::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Method::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Method::Rsa(&ring_signature::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Method::Curve(&ring_signature::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Method::Curve(&ring_signature::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Method::Curve(&ring_signature::ED25519),
            _ => return None,
        })
    }
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKeyKind,
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), signature::Error> {
        let verified = match (Method::of(self.algorithm), &self.key) {
            (Some(Method::Rsa(parameters)), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Some(Method::Curve(curve)), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(curve, point).verify(message, signature)
            }
            _ => Err(ring::error::Unspecified),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
