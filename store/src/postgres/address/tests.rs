//! Which addresses use TLS, which are refused, and that no password is shown.

use super::{Address, AddressError, Encryption, MAX_ADDRESS_BYTES};

fn encryption(url: &str) -> Encryption {
    Address::parse(url).unwrap().encryption
}

const VERIFIED: Encryption = Encryption::Verified { roots: None };

#[test]
fn another_machine_is_reached_over_verified_tls_unless_the_address_says_otherwise() {
    for url in [
        "postgres://ada@db.example.com/holdpoint",
        "postgresql://ada@10.0.0.7:5433/holdpoint",
        "postgres://ada@db.example.com/holdpoint?sslmode=require",
        "postgres://ada@db.example.com/holdpoint?sslmode=verify-full&application_name=x",
        "postgres://ada@localhost/holdpoint?sslmode=verify-full",
        "postgres://ada@localhost,db.example.com/holdpoint",
        "postgres://ada@localhost/holdpoint?hostaddr=10.0.0.7",
        "postgres://ada@localhost.example.com/holdpoint",
    ] {
        assert_eq!(encryption(url), VERIFIED, "{url}");
    }
    for url in [
        "postgres://ada@localhost/holdpoint",
        "postgres://ada@127.0.0.1:5433/holdpoint",
        "postgres://ada@[::1]/holdpoint",
        "postgres://ada@localhost/holdpoint?hostaddr=127.0.0.1",
        "postgres://ada@%2Frun%2Fpostgresql/holdpoint",
        "postgres:///holdpoint",
        "postgres://ada@db.example.com/holdpoint?sslmode=disable",
    ] {
        assert_eq!(encryption(url), Encryption::Plain, "{url}");
    }
}

#[test]
fn certificates_of_ones_own_can_be_named() {
    let roots = Some("/etc/our roots.pem".into());
    let url = "postgres://ada@db.example.com/holdpoint?sslrootcert=/etc/our%20roots.pem";
    assert_eq!(encryption(url), Encryption::Verified { roots });
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (url, expected) in [
        ("mysql://ada@localhost/x", AddressError::NotPostgres),
        ("host=localhost dbname=x", AddressError::NotPostgres),
        ("postgres://ada@localhost", AddressError::NoDatabase),
        ("postgres://ada@db.example.com/x?sslmode=prefer", AddressError::SslMode),
        ("postgres://ada@db.example.com/x?sslmode=allow", AddressError::SslMode),
        ("postgres://ada@%2Frun/x?sslmode=require", AddressError::SocketWithTls),
        ("postgres://ada@%2Frun,db.example.com/x", AddressError::SocketWithTls),
        ("postgres://ada@localhost/x?nonsense=1", AddressError::Malformed),
        ("postgres://ada@localhost/x?nonsense", AddressError::Malformed),
        ("postgres://ada@localhost:port/x", AddressError::Malformed),
        ("postgres://ada@localhost/x?sslrootcert=%2", AddressError::Malformed),
        ("postgres://ada@localhost/x?schema=public", AddressError::Schema),
        ("postgres://ada@localhost/x?schema=pg_mine", AddressError::Schema),
        ("postgres://ada@localhost/x?schema=a\"b", AddressError::Schema),
        ("postgres://ada@localhost/x?schema=", AddressError::Schema),
        ("postgres://ada@localhost/x?schema=1a", AddressError::Schema),
    ] {
        assert_eq!(Address::parse(url).unwrap_err(), expected, "{url}");
    }
}

#[test]
fn an_address_and_a_schema_have_a_longest_form() {
    let of = |bytes: usize| {
        let frame = "postgres://a@localhost/";
        format!("{frame}{}", "x".repeat(bytes - frame.len()))
    };
    assert!(Address::parse(&of(MAX_ADDRESS_BYTES)).is_ok());
    assert_eq!(Address::parse(&of(MAX_ADDRESS_BYTES + 1)).unwrap_err(), AddressError::TooLong);
    let schema = |bytes| format!("postgres://a@localhost/x?schema={}", "a".repeat(bytes));
    assert!(Address::parse(&schema(63)).is_ok());
    assert_eq!(Address::parse(&schema(64)).unwrap_err(), AddressError::Schema);
}

#[test]
fn a_password_is_known_and_never_shown() {
    for url in [
        "postgres://ada:s3cret@db.example.com:5433/holdpoint",
        "postgres://ada@db.example.com:5433/holdpoint?password=s3cret",
    ] {
        let address = Address::parse(url).unwrap();
        assert!(address.has_password());
        assert_eq!(address.to_string(), "postgres://ada@db.example.com:5433/holdpoint");
        assert!(!format!("{address:?}").contains("s3cret"));
    }
    assert!(!Address::parse("postgres://ada@localhost/x").unwrap().has_password());
    let malformed = "postgres://ada:s3cret/@localhost:x/y";
    assert!(!format!("{:?}", Address::parse(malformed)).contains("s3cret"));
}

#[test]
fn a_place_names_every_host_and_a_schema_that_is_not_the_usual_one() {
    for (url, expected) in [
        ("postgres://%2Frun%2Fpg/x", "postgres:///run/pg:5432/x"),
        ("postgres://ada@a,b:7/x?schema=ours", "postgres://ada@a:5432,b:7/x?schema=ours"),
    ] {
        let url = format!("{url}{}", if url.contains('?') { "&sslmode=disable" } else { "" });
        assert_eq!(Address::parse(&url).unwrap().to_string(), expected);
    }
}
