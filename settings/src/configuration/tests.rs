use super::*;
use crate::keys::{ArgsHash, Fsync, OnFull};
use crate::value::Amounts;
use attest::{Binding, Digest, Package};
use gate::behavior::{Consent, Leg};
use gate::posture::Posture;

fn refused(text: &str) -> String {
    match Configuration::parse(text) {
        Err(problem) => problem,
        Ok(_) => panic!("accepted: {text}"),
    }
}

fn read(text: &str) -> Configuration {
    Configuration::parse(text).unwrap()
}

fn id(text: &str) -> ServerId {
    text.parse().unwrap()
}

#[test]
fn values_are_read_with_a_servers_own_first() {
    let configuration = read(
        "posture = \"shield\"\n[guard]\ninert_string_max = 10\n[server.files]\nposture = \"strict\"\n[server.files.guard]\nnew_tools = \"accept\"",
    );
    let read = |server: Option<&ServerId>| {
        let settings = configuration.of(server).judging(None);
        (settings.posture, settings.inert.string_max, settings.accept_new_tools)
    };
    let general = (Posture::Shield, 10, false);
    assert_eq!(read(None), general);
    assert_eq!(read(Some(&id("mail"))), general);
    assert_eq!(read(Some(&id("files"))), (Posture::Strict, 10, true));
    assert_eq!(configuration.servers().collect::<Vec<_>>(), [&id("files")]);
    let named = configuration.of(Some(&id("files"))).judging(Some(Posture::Monitor));
    assert_eq!(named.posture, Posture::Monitor);
}

#[test]
fn receipts_are_set_by_words_sizes_and_durations() {
    let configuration = read(
        "[receipts]\nfsync = \"always\"\non_full = \"drop-oldest\"\nrotate = [\"1MiB\", \"1h\"]\nkeep = \"90d\"\nargs_hash = \"plain\"",
    );
    let receipts = &configuration.of(None).receipts;
    assert_eq!((receipts.fsync, receipts.on_full), (Fsync::Always, OnFull::DropOldest));
    let (bytes, milliseconds) = (Some(1 << 20), Some(3_600_000));
    assert_eq!(receipts.rotate, Some(Amounts { bytes, milliseconds }));
    let milliseconds = Some(90 * 86_400_000);
    assert_eq!(receipts.keep, Some(Amounts { bytes: None, milliseconds }));
    assert_eq!(receipts.args_hash, ArgsHash::Plain);
}

#[test]
fn unknown_keys_are_refused_with_their_line_and_a_suggestion() {
    for (text, expected) in [
        ("\npostur = \"guard\"", "line 2: unknown key `postur`; did you mean `posture`?"),
        ("[guard]\ninert_max = 1", "unknown key `guard.inert_max`; did you mean `guard.inert_"),
        ("[server.a]\nlists = \"x\"", "unknown key `server.a.lists`; did you mean `list`?"),
        ("[server.a.admission]\nlevel = \"x\"", "unknown key `server.a.admission.level`"),
        ("[server.\"a.b\".limits]\ndeph = 1", "did you mean `limits.depth`?"),
        ("[export]\notlp_header = { }", "did you mean `export.otlp_headers`?"),
        ("[store]\nx = 1", "`store`: invalid type"),
        ("[server.A]\nlist = \"x\"", "not a server id"),
    ] {
        let problem = refused(text);
        assert!(problem.contains(expected), "{text}: {problem}");
    }
}

#[test]
fn a_wrong_value_is_refused_with_its_key_and_what_is_expected() {
    for (text, expected) in [
        ("posture = \"lax\"", "line 1: `posture`: "),
        ("posture = 1", "`posture`: invalid type: integer `1`, expected a string"),
        ("[guard]\ninert_string_max = -1", "expected a whole number from 0 up"),
        ("[guard]\nnew_tools = true", "`guard.new_tools`: "),
        ("guard = 3", "`guard`: invalid type: integer `3`, expected a table"),
        ("[approve]\nunattended = \"yes\"", "`approve.unattended`: "),
        ("[server.a]\nposture = \"lax\"", "`server.a.posture`: "),
        ("[server.a.approve]\nunattended = true", "who may approve is the same"),
        ("[server.a.receipts]\nfsync = \"never\"", "`server.a.receipts`: "),
        ("[server.a]\nstore = \"sqlite\"", "all servers are in one store"),
        ("[server.a.export]\nsyslog = \"udp://x\"", "`server.a.export`: "),
        ("[server.a.server.b]\nposture = \"guard\"", "`server.a.server`: "),
        ("[limits]\nframe_bytes = \"lots\"", "line 2: `limits.frame_bytes`: "),
        ("[limits]\nstart_timeout_seconds = 0", "expected a whole number from 1 to 3600"),
        ("[limits]\nstart_timeout_seconds = 3601", "expected a whole number from 1 to 3600"),
        ("first_use = \"maybe\"", "expected `trust` or `approve`"),
        ("list = \"all\"", "expected one of `stub`, `accepted`, `observed`"),
        ("[receipts]\nfsync = \"sometimes\"", "one of `always`, `interval`, `never`"),
        ("[receipts]\nkeep = \"90\"", "`receipts.keep`: expected a size"),
        ("[receipts]\nkeep = 90", "`receipts.keep`: expected a size"),
        ("[receipts]\nrotate = [\"1d\", \"2d\"]", "`receipts.rotate`: expected a size"),
        ("not toml", "line 1: "),
        ("store = 1", "`store`: "),
        ("[admission]\nflavor = \"closed\"", "`admission.flavor`: "),
        ("[admission]\ntrust_root = \"\"", "`admission.trust_root`: expected a text"),
        ("[admission]\nrequired = 1", "`admission.required`: "),
        ("[admission]\ncache_seconds = -1", "`admission.cache_seconds`: "),
        ("[admission]\nallow_tools = [\"x\"]", "is about one server"),
        ("[admission]\nattestation = \"x\"", "is about one server"),
        ("[admission]\npackage = \"x\"", "is about one server"),
        ("[server.a.admission]\nallow_tools = \"x\"", "`server.a.admission.allow_tools`: "),
        ("[behavior]\nmode = \"sandbox\"", "`behavior` is about one server"),
        ("[server.a.behavior]\nmode = \"on\"", "`server.a.behavior.mode`: "),
        ("[server.a.behavior]\nowned = true", "owner"),
        ("[approval]\ntools = [\"x\"]", "`approval.tools` is about one server"),
        ("[server.a.approval]\ntools = []", "`server.a.approval.tools`: is empty"),
        ("[server.a.approval]\ntools = [\"\"]", "`server.a.approval.tools`: has an empty name"),
        ("[server.a.approval]\ntools = [\"x_*\"]", "`server.a.approval.tools`: takes no patterns"),
        ("[server.a.approval]\ntools = \"x\"", "`server.a.approval.tools`: "),
        ("[server.a.approval]\ntool = [\"x\"]", "tools"),
        ("[server.a.admission]\nallow_tools = [1]", "`server.a.admission.allow_tools`: "),
        ("[server.a.admission]\nprogram_digest = \"x\"", "`server.a.admission.program_digest`: "),
        ("[server.a.admission]\npackage = 1", "`server.a.admission.package`: "),
        ("[export]\notlp = 7", "`export.otlp`: "),
        ("[export]\notlp_headers = { x = \"Bearer y\" }", "cannot be given directly"),
        ("[export]\notlp_headers = { x = \"env:\" }", "`export.otlp_headers.x`: "),
        ("[export]\notlp_headers = { x = \"vault:kv#x\" }", "cannot be read here"),
    ] {
        let problem = refused(text);
        assert!(problem.contains(expected), "{text}: {problem}");
        assert!(!problem.contains('\n'), "{problem}");
    }
}

#[test]
fn a_package_is_named_by_three_keys_or_none() {
    let integrity = Digest::sha256(b"archive");
    let keys = [
        "package = \"mail\"".to_owned(),
        "version = \"1.2.3\"".to_owned(),
        format!("integrity = \"{integrity}\""),
    ];
    let text = |keys: &[String]| format!("[server.a.admission]\n{}", keys.join("\n"));
    let bindings = |text: &str| read(text).of(Some(&id("a"))).admission.bindings().unwrap();
    let (name, version) = ("mail".to_owned(), "1.2.3".to_owned());
    let package = Binding::Package(Package { name, version, integrity: integrity.clone() });
    assert_eq!(bindings(&text(&keys)), vec![package.clone()]);
    let both = format!("{}\nprogram_digest = \"{integrity}\"", text(&keys));
    assert_eq!(bindings(&both), [Binding::File(integrity.clone()), package]);
    for (missing, name) in ["package", "version", "integrity"].into_iter().enumerate() {
        let mut some = keys.to_vec();
        some.remove(missing);
        let problem = refused(&text(&some));
        assert!(problem.contains(&format!("`admission.{name}` is missing")), "{problem}");
        let one = refused(&text(&keys[missing..=missing]));
        assert!(one.contains("together"), "{one}");
    }
    let wrong = refused(&text(&keys).replace("sha256-", "sha1-"));
    assert!(wrong.contains("`server.a.admission.integrity`: "), "{wrong}");
}

#[test]
fn a_file_that_is_not_there_says_nothing_and_one_that_is_too_large_is_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("holdpoint.toml");
    assert_eq!(Configuration::read(&path).unwrap(), Configuration::default());
    let length = usize::try_from(MAX_CONFIGURATION_BYTES).unwrap();
    std::fs::write(&path, format!("#{}", "x".repeat(length - 1))).unwrap();
    assert_eq!(Configuration::read(&path).unwrap(), Configuration::default());
    std::fs::write(&path, format!("#{}", "x".repeat(length))).unwrap();
    let refused = Configuration::read(&path).unwrap_err().to_string();
    assert!(refused.contains("holdpoint.toml: larger than"), "{refused}");
}

#[test]
fn behaviour_is_tried_only_where_a_server_says_so() {
    let text = "[server.a.behavior]\nmode = \"sandbox\"\n[server.b.behavior]\nmode = \"read-only\"\n\
                [server.c.behavior]\nmode = \"read-only\"\nowner = true\n[server.d.behavior]\nowner = true\n";
    let configuration = Configuration::parse(text).unwrap();
    let consent = |id: &str| configuration.of(Some(&id.parse().unwrap())).behavior.consent();
    assert_eq!(consent("a"), Consent::Given(Leg::Sandbox));
    assert_eq!(consent("b"), Consent::NotOwned);
    assert_eq!(consent("c"), Consent::Given(Leg::ReadOnly));
    assert_eq!([consent("d"), consent("other")], [Consent::Off; 2]);
}
