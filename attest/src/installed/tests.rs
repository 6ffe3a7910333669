use super::*;
use crate::{Algorithm, MAX_RECORD_DEPTH};

const PATH: &str = "/p/node_modules/@s/mail/dist/index.js";
const STORED: &str =
    "/p/node_modules/.pnpm/@s+mail@1.2.3_zod@4.0.0/node_modules/@s/mail/dist/index.js";
const STORED_BY_BUN: &str = "/p/node_modules/.bun/@s+mail@1.2.3/node_modules/@s/mail/dist/index.js";
const MANIFEST: &str = r#"{"name":"@s/mail","version":"1.2.3","bin":{}}"#;

fn digest(seed: u8) -> Digest {
    Digest::of(Algorithm::Sha512, &[seed])
}

/// npm's record of a package in a given folder.
fn npm(folder: &str, more: &str, seed: u8) -> String {
    let digest = digest(seed);
    format!(
        r#"{{"name":"p","lockfileVersion":3,"packages":{{"":{{}},"{folder}":{{"version":"1.2.3","integrity":"{digest}"{more}}}}}}}"#
    )
}

/// bun's record of a package under a given key.
fn bun(key: &str, label: &str, seed: u8) -> String {
    let digest = digest(seed);
    format!(
        "{{\n\"lockfileVersion\": 1,\n\"packages\": {{\n\"{key}\": [\"{label}\", \"\", {{}}, \"{digest}\"],\n\n}},\n}}\n"
    )
}

/// pnpm's record of a package under a given key.
fn pnpm(key: &str, seed: u8) -> String {
    let digest = digest(seed);
    format!(
        "lockfileVersion: '9.0'\n\npackages:\n\n  accepts@2.0.0:\n    resolution: {{integrity: sha512-x}}\n\n  {key}:\n    resolution: {{integrity: {digest}}}\n    engines: {{node: '>=18'}}\n\nsnapshots:\n\n  {key}:\n    dependencies:\n      accepts: 2.0.0\n"
    )
}

fn read(path: &str, records: &[(InstallRecord, String)]) -> Result<Package, UnknownPackage> {
    let records: Vec<(InstallRecord, Vec<u8>)> =
        records.iter().map(|(record, text)| (*record, text.clone().into_bytes())).collect();
    identify(&Place::of(path).unwrap(), MANIFEST.as_bytes(), &records)
}

fn read_one(path: &str, record: InstallRecord, text: &str) -> Result<Package, RecordError> {
    read(path, &[(record, text.to_owned())]).map_err(|error| match error {
        UnknownPackage::Record { error, .. } => error,
        other => panic!("{other}"),
    })
}

fn found(seed: u8) -> Package {
    let (name, version) = ("@s/mail".to_owned(), "1.2.3".to_owned());
    Package { name, version, integrity: digest(seed) }
}

#[test]
fn every_installers_record_names_the_archive() {
    let label = "@s/mail@1.2.3";
    for (path, record, text) in [
        (PATH, InstallRecord::NpmTree, npm("node_modules/@s/mail", "", 1)),
        (PATH, InstallRecord::NpmProject, npm("node_modules/@s/mail", "", 1)),
        (PATH, InstallRecord::Bun, bun("@s/mail", label, 1)),
        (STORED_BY_BUN, InstallRecord::Bun, bun("anything/@s/mail", label, 1)),
        (STORED, InstallRecord::Pnpm, pnpm("'@s/mail@1.2.3'", 1)),
        (STORED, InstallRecord::Pnpm, pnpm("/@s/mail@1.2.3", 1)),
    ] {
        assert_eq!(read_one(path, record, &text), Ok(found(1)), "{text}");
    }
}

#[test]
fn a_copy_inside_another_package_is_told_apart() {
    let nested = "/p/node_modules/a/node_modules/@s/mail/x.js";
    let folder = "node_modules/a/node_modules/@s/mail";
    let of_npm = npm(folder, "", 2).replace(
        "\"\":{}",
        &format!(r#""node_modules/@s/mail":{{"version":"9.9.9","integrity":"{}"}}"#, digest(1)),
    );
    assert_eq!(read_one(nested, InstallRecord::NpmTree, &of_npm), Ok(found(2)));
    let other = RecordError::OtherVersion { recorded: "9.9.9".into(), found: "1.2.3".into() };
    assert_eq!(read_one(PATH, InstallRecord::NpmTree, &of_npm), Err(other));
    let of_bun = bun("a/@s/mail", "@s/mail@1.2.3", 2);
    assert_eq!(read_one(nested, InstallRecord::Bun, &of_bun), Ok(found(2)));
    assert_eq!(read_one(PATH, InstallRecord::Bun, &of_bun), Err(RecordError::NotThere));
}

#[test]
fn records_have_to_agree() {
    let tree = (InstallRecord::NpmTree, npm("node_modules/@s/mail", "", 1));
    let project = |seed| (InstallRecord::NpmProject, npm("node_modules/@s/mail", "", seed));
    assert_eq!(read(PATH, &[tree.clone(), project(1)]), Ok(found(1)));
    let disagree = UnknownPackage::Disagree(InstallRecord::NpmTree, InstallRecord::NpmProject);
    assert_eq!(read(PATH, &[tree.clone(), project(2)]), Err(disagree));
    let lacks = (InstallRecord::Bun, bun("other", "other@1.2.3", 1));
    let expected =
        UnknownPackage::Record { record: InstallRecord::Bun, error: RecordError::NotThere };
    assert_eq!(read(PATH, &[tree, lacks]), Err(expected));
    assert_eq!(read(PATH, &[]), Err(UnknownPackage::NoRecord));
}

#[test]
fn a_package_that_calls_itself_otherwise_is_not_known() {
    let place = Place::of(PATH).unwrap();
    let records = [(InstallRecord::NpmTree, npm("node_modules/@s/mail", "", 1).into_bytes())];
    let judge = |manifest: &str| identify(&place, manifest.as_bytes(), &records);
    assert!(judge(MANIFEST).is_ok());
    let other = UnknownPackage::OtherName { folder: "@s/mail".into(), name: "mail".into() };
    assert_eq!(judge(r#"{"name":"mail","version":"1.2.3"}"#), Err(other));
    for manifest in [
        r#"{"name":"@s/mail","version":"1.2.4"}"#,
        r#"{"name":"@s/mail"}"#,
        r#"{"name":"@s/mail","version":1}"#,
        r#"{"name":"@s/mail","version":"1.2.3 "}"#,
        r#"{"name":"@s/mail","version":"1.2.3","version":"1.2.3"}"#,
        r#"["@s/mail","1.2.3"]"#,
        "",
    ] {
        assert!(judge(manifest).is_err(), "{manifest}");
    }
    let stored = Place::of(STORED).unwrap();
    let records = [(InstallRecord::Pnpm, pnpm("'@s/mail@1.2.4'", 1).into_bytes())];
    // The record and `package.json` agree, but the folder does not.
    assert!(identify(&stored, br#"{"name":"@s/mail","version":"1.2.4"}"#, &records).is_err());
}

#[test]
fn what_npm_does_not_write_so_is_not_read() {
    use RecordError::{NoIntegrity, NotThere, OtherName, UnknownEntry, UnknownForm};
    let folder = "node_modules/@s/mail";
    let good = npm(folder, "", 1);
    let check = |text: &str, expected: RecordError| {
        assert_eq!(read_one(PATH, InstallRecord::NpmTree, text), Err(expected), "{text}");
    };
    check(r#"{"lockfileVersion":1,"dependencies":{}}"#, UnknownForm);
    check(r#"{"packages":[]}"#, UnknownForm);
    check("[]", UnknownForm);
    check(&npm("node_modules/other", "", 1), NotThere);
    check(&npm(folder, r#","name":"other""#, 1), OtherName { recorded: "other".into() });
    check(&npm(folder, r#","link":true"#, 1), UnknownEntry);
    check(&good.replace(r#""version":"1.2.3""#, r#""version":1"#), UnknownEntry);
    check(&good.replace(r#""integrity""#, r#""integrit""#), NoIntegrity);
    check(&good.replace("sha512-", "sha1-"), NoIntegrity);
    let is_unreadable = |text: &str| {
        let outcome = read_one(PATH, InstallRecord::NpmTree, text);
        assert!(matches!(outcome, Err(RecordError::Json(_))), "{text}");
    };
    is_unreadable(&npm(folder, r#","version":"1.2.3""#, 1));
    is_unreadable(&good.replace(r#""":{}"#, &format!(r#""{folder}":{{}}"#)));
    is_unreadable(&format!("{good},"));
    is_unreadable(&good.replace("{}", &format!("{}{}", "[".repeat(200), "]".repeat(200))));
}

#[test]
fn what_bun_does_not_write_so_is_not_read() {
    use RecordError::{NoIntegrity, NotThere, OtherName, UnknownEntry, UnknownForm};
    let good = bun("@s/mail", "@s/mail@1.2.3", 1);
    let check = |path: &str, text: &str, expected: RecordError| {
        assert_eq!(read_one(path, InstallRecord::Bun, text), Err(expected), "{text}");
    };
    check(PATH, "{\"packages\": [],}", UnknownForm);
    check(PATH, &bun("@s/mail", "other@1.2.3", 1), OtherName { recorded: "other".into() });
    check(PATH, &bun("@s/mail", "@s/mail", 1), UnknownEntry);
    check(PATH, &good.replace("\"\", {}, ", "{}, "), UnknownEntry);
    check(PATH, &good.replace("{}, ", "{}, {}, "), UnknownEntry);
    check(PATH, &good.replace("sha512-", "sha513-"), NoIntegrity);
    check(STORED, &good, NotThere);
    let other = format!("[\"@s/mail@1.2.3\", \"\", {{}}, \"{}\"]", digest(2));
    let two = good.replace("],\n\n}", &format!("],\n\"x\": {other},\n}}"));
    check(STORED_BY_BUN, &two, UnknownEntry);
    for text in [good.replace("],\n\n}", "],,\n}"), format!("// made by bun\n{good}")] {
        let outcome = read_one(PATH, InstallRecord::Bun, &text);
        assert!(matches!(outcome, Err(RecordError::Json(_))), "{text}");
    }
}

#[test]
fn what_pnpm_does_not_write_so_is_not_read() {
    use RecordError::{NoIntegrity, NotThere, UnknownForm};
    let good = pnpm("'@s/mail@1.2.3'", 1);
    let check = |text: &str, expected: RecordError| {
        assert_eq!(read_one(STORED, InstallRecord::Pnpm, text), Err(expected), "{text}");
    };
    check("lockfileVersion: '9.0'\n", UnknownForm);
    check("", UnknownForm);
    check(&pnpm("'@s/mail@1.2.30'", 1), NotThere);
    check(&good.replace("resolution:", "resolved:"), NoIntegrity);
    check(&good.replace("{integrity: sha512", "{tarball: x, integrities: sha512"), NoIntegrity);
    let listed = good.replace("{integrity: sha512", "[integrity, sha512");
    let listed = listed.replace("==}", "==]").replace("-x}", "-x]");
    check(&listed, NoIntegrity);
    let outcome = read_one(PATH, InstallRecord::Pnpm, &good);
    assert_eq!(outcome, Err(NotThere), "hoisted: which version it is is not recorded");
    for text in [
        good.replace("{integrity:", "{integrity: x, integrity:"),
        format!("{good}\npackages: {{}}\n"),
        good.replace("snapshots:\n", "  '@s/mail@1.2.3': {}\nsnapshots:\n"),
        good.replace("snapshots:\n", "  /@s/mail@1.2.3: {}\nsnapshots:\n"),
        good.replace("packages:\n", "packages: &all\n"),
        good.replace("{integrity: sha512-x}", "*all"),
        good.replace("sha512-x", "!!str sha512-x"),
        format!("{good}---\n{good}"),
        good.replace("sha512-x", "["),
        good.replace("  accepts@2.0.0:", "  ? [a]\n  :"),
    ] {
        let outcome = read_one(STORED, InstallRecord::Pnpm, &text);
        assert!(matches!(outcome, Err(RecordError::Yaml(_))), "{text}: {outcome:?}");
    }
}

#[test]
fn a_package_that_was_patched_is_not_the_registrys_archive() {
    let good = pnpm("'@s/mail@1.2.3'", 1);
    let check = |path: &str, record: InstallRecord, text: &str| {
        assert_eq!(read_one(path, record, text), Err(RecordError::Patched), "{text}");
    };
    let patches = "patchedDependencies:\n  '@s/mail': {hash: x, path: p}\n";
    check(STORED, InstallRecord::Pnpm, &format!("{good}{patches}"));
    check(STORED, InstallRecord::Pnpm, &format!("{patches}{good}"));
    let (head, snapshots) = good.split_once("snapshots:").unwrap();
    let marked = snapshots.replace("@1.2.3'", "@1.2.3(patch_hash=0a)(zod@4.0.0)'");
    check(STORED, InstallRecord::Pnpm, &format!("{head}snapshots:{marked}"));
    let folder = STORED.replace("1.2.3_zod@4.0.0", "1.2.3_patch_hash=0a");
    check(&folder, InstallRecord::Pnpm, &good);
    let of_bun = |patched: &str| {
        let members = format!("\"patchedDependencies\": {patched},\n\"packages\"");
        bun("@s/mail", "@s/mail@1.2.3", 1).replace("\"packages\"", &members)
    };
    check(PATH, InstallRecord::Bun, &of_bun("{\"@s/mail@1.2.3\": \"patches/x\",}"));
    check(PATH, InstallRecord::Bun, &of_bun("{\"@s/mail\": \"patches/x\",}"));
    let other = of_bun("{\"@s/mail-x@1.2.3\": \"patches/x\",}");
    assert_eq!(read_one(PATH, InstallRecord::Bun, &other), Ok(found(1)));
    let unclear = read_one(PATH, InstallRecord::Bun, &of_bun("[]"));
    assert_eq!(unclear, Err(RecordError::UnknownForm));
}

#[test]
fn what_came_inside_another_archive_is_not_its_own() {
    let bundled = bun("a/@s/mail", "@s/mail@1.2.3", 1).replace("{}, ", "{\"bundled\": true}, ");
    let nested = "/p/node_modules/a/node_modules/@s/mail/x.js";
    let outcome = read_one(nested, InstallRecord::Bun, &bundled);
    assert_eq!(outcome, Err(RecordError::UnknownEntry));
    assert!(read_one(nested, InstallRecord::Bun, &bundled.replace("bundled", "bin")).is_ok());
}

#[test]
fn of_several_digests_the_strongest_counts() {
    let (weak, strong, other) = (Digest::of(Algorithm::Sha256, &[1]), digest(1), digest(2));
    assert_eq!(integrity(&format!("{weak} {strong} sha1-AAAA")), Ok(strong.clone()));
    assert_eq!(integrity(&format!(" {weak}\n")), Ok(weak));
    let digits = "0".repeat(64);
    for text in ["", "sha512-", &digits, &format!("{strong} {other}"), &format!("{strong}?x")] {
        assert_eq!(integrity(text), Err(RecordError::NoIntegrity), "{text}");
    }
}

#[test]
fn records_are_read_up_to_the_limit_and_not_past_it() {
    let padded = |bytes: usize| {
        let mut text = npm("node_modules/@s/mail", "", 1);
        text.push_str(&" ".repeat(bytes - text.len()));
        read_one(PATH, InstallRecord::NpmTree, &text)
    };
    assert_eq!(padded(MAX_INSTALL_RECORD_BYTES), Ok(found(1)));
    assert_eq!(padded(MAX_INSTALL_RECORD_BYTES + 1), Err(RecordError::TooLong));
    let manifest = |bytes: usize| {
        let text = format!("{MANIFEST}{}", " ".repeat(bytes - MANIFEST.len()));
        Manifest::parse(text.as_bytes()).map(|manifest| manifest.version)
    };
    assert_eq!(manifest(MAX_PACKAGE_MANIFEST_BYTES), Ok("1.2.3".to_owned()));
    assert_eq!(manifest(MAX_PACKAGE_MANIFEST_BYTES + 1), Err(ManifestError::TooLong));
    let nested = |depth: usize| {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = pnpm("'@s/mail@1.2.3'", 1).replace("'>=18'", &deep);
        read_one(STORED, InstallRecord::Pnpm, &text)
    };
    // The `engines` of a package are four maps deep.
    assert_eq!(nested(MAX_RECORD_DEPTH - 4), Ok(found(1)));
    assert!(matches!(nested(MAX_RECORD_DEPTH - 3), Err(RecordError::Yaml(_))));
}

proptest::proptest! {
    /// However a valid record is modified, except for escapes, any digest that is found occurs in
    /// it literally.
    #[test]
    fn a_record_with_bytes_changed_names_the_archive_or_none(
        which in 0_usize..3,
        changes in proptest::collection::vec((0_usize..600, 0_u8..b'\\'), 1..4),
    ) {
        let (path, record, text) = [
            (PATH, InstallRecord::NpmTree, npm("node_modules/@s/mail", "", 1)),
            (PATH, InstallRecord::Bun, bun("@s/mail", "@s/mail@1.2.3", 1)),
            (STORED, InstallRecord::Pnpm, pnpm("'@s/mail@1.2.3'", 1)),
        ][which].clone();
        let mut bytes = text.clone().into_bytes();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let place = Place::of(path).unwrap();
        if let Ok(package) = identify(&place, MANIFEST.as_bytes(), &[(record, bytes.clone())]) {
            let spelled = package.integrity.to_string();
            let said = String::from_utf8(bytes).unwrap();
            proptest::prop_assert!(said.contains(&spelled), "{spelled} of {said}");
            proptest::prop_assert_eq!(package.version, "1.2.3");
        }
    }
}
