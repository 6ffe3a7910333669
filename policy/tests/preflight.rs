//! `conformance/preflight`: hostile paths and URLs, all of which must be refused, each with a valid
//! counterpart that is accepted.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of this file is a test")]

use policy::preflight::{AllowedHost, Workspace, check_url};
use serde_json::Value;
use std::collections::BTreeSet;

fn corpus(name: &str) -> Value {
    let path = format!("{}/../conformance/preflight/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Checks every case and reports all failures together.
fn check(corpus: &Value, least: usize, is_accepted: impl Fn(&str) -> Result<(), String>) {
    let cases = corpus["cases"].as_array().unwrap();
    let mut refused = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in cases {
        let text = |member: &str| case[member].as_str().unwrap();
        if is_accepted(text("refused")).is_ok() {
            wrong.push(format!("passed ({}): {:?}", text("trick"), text("refused")));
        }
        if let Err(why) = is_accepted(text("accepted")) {
            wrong.push(format!("refused, {why} ({}): {:?}", text("trick"), text("accepted")));
        }
        refused.insert(text("refused").to_owned());
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(refused.len() >= least, "only {} cases", refused.len());
}

#[test]
fn every_path_that_leads_out_of_the_workspace_is_refused_and_its_twin_is_not() {
    let corpus = corpus("paths.json");
    let workspace = Workspace::new(corpus["workspace"].as_str().unwrap()).unwrap();
    check(&corpus, 500, |text| workspace.check(text).map_err(|why| why.to_string()));
}

#[test]
fn every_url_to_another_host_is_refused_and_its_twin_is_not() {
    let corpus = corpus("urls.json");
    let hosts = corpus["net_allow"].as_array().unwrap();
    let allowed: Vec<AllowedHost> =
        hosts.iter().map(|host| host.as_str().unwrap().parse().unwrap()).collect();
    check(&corpus, 300, |text| check_url(text, &allowed).map_err(|why| why.to_string()));
}
