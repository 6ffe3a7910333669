use super::*;
use std::path::PathBuf;

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/service").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}: if this is meant, run the tests with UPDATE_GOLDEN=1");
}

fn usual(check: impl FnOnce(&Service<'_>)) {
    let (program, variables) = (PathBuf::from("/home/ada/.local/bin/holdpoint"), BTreeMap::new());
    check(&Service { program: &program, home: None, is_auto: false, variables: &variables });
}

/// Sets everything that can be set, with every character that is special in either format.
fn odd(check: impl FnOnce(&Service<'_>)) {
    let program = PathBuf::from("/home/Ada \"$HOME\" 100%/\\<b>&/holdpoint");
    let home = PathBuf::from("/srv/two words");
    let variables = [("CODEX_HOME", "/srv/$x %h"), ("XDG_CONFIG_HOME", "/home/ada/a&b")];
    let variables =
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
    let home = Some(home.as_path());
    check(&Service { program: &program, home, is_auto: true, variables: &variables });
}

#[test]
fn the_unit_is_as_the_golden_files_say() {
    usual(|service| golden("usual.service", &systemd_unit(service).unwrap()));
    odd(|service| golden("odd.service", &systemd_unit(service).unwrap()));
}

#[test]
fn the_agent_is_as_the_golden_files_say() {
    usual(|service| golden("usual.plist", &launch_agent(service).unwrap()));
    odd(|service| golden("odd.plist", &launch_agent(service).unwrap()));
}

#[test]
fn what_would_end_a_line_is_refused() {
    let variables = BTreeMap::new();
    for path in ["/home/a\nExecStart=/bin/evil", "/a\r", "/a\u{1b}"] {
        let service =
            Service { program: Path::new(path), home: None, is_auto: false, variables: &variables };
        assert_eq!(systemd_unit(&service), Err(ServiceError::NotPlain(path.to_owned())));
        assert_eq!(launch_agent(&service), Err(ServiceError::NotPlain(path.to_owned())));
    }
    let hostile = BTreeMap::from([("CODEX_HOME".to_owned(), "a\n[Service]".to_owned())]);
    usual(|service| {
        let service = Service { variables: &hostile, ..*service };
        assert!(systemd_unit(&service).is_err() && launch_agent(&service).is_err());
    });
}
