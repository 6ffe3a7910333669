//! How a database is reached: sockets, TLS, and refused addresses.

use super::*;

/// Opens the test's server under another name or with other options.
fn opened(bench: &Bench, host: &str, options: &str) -> Result<PostgresStore, StoreError> {
    let url = bench.url.as_ref().unwrap();
    let url = url.replace("127.0.0.1", host);
    let address = Address::parse(&format!("{url}{options}")).unwrap();
    PostgresStore::open(&bench.home, &address)
}

fn is_encrypted(store: &PostgresStore) -> bool {
    let query = "SELECT ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let answer = store.read(|rows| rows.first(query, &[], |row| Ok(row.cell(0).integer())));
    answer.unwrap().flatten() == Some(1)
}

#[test]
fn a_verified_certificate_is_accepted_and_the_connection_encrypted() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let options = format!("&sslmode=verify-full&sslrootcert={}", roots().display());
    let mut store = opened(&bench, "localhost", &options).unwrap();
    assert!(is_encrypted(&store));
    pin_tools(&mut store, "reports", &[("make", "one")]);
    assert!(is_sound(&store, "reports"));
    let plain = opened(&bench, "localhost", "&sslmode=disable").unwrap();
    assert!(!is_encrypted(&plain), "and only where it was asked for or must be");
}

#[test]
fn an_untrusted_certificate_or_one_of_another_host_is_refused() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let trusted = format!("&sslmode=require&sslrootcert={}", roots().display());
    for (host, options) in [
        ("localhost", "&sslmode=require"),
        ("localhost", "&sslmode=verify-full"),
        ("127.0.0.1", trusted.as_str()),
    ] {
        let error = opened(&bench, host, options).unwrap_err();
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}

#[test]
fn a_file_without_certificates_trusts_no_server() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    for (content, expected) in [("nonsense", "no certificate"), ("", "no certificate")] {
        let path = bench.home.path().join("roots.pem");
        fs::write(&path, content).unwrap();
        let options = format!("&sslmode=require&sslrootcert={}", path.display());
        let error = opened(&bench, "localhost", &options).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("roots.pem"), "{error}");
    }
    let error = opened(&bench, "localhost", "&sslmode=require&sslrootcert=/no/such").unwrap_err();
    assert!(error.to_string().contains("/no/such"), "{error}");
}

#[test]
fn a_unix_socket_is_reached_without_tls() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let folder = roots().parent().unwrap().display().to_string().replace('/', "%2F");
    let mut store = opened(&bench, &folder, "").unwrap();
    pin_tools(&mut store, "reports", &[("make", "one")]);
    assert_eq!(pinned(&*bench.store(), "reports", "make"), ["one"]);
}

#[test]
fn a_place_where_nothing_listens_is_told_without_the_password() {
    let directory = tempfile::tempdir().unwrap();
    let home = Home::open(&directory.path().join("home")).unwrap();
    let address = Address::parse("postgres://ada:s3cret@127.0.0.1:1/x").unwrap();
    let error = PostgresStore::open(&home, &address).unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    let text = format!("{error} {error:?}");
    assert!(text.contains("postgres://ada@127.0.0.1:1/x") && !text.contains("s3cret"), "{text}");
}

#[test]
fn a_database_that_does_not_exist_is_named() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let address = Address::parse(&url.replace("/postgres", "/no_such")).unwrap();
    let error = PostgresStore::open(&bench.home, &address).unwrap_err().to_string();
    assert!(error.contains("no_such"), "{error}");
}

#[test]
fn a_database_of_another_encoding_is_refused() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let name = format!("latin_{}", std::process::id());
    run_sql(&url, &format!("CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0")).unwrap();
    let address = Address::parse(&url.replace("/postgres", &format!("/{name}"))).unwrap();
    let error = PostgresStore::open(&bench.home, &address).unwrap_err();
    run_sql(&url, &format!("DROP DATABASE {name}")).unwrap();
    assert!(error.to_string().contains("`LATIN1`, not `UTF8`"), "{error}");
}
