use super::*;
use settings::gateway::GatewaySettings;
use std::path::Path;

fn names(text: &str) -> FrontNames {
    let settings = GatewaySettings::read(text, Path::new("/")).unwrap();
    FrontNames::new(&settings.front, settings.front.listen)
}

fn public() -> FrontNames {
    names(
        "[gateway]\nlisten = \"0.0.0.0:8420\"\npublic_url = \"https://mcp.example.com\"\ntls = { terminated_by = [\"10.0.0.1\"] }\nallowed_origins = [\"https://app.example.com:8443\"]\n[auth.keys]\nenabled = true\n",
    )
}

fn local() -> FrontNames {
    names("[gateway]\nlisten = \"127.0.0.1:8420\"\n")
}

fn checked(names: &FrontNames, given: &[(&'static str, &str)]) -> Result<(), NotOurs> {
    checked_at(names, "/mcp", given)
}

fn checked_at(
    names: &FrontNames,
    uri: &str,
    given: &[(&'static str, &str)],
) -> Result<(), NotOurs> {
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        headers.append(*name, value.parse().unwrap());
    }
    names.check(&uri.parse().unwrap(), &headers)
}

#[test]
fn an_origin_is_absent_or_allowed() {
    let host = ("host", "mcp.example.com");
    assert_eq!(checked(&public(), &[host]), Ok(()));
    for origin in ["https://mcp.example.com", "https://app.example.com:8443"] {
        assert_eq!(checked(&public(), &[host, ("origin", origin)]), Ok(()), "{origin}");
    }
    for origin in [
        "http://mcp.example.com",
        "https://mcp.example.com:8443",
        "https://app.example.com",
        "https://mcp.example.com.evil.example",
        "https://evil.example",
        "null",
        "",
    ] {
        let refused = checked(&public(), &[host, ("origin", origin)]);
        assert_eq!(refused, Err(NotOurs::Origin), "{origin}");
    }
    let good = ("origin", "https://mcp.example.com");
    assert_eq!(checked(&public(), &[host, good, good]), Err(NotOurs::Origin));
}

#[test]
fn a_public_gateway_answers_to_its_own_name_only() {
    for host in ["mcp.example.com", "MCP.example.com", "mcp.example.com:443"] {
        assert_eq!(checked(&public(), &[("host", host)]), Ok(()), "{host}");
    }
    for host in ["localhost:8420", "127.0.0.1:8420", "mcp.example.com:8420", "evil.example", ""] {
        assert_eq!(checked(&public(), &[("host", host)]), Err(NotOurs::Host), "{host}");
    }
    assert_eq!(checked(&public(), &[]), Err(NotOurs::Host));
    let host = ("host", "mcp.example.com");
    assert_eq!(checked(&public(), &[host, host]), Err(NotOurs::Host));
}

#[test]
fn a_local_gateway_is_not_reached_under_a_rebound_name() {
    for host in ["localhost:8420", "127.0.0.1:8420", "[::1]:8420"] {
        assert_eq!(checked(&local(), &[("host", host)]), Ok(()), "{host}");
    }
    for host in ["evil.example:8420", "localhost", "localhost:8421", "127.0.0.2:8420"] {
        assert_eq!(checked(&local(), &[("host", host)]), Err(NotOurs::Host), "{host}");
    }
    let rebound = [("host", "localhost:8420"), ("origin", "http://evil.example:8420")];
    assert_eq!(checked(&local(), &rebound), Err(NotOurs::Origin));
}

#[test]
fn the_host_of_http2_is_in_the_uri_and_counts_as_well() {
    let uri = "https://mcp.example.com/mcp";
    assert_eq!(checked_at(&public(), uri, &[]), Ok(()));
    assert_eq!(checked_at(&public(), "https://evil.example/mcp", &[]), Err(NotOurs::Host));
    let host = ("host", "mcp.example.com");
    assert_eq!(checked_at(&public(), "https://evil.example/mcp", &[host]), Err(NotOurs::Host));
    assert_eq!(checked_at(&public(), uri, &[("host", "evil.example")]), Err(NotOurs::Host));
}
