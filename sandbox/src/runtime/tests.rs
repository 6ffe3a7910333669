use super::*;
use std::os::unix::fs::symlink;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn file(&self, path: &str, text: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn link(&self, path: &str, to: &Path) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, &path).unwrap();
        path
    }
}

/// A virtual environment in a package, a secret, and an installed Python.
fn place() -> Place {
    let place = Place::new();
    place.file("secrets/bin/tool", "");
    place.file("secrets/key", "");
    place.file("python/lib/python3.12/os.py", "");
    place.file("python/bin/python3.12", "");
    place.link("usual/python3", &place.at("python/bin/python3.12"));
    place
}

#[track_caller]
fn check(place: &Place, program: &Path, expected: &[&str]) {
    let found = runtime_of(program, &[place.at("package")]);
    let mut expected: Vec<PathBuf> = expected.iter().map(|path| place.at(path)).collect();
    expected.sort();
    assert_eq!(found, expected, "{}", program.display());
}

#[test]
fn what_a_program_may_have_changed_shows_nothing_but_interpreters() {
    let place = place();
    let secrets = place.at("secrets");
    let first_line = format!("#!{}/bin/tool\n", secrets.display());
    let script = place.file("package/bin/script", &first_line);
    check(&place, &script, &["package"]);
    let link = place.link("package/bin/link", &secrets.join("bin/tool"));
    check(&place, &link, &["package"]);
    let up = place.link("package/bin/up", Path::new("../../secrets/key"));
    check(&place, &up, &["package"]);
    // The `bin` folder does not exist; its parent would be shown.
    place.file("package/pyvenv.cfg", &format!("home = {}/bin\n", secrets.display()));
    let shell = place.file("package/bin/shell", "#!/bin/sh\n");
    check(&place, &shell, &["package"]);
    let by_name = place.file("package/bin/by-name", "#!/usr/bin/env sh\n");
    check(&place, &by_name, &["package"]);
}

#[test]
fn an_interpreter_is_shown_with_its_installation() {
    let place = place();
    place.file("package/pyvenv.cfg", &format!("home = {}/bin\n", place.at("python").display()));
    place.link("package/bin/python", &place.at("usual/python3"));
    place.link("python/bin/python", Path::new("python3.12"));
    let line = format!("#!{}\n", place.at("package/bin/python").display());
    let script = place.file("package/bin/script", &line);
    check(&place, &script, &["package", "python", "python/bin/python", "usual/python3"]);
}

#[test]
fn what_the_user_installed_is_shown_as_it_leads_on() {
    let place = place();
    let line = format!("#!{}/bin/tool\n", place.at("secrets").display());
    let script = place.file("own/bin/script", &line);
    check(&place, &script, &["own", "secrets"]);
}
