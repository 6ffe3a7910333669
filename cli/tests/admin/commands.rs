//! The commands that act on a remote gateway.

use crate::bench::{Answer, Bench, answer};
use crate::station::{SERVER, Setup, Station};
use serde_json::Value;

/// Runs a command as on another machine: with its own home, and the gateway's address.
fn run(bench: &Bench, station: &Station, key: &str, words: &[&str]) -> Answer {
    let url = format!("http://{}", station.addresses[0]);
    let gateway = ["--gateway", &url, "--key", "env:ADMIN_KEY"];
    let mut command = bench.command(words.iter().chain(&gateway));
    command.env("ADMIN_KEY", key);
    answer(command)
}

#[test]
fn a_change_is_reviewed_and_approved_from_elsewhere() {
    let station = Station::start(&Setup::usual());
    let elsewhere = Bench::unattended();
    let run = |words: &[&str]| run(&elsewhere, &station, &station.admin, words);
    run(&["status"]).exits(0).says(SERVER).says("unbaselined");
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    run(&["status"]).exits(0).says("verified").says("1 tool served");
    run(&["review"]).exits(0).says("nothing is waiting for you");
    station.show("after");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    run(&["status", SERVER]).exits(0).says("changed").says("danger_delete");
    let review = run(&["review", "--json"]).exits(10).json();
    let hash = review["servers"][0]["surface_hash"].as_str().unwrap().to_owned();
    run(&["review"]).exits(10).says("holdpoint approve").says("--key env:ADMIN_KEY").says(&hash);
    let other = "0".repeat(64);
    run(&["approve", SERVER, "--hash", &other]).exits(10).says("a different hash");
    run(&["approve", SERVER, "tool:nothing", "--hash", &hash]).exits(10).says("a different hash");
    run(&["approve", SERVER, "--hash", &hash]).exits(0).says("the server is verified");
    assert_eq!(station.session().tools(), ["danger_delete", "make_report"]);
    run(&["quarantine", SERVER]).exits(0).says("the server is quarantined");
    assert_eq!(station.session().tools(), [""; 0]);
    run(&["approve", SERVER, "--hash", &hash]).exits(10);
    run(&["release", SERVER]).exits(0).says("the server is verified");
    run(&["release", SERVER]).exits(10);
}

#[test]
fn one_entry_is_approved_by_its_own_hash() {
    let station = Station::start(&Setup::usual());
    let elsewhere = Bench::unattended();
    let run = |words: &[&str]| run(&elsewhere, &station, &station.admin, words);
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    station.show("after");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    let server = station.server();
    let hash = server["waiting"][0]["entry_hash"]["after"].as_str().unwrap();
    run(&["approve", SERVER, "tool:danger_delete", "--hash", hash])
        .exits(0)
        .says("approved 1 entry")
        .says("verified");
}

#[test]
fn a_person_has_to_be_there_to_approve() {
    let station = Station::start(&Setup { first_use: "approve".to_owned(), ..Setup::usual() });
    let recheck = format!("/servers/{SERVER}/recheck");
    assert_eq!(station.admin("POST", &recheck, &Value::Null).status, 200);
    let hash = station.server()["surface_hash"].as_str().unwrap().to_owned();
    // Without `approve.unattended` and without a terminal.
    let elsewhere = Bench::new();
    let words = ["approve", SERVER, "--hash", &hash];
    run(&elsewhere, &station, &station.admin, &words).exits(2).says("terminal");
    assert_eq!(station.server()["status"], "pending");
}

#[test]
fn what_goes_wrong_is_told_in_plain_words() {
    let station = Station::start(&Setup::usual());
    let elsewhere = Bench::unattended();
    let with_key = |key: &str, words: &[&str]| run(&elsewhere, &station, key, words);
    with_key(&station.agent, &["status"]).exits(13).says("holdpoint key create --admin");
    with_key("hpa_nothing", &["status"]).exits(13).says("does not accept this key");
    let auditor =
        station.key(&["--sub", "eve", "--actor", "user", "--group", "auditors", "--admin"]);
    with_key(&auditor, &["status"]).exits(0);
    with_key(&auditor, &["quarantine", SERVER]).exits(13).says("no_policy_match");
    with_key(&station.admin, &["status", "nothere"]).exits(2).says("no server `nothere`");
    with_key(&station.admin, &["status", "--short"]).exits(2).says("--short");
    let words = ["status", "--gateway", "http://127.0.0.1:9", "--key", "env:ADMIN_KEY"];
    let mut command = elsewhere.command(words);
    command.env("ADMIN_KEY", "hpa_x");
    answer(command).exits(11).says("the gateway at http://127.0.0.1:9");
    elsewhere.run(words).exits(2).says("`ADMIN_KEY` is not set");
    let plain = ["status", "--gateway", "http://203.0.113.5", "--key", "env:ADMIN_KEY"];
    let mut command = elsewhere.command(plain);
    command.env("ADMIN_KEY", "hpa_x");
    answer(command).exits(11).says("plain http is for loopback addresses only");
    elsewhere.run(["status", "--gateway", "http://127.0.0.1:9"]).exits(2).says("--key");
}
