//! TLS between nodes. Both ends prove that they hold the cluster key: each presents the public key
//! derived from it as a raw public key (RFC 7250), and signs the handshake. No certificates are
//! involved that could expire or be misissued.

use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::signature::{Ed25519KeyPair, KeyPair};
use std::sync::Arc;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use tokio_rustls::rustls::crypto::{self, CryptoProvider, WebPkiSupportedAlgorithms};
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

/// The ALPN name of the protocol.
const PROTOCOL: &[u8] = b"holdpoint-node/1";
/// The DER prefix of a 32-byte private key (RFC 8410).
const PRIVATE_KEY_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// The DER prefix of a 32-byte public key (RFC 8410).
const PUBLIC_KEY_PREFIX: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The TLS configuration of both ends of connections between nodes with the same cluster key.
pub(crate) struct PeerTls {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
}

/// The length of a key's seed.
struct Seed;

impl KeyType for Seed {
    fn len(&self) -> usize {
        32
    }
}

impl PeerTls {
    /// Derives the nodes' TLS key from the secret, for this purpose only.
    pub(crate) fn of(secret: &[u8; 32]) -> Result<PeerTls, Error> {
        let unusable = |_| Error::General("the key of the nodes could not be derived".to_owned());
        let mut seed = [0_u8; 32];
        Salt::new(HKDF_SHA256, b"holdpoint")
            .extract(secret)
            .expand(&[b"node tls".as_slice()], Seed)
            .and_then(|derived| derived.fill(&mut seed))
            .map_err(unusable)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed)
            .map_err(|_| Error::General("the key of the nodes could not be made".to_owned()))?;
        let public = [PUBLIC_KEY_PREFIX.as_slice(), pair.public_key().as_ref()].concat();
        let private = PrivatePkcs8KeyDer::from([PRIVATE_KEY_PREFIX.as_slice(), &seed].concat());
        let own = Arc::new(CertifiedKey::new(
            vec![CertificateDer::from(public.clone())],
            crypto::ring::sign::any_eddsa_type(&private)?,
        ));
        let provider = Arc::new(crypto::ring::default_provider());
        let expected = Arc::new(OurKey::new(public, &provider));
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(expected.clone())
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own.clone())));
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Disable resumption: every connection must prove the key itself.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(expected)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        client.enable_sni = false;
        client.resumption = Resumption::disabled();
        Ok(PeerTls { client: Arc::new(client), server: Arc::new(server) })
    }
}

/// Accepts only the key that holders of the cluster key have.
#[derive(Debug)]
struct OurKey {
    public: Vec<u8>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl OurKey {
    fn new(public: Vec<u8>, provider: &CryptoProvider) -> OurKey {
        OurKey { public, algorithms: provider.signature_verification_algorithms }
    }

    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        match shown.as_ref() == self.public {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }
}

/// The part that the verifiers of both ends share: the signature must be made with the one key, in
/// TLS 1.3.
macro_rules! our_key_signs {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("nodes speak TLS 1.3 only".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            shown: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
            crypto::verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for OurKey {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    our_key_signs!();
}

impl ClientCertVerifier for OurKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    our_key_signs!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    const NAME: &str = "node.invalid";

    async fn connect(client: &PeerTls, stream: DuplexStream) -> io::Result<Vec<u8>> {
        let name = ServerName::try_from(NAME).unwrap();
        let mut stream = TlsConnector::from(client.client.clone()).connect(name, stream).await?;
        stream.write_all(b"asked").await?;
        let mut heard = vec![0; 8];
        stream.read_exact(&mut heard).await?;
        Ok(heard)
    }

    async fn accept(server: &PeerTls, stream: DuplexStream) -> io::Result<Vec<u8>> {
        let mut stream = TlsAcceptor::from(server.server.clone()).accept(stream).await?;
        let mut heard = vec![0; 5];
        stream.read_exact(&mut heard).await?;
        stream.write_all(b"answered").await?;
        stream.flush().await?;
        Ok(heard)
    }

    async fn meet(
        client: &PeerTls,
        server: &PeerTls,
    ) -> (io::Result<Vec<u8>>, io::Result<Vec<u8>>) {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::join!(connect(client, near), accept(server, far))
    }

    #[tokio::test]
    async fn nodes_with_one_key_meet_and_others_do_not() {
        let [one, same, other] = [1_u8, 1, 2].map(|byte| PeerTls::of(&[byte; 32]).unwrap());
        let (answer, question) = meet(&one, &same).await;
        assert_eq!((answer.unwrap(), question.unwrap()), (b"answered".to_vec(), b"asked".to_vec()));
        let (answer, question) = meet(&one, &other).await;
        assert!(answer.is_err() && question.is_err());
    }

    #[tokio::test]
    async fn what_a_node_sent_once_opens_nothing_when_it_is_sent_again() {
        let tls = PeerTls::of(&[1; 32]).unwrap();
        let ((near, middle), (onward, far)) =
            (tokio::io::duplex(64 * 1024), tokio::io::duplex(64 * 1024));
        let recording = async {
            let ((mut from, mut to), (mut back_from, mut back_to)) = {
                let (from, back_to) = tokio::io::split(middle);
                let (back_from, to) = tokio::io::split(onward);
                ((from, to), (back_from, back_to))
            };
            let mut recorded = Vec::new();
            let forth = async {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut bytes).await {
                    recorded.extend_from_slice(&bytes[..count]);
                    let _ = to.write_all(&bytes[..count]).await;
                }
            };
            let back = async {
                let _ = tokio::io::copy(&mut back_from, &mut back_to).await;
                let _ = back_to.shutdown().await;
            };
            tokio::join!(forth, back);
            recorded
        };
        let (answer, question, recorded) =
            tokio::join!(connect(&tls, near), accept(&tls, far), recording);
        assert!(answer.is_ok() && question.is_ok() && recorded.len() > 200);
        let (mut near, far) = tokio::io::duplex(64 * 1024);
        near.write_all(&recorded).await.unwrap();
        let replayed = tokio::time::timeout(std::time::Duration::from_secs(20), accept(&tls, far));
        assert!(replayed.await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_client_that_shows_no_key_is_refused() {
        let server = PeerTls::of(&[1; 32]).unwrap();
        let mut keyless = PeerTls::of(&[1; 32]).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anything))
            .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        keyless.client = Arc::new(config);
        let (answer, question) = meet(&keyless, &server).await;
        assert!(answer.is_err() && question.is_err());
    }

    /// Accepts every server certificate.
    #[derive(Debug)]
    struct Anything;

    impl ServerCertVerifier for Anything {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    }
}
