//! Metadata of resources and authorization servers, token responses and browser responses may be
//! any bytes. Addresses that pass the checks are neither on this machine nor unencrypted.

use oauth::locations::ResourceUrl;
use oauth::{ResourceMetadata, ServerMetadata};

pub fn run(bytes: &[u8]) {
    let endpoint = "https://mcp.example/tenant/mcp".parse().expect("an address");
    let resource = ResourceUrl::new(&endpoint).expect("a resource");
    if let Ok(metadata) = ResourceMetadata::read(bytes) {
        let own = resource.metadata();
        for place in own.iter().map(String::as_str).chain(["https://mcp.example/elsewhere"]) {
            if resource.is_named_by(&metadata.resource, place) {
                assert!(metadata.resource.to_ascii_lowercase().starts_with("https://mcp.example"));
            }
        }
        for issuer in &metadata.authorization_servers {
            for place in oauth::locations::of_issuer(issuer).unwrap_or_default() {
                assert!(place.contains("/.well-known/"), "{place}");
            }
        }
    }
    let Ok(metadata) = ServerMetadata::read(bytes) else { return };
    if metadata.check(&metadata.issuer.clone(), &resource).is_err() {
        return;
    }
    assert!(metadata.challenge_methods.iter().any(|method| method == "S256"));
    let optional = [&metadata.registration_endpoint, &metadata.revocation_endpoint];
    let needed = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    for url in needed.into_iter().chain(optional.into_iter().flatten()) {
        let lower = url.to_ascii_lowercase();
        assert!(lower.starts_with("https://"), "{url}");
        assert!(
            !lower.starts_with("https://localhost/") && !lower.starts_with("https://127.0.0.1/")
        );
    }
}
