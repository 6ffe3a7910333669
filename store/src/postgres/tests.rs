//! Behaviour specific to a shared PostgreSQL: one key for all nodes, lost connections, TLS.

use super::*;
use crate::Store;
use crate::tests::bench::*;
use crate::tests::proxy::{Mode, Proxy};
use gate::pins::Basis;
use std::fs;
use std::path::PathBuf;

mod away;
mod cleaning;
mod keys;
mod reaching;

/// A store that reaches its database through a proxy that can fail.
struct Proxied {
    bench: Bench,
    proxy: Proxy,
    store: PostgresStore,
}

impl Proxied {
    fn new(url: &str) -> Proxied {
        let bench = Bench::on(url);
        let server = url.split(['@', '/']).nth(3).unwrap().to_owned();
        let proxy = Proxy::before(server.clone());
        let through = bench.url.as_ref().unwrap().replace(&server, &proxy.place());
        let store = PostgresStore::open(&bench.home, &Address::parse(&through).unwrap()).unwrap();
        Proxied { bench, proxy, store }
    }
}

/// The folder of the test's server, which also has the CA certificates.
fn roots() -> PathBuf {
    PathBuf::from(std::env::var_os("HOLDPOINT_TEST_POSTGRES_ROOTS").unwrap())
}
