//! A directory and a model whose names later resolve to internal addresses: this machine, its
//! network, a cloud's metadata service.
//!
//! The test's own name server resolves the names, and everything runs in a monitored network
//! namespace, so that attempts to connect anywhere else would be seen.

use crate::bench::*;
use crate::network::{
    Changed, Directory, arguments, over_tls, public_only, secure_directory_and_model,
};
use serde_json::json;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use testing::watched::{NameServer, PUBLIC, Packet, WORLD, Watched};

const INWARD: [(&str, Ipv4Addr); 3] = [
    ("loopback", Ipv4Addr::LOCALHOST),
    ("private", WORLD),
    ("metadata", Ipv4Addr::new(169, 254, 169, 254)),
];

/// A directory and a model whose addresses are public at the first lookup, and internal from then
/// on.
fn moving(kind: &str) -> [String; 2] {
    [format!("{kind}.directory.test"), format!("{kind}.model.test")]
}

/// Names with several addresses at once, internal ones first.
const SEVERAL: [&str; 2] = ["several.directory.test", "several.model.test"];

fn resolve(name: &str, times_before: usize) -> Vec<Ipv4Addr> {
    let (kind, _) = name.split_once('.').unwrap_or_default();
    let inward = INWARD.iter().find(|(named, _)| *named == kind);
    match (kind, inward) {
        ("several", _) => INWARD.iter().map(|(_, address)| *address).chain([PUBLIC]).collect(),
        (_, Some(_)) if times_before == 0 => vec![PUBLIC],
        (_, Some((_, address))) => vec![*address],
        (_, None) => Vec::new(),
    }
}

#[test]
fn a_name_that_comes_to_lead_inward_is_not_followed_and_lets_nothing_go_on() {
    Watched {
        test: "rebinding::a_name_that_comes_to_lead_inward_is_not_followed_and_lets_nothing_go_on",
        world: &|| {
            let names = INWARD.iter().flat_map(|(kind, _)| moving(kind));
            let names: Vec<String> = names.chain(SEVERAL.map(str::to_owned)).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let service = secure_directory_and_model(&Directory::default(), &names);
            (NameServer::start(resolve), service)
        },
        product: &|| {
            // The listener that an internal address would reach on this machine.
            let here = TcpListener::bind((Ipv4Addr::LOCALHOST, 443)).unwrap();
            here.set_nonblocking(true).unwrap();
            INWARD.iter().for_each(|(kind, _)| meet_moving(kind));
            meet_several();
            let reached = here.accept().map(|(_, from)| from);
            assert_eq!(reached.unwrap_err().kind(), ErrorKind::WouldBlock, "this machine");
            String::new()
        },
        check: &|(names, service), packets, _| {
            let is_allowed = |packet: &Packet| match packet.protocol {
                Some(6) => packet.to == Some(PUBLIC.into()) && packet.to_port == 443,
                _ => packet.to == Some(WORLD.into()) && packet.is_name_look_up(),
            };
            let others: Vec<&Packet> = packets.iter().filter(|it| !is_allowed(it)).collect();
            assert_eq!(others, [] as [&Packet; 0], "packets to other places");
            let heard = |name: &str| {
                let host = format!("\r\nhost: {name}\r\n");
                service.requests().iter().filter(|it| it.raw.contains(&host)).count()
            };
            for name in INWARD.iter().flat_map(|(kind, _)| moving(kind)) {
                assert_eq!(heard(&name), 1, "{name}: heard while its address was public");
                assert!(names.times_asked(&name) > 1, "{name}: it was looked up again");
            }
            for name in SEVERAL {
                assert!(heard(name) > 0, "{name}");
                assert_eq!(names.times_asked(name), heard(name), "{name}: one look-up each");
            }
        },
    }
    .run();
}

fn install(names: [&str; 2], kind: &str) -> Changed {
    let mut changed = Changed::new();
    changed.trust_the_world();
    // Even users who allow private addresses do not allow the metadata service.
    let configuration = over_tls(names, "");
    changed.bench().configure(&match kind {
        "metadata" => configuration,
        _ => public_only(&configuration),
    });
    for (number, name) in ["first.json", "second.json"].into_iter().enumerate() {
        let mut tool = report_tool();
        tool["description"] = json!(format!("Makes report {number}."));
        changed.bench().file(name, json!([tool]).to_string());
    }
    changed
}

/// Contacts the corpus, the feed, the advisories and the model, each under a name that resolves to
/// internal addresses.
fn meet_moving(kind: &str) {
    let names = moving(kind);
    let changed = install([&names[0], &names[1]], kind);
    changed.run(&["screen", "first.json", "--judge"]).exits(10).says("intent fail");
    let refused = changed.run(&["screen", "second.json", "--judge"]).exits(0);
    refused.says("the model was not asked about every tool").says("intent not run");
    let mut client = changed.session();
    testing::wait_until("all of them were asked", || {
        let held = client.call("make_report", &arguments());
        let data = &held["error"]["data"];
        assert_eq!(data["verdict"], "INCONCLUSIVE", "{kind}: {held}");
        assert_eq!(data["tier_reached"], 0, "{kind}: {held}");
        let sent = changed.sent();
        let is_sent = |beginning: &str| sent.iter().any(|it| it.starts_with(beginning));
        let chats = sent.iter().filter(|it| it.starts_with("POST /v1/chat")).count();
        is_sent("GET /api/v1/network/corpus") && is_sent("GET /api/v1/network/drift") && chats > 2
    });
    client.end().exits(0);
    changed.run(&["review"]).exits(10);
    let advisories = changed.run(&["network", "advisories", "--json"]).exits(0).json();
    let problem = advisories["problem"].as_str().unwrap();
    let expected = match kind {
        "metadata" => "the address of a metadata service".to_owned(),
        kind => format!("a {kind} address"),
    };
    assert!(problem.contains(&expected), "{problem}");
    assert_eq!(advisories["refreshed"], json!(false));
}

fn meet_several() {
    let changed = install(SEVERAL, "several");
    changed.run(&["screen", "first.json", "--judge"]).exits(10).says("intent fail");
    let advisories = changed.run(&["network", "advisories", "--json"]).exits(0).json();
    assert_eq!(advisories["refreshed"], json!(true), "{advisories}");
}
