//! Finds the file of a program. Version managers put shims before interpreters, and shims read
//! files of the user's home, so a confined program is started with the interpreter behind the shim.

use crate::program::find_program;
use std::path::{Path, PathBuf};

/// The file of a program, behind any shims.
pub(super) fn find_interpreter(program: &str, directory: Option<&Path>) -> Option<PathBuf> {
    let file = find_program(program, directory)?;
    Some(behind_shim(&file, directory).unwrap_or(file))
}

/// The program behind a shim of pyenv, nodenv or rbenv; `None` if the file is not a shim.
fn behind_shim(file: &Path, directory: Option<&Path>) -> Option<PathBuf> {
    let (folder, name) = (file.parent()?, file.file_name()?);
    let root = folder.parent().filter(|_| folder.ends_with("shims"))?;
    let versions = root.join("versions");
    let marks = [".python-version", ".node-version", ".ruby-version"];
    let variables = ["PYENV_VERSION", "NODENV_VERSION", "RBENV_VERSION"];
    let by_variable = variables.iter().filter_map(|name| std::env::var(name).ok());
    let by_folder = directory.into_iter().flat_map(Path::ancestors).flat_map(|folder| {
        marks.iter().filter_map(move |mark| std::fs::read_to_string(folder.join(mark)).ok())
    });
    let general = std::fs::read_to_string(root.join("version")).ok();
    let texts = by_variable.chain(by_folder).chain(general);
    let named = texts.flat_map(|text| {
        text.split([':', '\n', ' ']).map(str::trim).map(str::to_owned).collect::<Vec<_>>()
    });
    let found = named.filter(|version| !version.is_empty() && !version.contains('/'));
    let found = found.map(|version| versions.join(version).join("bin").join(name));
    found.into_iter().find(|path| path.is_file())
}

/// Whether the first line of a file makes Node run it.
pub(super) fn is_node_script(file: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| {
        std::io::Read::read_to_end(&mut std::io::Read::take(file, 256), &mut beginning)
    });
    let line = beginning.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_script = line.starts_with(b"#!") && line.windows(4).any(|part| part == b"node");
    let is_module = [".js", ".mjs", ".cjs"]
        .iter()
        .any(|ending| file.as_os_str().as_encoded_bytes().ends_with(ending.as_bytes()));
    read.is_ok() && (is_script || is_module && !line.starts_with(b"#!"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_program_behind_a_shim_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            path
        };
        let shim = file("shims/python3", "#!/bin/sh");
        let real = file("versions/3.12.1/bin/python3", "");
        assert_eq!(behind_shim(&shim, None), None);
        file("version", "3.12.1\n");
        assert_eq!(behind_shim(&shim, None), Some(real.clone()));
        let other = file("versions/3.11.0/bin/python3", "");
        file("project/.python-version", "3.11.0\n");
        assert_eq!(behind_shim(&shim, Some(&folder.path().join("project"))), Some(other));
        assert_eq!(behind_shim(&real, None), None);
    }

    #[test]
    fn scripts_of_node_are_told_by_their_first_line() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, expected) in [
            ("a", "#!/usr/bin/env node\nx", true),
            ("b.js", "import x", true),
            ("c", "#!/bin/sh\nnode x", false),
            ("d", "\u{7f}ELF", false),
        ] {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            assert_eq!(is_node_script(&file), expected, "{name}");
        }
    }
}
