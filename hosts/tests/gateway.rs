//! Hosts pointed at a gateway: what each file becomes, that it is recognized afterwards, and that
//! undoing the change restores the file byte for byte.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "all of this file is a test")]

use hosts::rewrite::{self, Manner};
use hosts::{
    Aim, Choice, Config, GatewayEntry, GatewayError, GatewayKey, Surroundings, Syntax, System,
    WireError, WiringState, Workshop, table,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const URL: &str = "https://tools.acme.example/mcp";

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn entry(key: GatewayKey) -> GatewayEntry {
    GatewayEntry { url: URL.to_owned(), key }
}

fn named() -> GatewayKey {
    GatewayKey::Variable("GATEWAY_KEY".to_owned())
}

fn written() -> GatewayKey {
    GatewayKey::Literal { variable: Some("GATEWAY_KEY".to_owned()), key: "hp_s3cr3t".to_owned() }
}

/// Every readable file of the corpus, with its host.
fn samples() -> Vec<(String, String, Manner<'static>)> {
    let mut samples: Vec<_> = fs::read_dir(folder("corpus"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .filter_map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).ok()?;
            let manner = Manner {
                host: table::host(name.split("--").next().unwrap())?,
                syntax: Syntax::of_name(&name)?,
                apart: None,
                program: "/usr/local/bin/holdpoint",
                home: None,
                own_home: None,
                sandbox: None,
                taken: None,
            };
            rewrite::servers(&text, &manner).is_ok().then_some((name, text, manner))
        })
        .collect();
    samples.sort_by(|one, other| one.0.cmp(&other.0));
    samples
}

#[test]
fn what_each_file_becomes_is_read_back_as_a_gateway() {
    let mut count = 0;
    for (name, text, manner) in samples() {
        let added = match rewrite::add_gateway(&text, &manner, &entry(written())) {
            Ok(added) => added,
            Err(GatewayError::NoHttp) => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        let golden = folder("golden/gateway").join(&name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(golden.parent().unwrap()).unwrap();
            fs::write(&golden, &added.text).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(added.text, expected, "{name}: refresh it with UPDATE_GOLDEN=1 if it is meant");
        let is_gateway =
            |server: &hosts::Server| server.state == WiringState::Gateway { url: URL.to_owned() };
        let servers = rewrite::servers(&added.text, &manner).unwrap();
        let (gateways, others): (Vec<_>, Vec<_>) = servers.into_iter().partition(is_gateway);
        assert_eq!(gateways, added.changed, "{name}");
        assert_eq!(others, rewrite::servers(&text, &manner).unwrap(), "{name}");
        let again = rewrite::add_gateway(&added.text, &manner, &entry(written())).unwrap();
        assert_eq!(again.text, added.text, "{name}");
        let elsewhere = GatewayEntry { url: "https://b.example/mcp".to_owned(), key: named() };
        let other = rewrite::add_gateway(&added.text, &manner, &elsewhere);
        assert_eq!(other.err(), Some(GatewayError::NameTaken), "{name}");
        assert!(!format!("{:?}", added.parts).contains("s3cr3t"), "{name}");
        let wired = rewrite::wire(&added.text, &manner, &Choice::default()).unwrap();
        assert!(!wired.changed.iter().any(is_gateway), "{name}: a gate in front of the gateway");
        count += 1;
    }
    assert!(count > 60, "{count}");
}

#[test]
fn the_key_itself_is_written_only_where_a_host_can_name_no_variable() {
    let mut found: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, text, manner) in samples() {
        let id = name.split("--").next().unwrap();
        let host = table::host(id).unwrap().id;
        let kind = match rewrite::add_gateway(&text, &manner, &entry(named())) {
            Err(GatewayError::NoHttp) => "no http",
            Err(GatewayError::NoReference) => {
                let added = rewrite::add_gateway(&text, &manner, &entry(written())).unwrap();
                assert!(added.text.contains("Bearer hp_s3cr3t"), "{name}");
                "the key"
            }
            Err(error) => panic!("{name}: {error}"),
            Ok(added) => {
                assert!(added.text.contains("GATEWAY_KEY"), "{name}");
                let literal = rewrite::add_gateway(&text, &manner, &entry(written())).unwrap();
                assert_eq!(literal.text, added.text, "{name}");
                "a variable"
            }
        };
        assert_eq!(*found.entry(host).or_insert(kind), kind, "{name}");
        let open = rewrite::add_gateway(&text, &manner, &entry(GatewayKey::None));
        let bearers = |text: &str| text.matches("Bearer").count();
        assert!(open.is_err() || bearers(&open.unwrap().text) == bearers(&text), "{name}");
    }
    let of = |wanted: &str| -> Vec<&str> {
        found.iter().filter(|(_, kind)| **kind == wanted).map(|(host, _)| *host).collect()
    };
    assert_eq!(of("no http"), ["claude-desktop", "witsy"]);
    assert_eq!(
        of("the key"),
        ["amazon-q", "cline", "copilot-cli", "junie", "lm-studio", "warp", "zed"]
    );
}

#[test]
fn the_way_back_ends_with_the_bytes_that_were_there() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = Surroundings {
        system: System::Linux,
        home: folder.path().join("home"),
        variables: BTreeMap::new(),
        projects: Vec::new(),
    };
    let journal = folder.path().join("holdpoint").join("hosts");
    let workshop = Workshop::new(Path::new("/usr/local/bin/holdpoint"), &journal, None).unwrap();
    let pointing = Choice { gateway: Some(entry(written())), ..Choice::default() };
    for (name, text, manner) in samples() {
        let path = folder.path().join(&name);
        fs::write(&path, &text).unwrap();
        let config = Config::named(&path, Some(manner.host), &surroundings).unwrap();
        let plan = match workshop.plan(&config, Aim::Wire, &pointing) {
            Ok(plan) => plan,
            Err(WireError::Gateway { source: GatewayError::NoHttp, .. }) => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        workshop.apply(plan).unwrap();
        let between = fs::read_to_string(&path).unwrap();
        assert_ne!(between, text, "{name}");
        for file in fs::read_dir(&journal).unwrap() {
            let kept = fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(!kept.contains("s3cr3t"), "{name}: the journal has the key");
        }
        // A gate in front of the other servers is removed together with it.
        let wiring = workshop.plan(&config, Aim::Wire, &Choice::default()).unwrap();
        workshop.apply(wiring).unwrap();
        let back = workshop.plan(&config, Aim::Unwire, &Choice::default()).unwrap();
        let done = workshop.apply(back).unwrap();
        assert!(done.is_original, "{name}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{name}");
        // If the host has written its file since, only the entry is removed.
        fs::write(&path, &between).unwrap();
        let plan = workshop.plan(&config, Aim::Wire, &pointing).unwrap();
        assert!(plan.is_empty(), "{name}");
    }
}

#[test]
fn an_entry_is_taken_out_of_a_file_that_was_written_since() {
    for (name, text, manner) in samples() {
        let Ok(added) = rewrite::add_gateway(&text, &manner, &entry(written())) else { continue };
        let comment = match manner.syntax {
            Syntax::Json => "// a comment\n",
            Syntax::Toml | Syntax::Yaml => "# a comment\n",
        };
        if added.text.starts_with('\u{feff}') {
            continue;
        }
        let edited = format!("{comment}{}", added.text);
        let back = rewrite::unwire(&edited, &manner, &Choice::default(), Some(&added.wirings));
        let back = back.unwrap_or_else(|error| panic!("{name}: {error}")).text;
        assert!(back.starts_with(comment) && !back.contains(URL), "{name}: {back}");
        let before = rewrite::servers(&text, &manner).unwrap();
        assert_eq!(rewrite::servers(&back, &manner).unwrap(), before, "{name}");
    }
}
