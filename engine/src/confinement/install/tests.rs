//! Which program of an installed package is run. The step itself is tested with real packages in
//! `cli/tests`.

use super::*;

fn package(program: Option<&str>) -> FetchedPackage {
    FetchedPackage {
        registry: Registry::Npm,
        name: "@s/mail".to_owned(),
        requirements: vec!["@s/mail@1.2.3".to_owned()],
        program: program.map(str::to_owned),
        python: None,
        arguments_at: 0,
    }
}

/// A package folder whose manifest has this `bin`.
fn tree(bin: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("node_modules/@s/mail");
    fs::create_dir_all(own.join("dist")).unwrap();
    fs::write(own.join("package.json"), format!("{{\"bin\":{bin},\"version\":\"1.2.3\"}}"))
        .unwrap();
    fs::write(own.join("dist/index.js"), "#!/usr/bin/env node\n").unwrap();
    fs::write(own.join("native"), "\u{7f}ELF").unwrap();
    folder
}

#[track_caller]
fn runs(bin: &str, expected: &str) {
    let folder = tree(bin);
    let found = npm_program(&package(None), folder.path()).unwrap();
    let file = found.arguments.first().map_or(found.program.clone(), PathBuf::from);
    assert!(file.ends_with(expected), "{bin}: {file:?}");
}

#[test]
fn the_program_of_a_package_is_chosen_as_its_launcher_would() {
    runs("\"dist/index.js\"", "dist/index.js");
    runs("{\"anything\":\"./dist/index.js\"}", "dist/index.js");
    runs("{\"mail\":\"dist/index.js\",\"other\":\"native\"}", "dist/index.js");
    runs("{\"mail\":\"native\"}", "native");
}

#[test]
fn a_program_outside_the_tree_or_none_is_refused() {
    for bin in
        ["{}", "7", "{\"a\":\"x\",\"b\":\"y\"}", "\"../../../../../../bin/sh\"", "\"missing.js\""]
    {
        let folder = tree(bin);
        let found = npm_program(&package(None), folder.path());
        assert!(matches!(found, Err(InstallError::NoProgram { .. })), "{bin}: {found:?}");
    }
    let folder = tree("\"dist/index.js\"");
    for program in ["mail", "../@s/mail/native", "/bin/sh"] {
        let found = npm_program(&package(Some(program)), folder.path());
        assert!(matches!(found, Err(InstallError::NoProgram { .. })), "{program}: {found:?}");
    }
    #[cfg(unix)]
    {
        let bin = folder.path().join("node_modules/.bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink("/bin/sh", bin.join("shell")).unwrap();
        assert!(npm_program(&package(Some("shell")), folder.path()).is_err());
        std::os::unix::fs::symlink("../@s/mail/native", bin.join("mail")).unwrap();
        assert!(npm_program(&package(Some("mail")), folder.path()).is_ok());
    }
}

#[test]
fn the_end_of_what_an_installer_says_is_shown_and_nothing_that_a_terminal_acts_on() {
    let long = format!("{}\u{1b}[31mnpm error 404\n", "x".repeat(10_000));
    let said = tail_of(long.as_bytes());
    assert!(said.len() <= 2 * MAX_SAID_BYTES && said.contains("npm error 404"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

/// A package whose code ran in its folder may have replaced any file there with a link.
#[test]
fn nothing_of_ours_is_written_into_a_tree_and_no_link_in_it_is_read() {
    let folder = tree("\"dist/index.js\"");
    let tree = folder.path().join("@s+mail@1.2.3-0123456789ab");
    for ending in ["lock", "json"] {
        let path = beside(&tree, ending);
        assert_eq!(path.parent(), tree.parent());
        assert_eq!(
            path.file_name().unwrap(),
            format!("@s+mail@1.2.3-0123456789ab.{ending}").as_str()
        );
    }
    let package = folder.path().join("node_modules/@s/mail");
    assert!(read_manifest(&package).is_some());
    fs::rename(package.join("package.json"), folder.path().join("elsewhere.json")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("elsewhere.json"), package.join("package.json"))
        .unwrap();
    assert!(read_manifest(&package).is_none());
}
