mod idp;
mod keys;
mod tokens;

use super::*;
use policy::{ActorType, Identity, IdentityProof};

pub(super) const NOW: Timestamp = Timestamp(1_800_000_000_000);
pub(super) const MCP: Resource<'static> = Resource::Mcp { path: "/mcp" };

pub(super) fn after(seconds: i64) -> Timestamp {
    Timestamp(NOW.0 + seconds * 1_000)
}

pub(super) fn public_url() -> WebOrigin {
    "https://mcp.example.com".parse().unwrap()
}

pub(super) fn headers(given: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in given {
        headers.append(AUTHORIZATION, value.parse().unwrap());
    }
    headers
}

pub(super) fn bearer_of(credential: &str) -> HeaderMap {
    headers(&[&format!("Bearer {credential}")])
}

fn nobody() -> Authenticator {
    Authenticator::with_sources(Vec::new(), false, &public_url())
}

#[tokio::test]
async fn a_request_without_credentials_is_told_where_tokens_come_from() {
    let refused = nobody().authenticate(&HeaderMap::new(), None, MCP, NOW).await.unwrap_err();
    assert_eq!(refused.fault, AuthenticationFault::NoCredentials);
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.challenge,
        "Bearer resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\""
    );
    let wrong =
        nobody().authenticate(&bearer_of("x"), None, Resource::Admin, NOW).await.unwrap_err();
    let challenge = wrong.challenge.to_str().unwrap();
    assert!(
        challenge.ends_with("oauth-protected-resource/admin\", error=\"invalid_token\""),
        "{challenge}"
    );
}

#[tokio::test]
async fn a_challenge_cannot_be_broken_by_the_path() {
    let path = "/servers/a\", error=\"none\r\n/mcp";
    let refused = nobody()
        .authenticate(&HeaderMap::new(), None, Resource::Mcp { path }, NOW)
        .await
        .unwrap_err();
    assert_eq!(refused.challenge.to_str().unwrap().matches('"').count(), 2);
}

#[test]
fn one_bearer_credential_is_read_and_nothing_else() {
    assert_eq!(bearer(&headers(&["Bearer abc"])), Ok(Some("abc")));
    assert_eq!(bearer(&headers(&["bearer  abc"])), Ok(Some("abc")));
    assert_eq!(bearer(&headers(&[])), Ok(None));
    for given in [
        &["Bearer abc", "Bearer abc"][..],
        &["Bearer abc", "Basic x"],
        &["Basic YTpi"],
        &["Bearer"],
        &["Bearer "],
        &["Bearer a b"],
        &["Bearer a, Bearer b"],
        &["abc"],
        &[""],
    ] {
        assert_eq!(bearer(&headers(given)), Err(AuthenticationFault::BadHeader), "{given:?}");
    }
}

#[tokio::test]
async fn two_authorization_headers_are_a_bad_request() {
    let given = headers(&["Bearer a", "Bearer b"]);
    let refused = nobody().authenticate(&given, None, MCP, NOW).await.unwrap_err();
    assert_eq!((refused.status.as_u16(), refused.fault), (400, AuthenticationFault::BadHeader));
    assert!(refused.challenge.to_str().unwrap().contains("error=\"invalid_request\""));
}

#[test]
fn the_metadata_names_the_exact_resource_and_its_issuers() {
    let resource = Resource::Mcp { path: "/servers/files/mcp" };
    let document =
        protected_resource_metadata(resource, &public_url(), &[idp::settings("a")], false);
    assert_eq!(document["resource"], "https://mcp.example.com/servers/files/mcp");
    assert_eq!(document["authorization_servers"][0], "https://a.example.com");
    let admin = protected_resource_metadata(Resource::Admin, &public_url(), &[], true);
    assert_eq!(admin["resource"], "https://mcp.example.com/admin");
}

/// A certificate with these alternative names, signed by an authority with this common name.
fn certificate(authority: &str, names: Vec<rcgen::SanType>) -> rcgen::Certificate {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "Acme");
    if !authority.is_empty() {
        params.distinguished_name.push(rcgen::DnType::CommonName, authority);
    }
    let key = rcgen::KeyPair::generate().unwrap();
    let issuer = rcgen::Issuer::new(params, key);
    let mut params = rcgen::CertificateParams::default();
    params.subject_alt_names = names;
    params.signed_by(&rcgen::KeyPair::generate().unwrap(), &issuer).unwrap()
}

fn uri(text: &str) -> rcgen::SanType {
    rcgen::SanType::URI(text.try_into().unwrap())
}

fn by(
    certificate: &rcgen::Certificate,
    resource: Resource<'_>,
) -> Result<Authenticated, AuthenticationFault> {
    by_certificate(VerifiedCertificate(certificate.der()), resource)
}

#[test]
fn a_certificate_names_its_caller_by_the_first_uri() {
    let dns = rcgen::SanType::DnsName("host.example.com".try_into().unwrap());
    let names = vec![dns.clone(), uri("spiffe://acme/agent"), uri("spiffe://acme/other")];
    let named = by(&certificate("Acme CA", names), MCP).unwrap().caller;
    let identity = named.identity();
    assert_eq!(identity.subject, "spiffe://acme/agent");
    // rcgen's default.
    let since = by(&certificate("Acme CA", vec![uri("spiffe://acme/agent")]), MCP).unwrap().since;
    assert_eq!(Some(since), Timestamp::parse("1975-01-01"));
    assert_eq!(identity.issuer, "mtls:Acme CA");
    assert_eq!(identity.proof, IdentityProof::Certificate);
    assert_eq!(identity.actor_type, ActorType::Agent);
    let without = by(&certificate("Acme CA", vec![dns]), MCP);
    assert_eq!(without, Err(CertificateFault::NoUri.into()));
    let at_admin = by(&certificate("Acme CA", vec![uri("spiffe://acme/a")]), Resource::Admin);
    assert_eq!(at_admin, Err(AuthenticationFault::CertificateAtAdmin));
    let long = uri(&format!("spiffe://acme/{}", "x".repeat(1_024)));
    assert_eq!(by(&certificate("Acme CA", vec![long]), MCP), Err(CertificateFault::TooLong.into()));
}

#[test]
fn an_authority_without_a_plain_common_name_is_told_by_a_hash() {
    for authority in ["", "sha256:00", "a\u{1}b"] {
        let made = certificate(authority, vec![uri("spiffe://acme/agent")]);
        let issuer = by(&made, MCP).unwrap().caller.identity().issuer.clone();
        assert!(issuer.starts_with("mtls:sha256:") && issuer.len() == 76, "{issuer}");
    }
    let garbage = tokio_rustls::rustls::pki_types::CertificateDer::from(vec![1, 2, 3]);
    let refused = VerifiedCertificate(&garbage).identity();
    assert_eq!(refused, Err(CertificateFault::Unreadable));
}
