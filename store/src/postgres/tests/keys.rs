//! All nodes need the same key: a node with a different key gets an error, and its pins are not
//! reported as tampered.

use super::*;

fn open(home: &Home, bench: &Bench) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(home, &bench.address())
}

#[track_caller]
fn check_other_key(result: Result<PostgresStore, StoreError>, home: &Home) {
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::OtherKey { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("copy `keys/pins.key` from the home of a node"), "{text}");
    assert!(text.contains(&home.pins_key_path().display().to_string()), "{text}");
}

#[test]
fn a_second_node_needs_the_first_ones_key() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let mut first = open(&bench.home, &bench).unwrap();
    pin_tools(&mut first, "reports", &[("make", "one")]);
    let second = bench.another_home("second");
    check_other_key(open(&second, &bench), &second);
    assert!(!second.pins_key_path().exists(), "no key is made that would fit nothing");
    fs::write(second.pins_key_path(), [7; 32]).unwrap();
    crate::home::private_file(&second.pins_key_path()).unwrap();
    check_other_key(open(&second, &bench), &second);
    fs::copy(bench.key_path(), second.pins_key_path()).unwrap();
    let mut node = open(&second, &bench).unwrap();
    assert!(is_sound(&node, "reports"));
    pin_tools(&mut node, "reports", &[("make", "two")]);
    assert_eq!(pinned(&first, "reports", "make"), ["one", "two"]);
    assert!(is_sound(&first, "reports"));
}

#[test]
fn of_nodes_that_start_at_once_on_an_empty_database_one_makes_the_key() {
    let Some(url) = postgres_url() else { return };
    for _ in 0..5 {
        let bench = Bench::on(&url);
        let homes: Vec<Home> =
            (0..6).map(|node| bench.another_home(&format!("node{node}"))).collect();
        let opened: Vec<_> = std::thread::scope(|scope| {
            let bench = &bench;
            let opening: Vec<_> =
                homes.iter().map(|home| scope.spawn(move || open(home, bench))).collect();
            opening.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1);
        for (opened, home) in opened.into_iter().zip(&homes) {
            assert_eq!(opened.is_ok(), home.pins_key_path().exists());
            if opened.is_err() {
                check_other_key(opened, home);
            }
        }
    }
}

#[test]
fn a_key_that_vanishes_or_changes_while_the_store_is_open_is_noticed_as_this_nodes_fault() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    let mut store = open(&bench.home, &bench).unwrap();
    pin_tools(&mut store, "reports", &[("make", "one")]);
    let key = fs::read(bench.key_path()).unwrap();
    let server = id("reports");
    fs::remove_file(bench.key_path()).unwrap();
    assert!(matches!(store.pins(&server), Err(StoreError::OtherKey { .. })));
    let mut approve = act(&server, "server.approve");
    approve.reseal = true;
    approve.pins = vec![pin("make", "two", Basis::Person)];
    assert!(matches!(store.record(approve), Err(StoreError::OtherKey { .. })));
    assert!(!bench.key_path().exists(), "not even an approval makes a key that other nodes lack");
    fs::write(bench.key_path(), [9; 32]).unwrap();
    crate::home::private_file(&bench.key_path()).unwrap();
    assert!(matches!(store.servers(), Err(StoreError::OtherKey { .. })));
    fs::write(bench.key_path(), key).unwrap();
    assert!(is_sound(&store, "reports"));
    assert_eq!(pinned(&store, "reports", "make"), ["one"]);
}

#[test]
fn a_key_that_was_there_before_the_database_is_the_one_that_counts() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    fs::write(bench.key_path(), [5; 32]).unwrap();
    crate::home::private_file(&bench.key_path()).unwrap();
    pin_tools(&mut open(&bench.home, &bench).unwrap(), "reports", &[("make", "one")]);
    assert_eq!(fs::read(bench.key_path()).unwrap(), [5; 32]);
    assert!(is_sound(&open(&bench.home, &bench).unwrap(), "reports"));
}

#[test]
fn a_key_that_cannot_be_used_starts_no_database() {
    let Some(url) = postgres_url() else { return };
    let bench = Bench::on(&url);
    fs::write(bench.key_path(), [5; 31]).unwrap();
    crate::home::private_file(&bench.key_path()).unwrap();
    let error = open(&bench.home, &bench).unwrap_err();
    assert!(error.to_string().contains("is not a key of 32 bytes"), "{error}");
    assert_eq!(bench.ask("SELECT count(*) FROM shared WHERE key_check IS NOT NULL"), ["0"]);
}
