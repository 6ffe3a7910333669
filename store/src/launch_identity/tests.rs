//! When two launches count as the same.

use super::*;
use crate::key::KEY_BYTES;
use tempfile::TempDir;

/// Two folders that contain a file each, and a program.
struct Ground {
    directory: TempDir,
}

/// The command line of a launch.
#[derive(Clone)]
struct Words<'a> {
    program: &'a str,
    arguments: &'a [&'a str],
    folder: &'a str,
    variables: &'a [(&'a str, Option<&'a str>)],
}

const NPX: Words<'_> = Words {
    program: "/usr/bin/npx",
    arguments: &["-y", "@scope/server-files", "--root", "/srv"],
    folder: "one",
    variables: &[("TOKEN", Some("a"))],
};

impl Ground {
    fn new() -> Ground {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["one", "two"] {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
            std::fs::write(directory.path().join(folder).join("notes"), "").unwrap();
        }
        Ground { directory }
    }

    fn hash(&self, words: &Words<'_>) -> LaunchHash {
        let arguments: Vec<OsString> = words.arguments.iter().map(OsString::from).collect();
        let variables = words.variables.iter();
        let variables =
            variables.map(|(name, value)| ((*name).to_owned(), value.map(OsString::from)));
        key().hash_program(&StartedProgram {
            program: Path::new(words.program),
            name: words.program,
            arguments: &arguments,
            folder: &self.directory.path().join(words.folder),
            variables: &variables.collect(),
        })
    }

    #[track_caller]
    fn same(&self, one: &Words<'_>, other: &Words<'_>) {
        assert_eq!(self.hash(one), self.hash(other));
    }

    #[track_caller]
    fn differ(&self, one: &Words<'_>, other: &Words<'_>) {
        assert_ne!(self.hash(one), self.hash(other));
    }
}

fn key() -> LaunchKey {
    LaunchKey::of(&Key::from_bytes([7; KEY_BYTES]))
}

#[test]
fn the_program_each_word_and_each_variable_count() {
    let ground = Ground::new();
    ground.same(&NPX, &NPX.clone());
    ground.differ(&NPX, &Words { program: "/opt/bin/npx", ..NPX });
    ground.differ(&NPX, &Words { arguments: &["-y", "@scope/server-files", "--root", "/"], ..NPX });
    ground.differ(&NPX, &Words { arguments: &["-y", "@scope/server-files", "--root"], ..NPX });
    for variables in [
        &[("TOKEN", Some("b"))][..],
        &[("TOKEN", None)],
        &[("TOKEN", Some(""))],
        &[("OTHER", Some("a"))],
        &[("TOKEN", Some("a")), ("MORE", Some("a"))],
        &[],
    ] {
        ground.differ(&NPX, &Words { variables, ..NPX });
    }
}

#[test]
fn where_one_word_ends_and_the_next_begins_counts() {
    let ground = Ground::new();
    let words = |arguments| Words { arguments, ..NPX };
    ground.differ(&words(&["ab", "c"]), &words(&["a", "bc"]));
    ground.differ(&words(&["ab", "c"]), &words(&["abc"]));
    let none = Words { arguments: &["a"], variables: &[("b", None)], ..NPX };
    ground.differ(&none, &Words { arguments: &["a", "b", "unset"], variables: &[], ..NPX });
}

#[test]
fn the_folder_counts_where_a_word_may_begin_at_it_and_nowhere_else() {
    let ground = Ground::new();
    for (arguments, counts) in [
        (&["/srv/server.js"][..], false),
        (&["--root=/srv", "-v"], false),
        (&["~/notes"], false),
        (&["https://example.com/mcp"], false),
        (&["stdio", "8080"], false),
        (&["server.js"], true),
        (&["./server"], true),
        (&["--root=."], true),
        (&["--root=./data"], true),
        (&["-I./data"], true),
        (&["--root", "data/files"], true),
        (&["--database", "data.sqlite"], true),
        (&[".."], true),
        // Both folders contain a file with this name.
        (&["notes"], true),
        (&["/srv:./more"], true),
    ] {
        let one = Words { program: "/usr/bin/node", arguments, ..NPX };
        let two = Words { folder: "two", ..one.clone() };
        let is_other = ground.hash(&one) != ground.hash(&two);
        assert_eq!(is_other, counts, "{arguments:?}");
    }
    ground.same(&NPX, &Words { folder: "two", ..NPX });
}

#[test]
fn a_program_that_is_named_from_the_folder_is_another_one_in_another_folder() {
    let ground = Ground::new();
    let here = Words { program: "./server", arguments: &[], ..NPX };
    ground.differ(&here, &Words { folder: "two", ..here.clone() });
    let absolute = Words { program: "/srv/server", ..here.clone() };
    ground.same(&absolute, &Words { folder: "two", ..absolute.clone() });
}

#[test]
fn an_address_counts_with_the_names_and_values_of_its_headers() {
    let hash = |url: &str, headers: &[(&str, &[u8])]| key().hash_address(url, headers);
    let token = [("authorization", &b"Bearer a"[..]), ("x-team", b"one")];
    let url = "https://example.com/mcp";
    let one = hash(url, &token);
    let [first, second] = token;
    assert_eq!(one, hash(url, &[second, first]));
    assert_ne!(one, hash(url, &[first]));
    assert_ne!(one, hash(url, &[("authorization", b"Bearer b"), second]));
    assert_ne!(one, hash("https://example.com/mcp?team=one", &token));
}

#[test]
fn another_key_gives_another_hash() {
    let other = LaunchKey::of(&Key::from_bytes([8; KEY_BYTES]));
    assert_ne!(
        key().hash_address("https://a.example", &[]),
        other.hash_address("https://a.example", &[])
    );
}
