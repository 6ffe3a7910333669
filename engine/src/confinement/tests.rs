//! Creating a profile from a launch. The sandbox is tested with real programs in `cli/tests`.

use super::*;
use std::fs;

struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Ground {
        Ground { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn file(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    fn confiner(&self, keys: &str, variables: &[&str]) -> Confiner {
        let home = self.path("home");
        fs::create_dir_all(&home).unwrap();
        let folders = Folders { home: home.clone(), cache: self.path("cache"), user_home: None };
        Confiner::new(ConfinerParts {
            server: "files".parse().unwrap(),
            keys: toml::from_str(keys).unwrap(),
            folders,
            known: Arc::new(KnownPackages::read(&home).unwrap()),
            variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            switch: EgressSwitch::default(),
            helper: PathBuf::from("/nowhere/holdpoint"),
            remark: Box::new(|_| {}),
        })
    }

    fn launch(&self, words: &[&str]) -> StdioLaunch {
        let (program, rest) = words.split_first().unwrap();
        StdioLaunch {
            program: program.into(),
            arguments: rest.iter().map(OsString::from).collect(),
            directory: Some(self.path("")),
            ..StdioLaunch::default()
        }
    }
}

fn network(outline: &Outline) -> String {
    let allow: Vec<String> = outline.network.allow.iter().map(ToString::to_string).collect();
    format!("{} {}", outline.network.policy, allow.join(" "))
}

#[test]
fn a_program_sees_its_code_and_the_paths_of_its_arguments() {
    let ground = Ground::new();
    let script = ground.file("app/server.js");
    ground.file("app/package.json");
    let data = ground.file("data/x").parent().unwrap().to_owned();
    let launch = ground.launch(&["/bin/sh", "app/server.js", data.to_str().unwrap(), "missing"]);
    let Prepared { profile, launch } =
        ground.confiner("", &[]).prepare(&launch, Environment::Whole).unwrap();
    assert!(profile.read.contains(&script.parent().unwrap().to_path_buf()), "{:?}", profile.read);
    assert!(profile.read.contains(&data));
    assert_eq!(
        (profile.files, profile.network),
        (FilePolicy::WorkspaceOnly, NetworkPolicy::BlockAll)
    );
    assert_eq!(profile.minimum, Level::Full);
    assert_eq!(profile.home, Some(ground.path("home/sandbox/homes/files")));
    assert_eq!(launch.directory, None, "the folder that it was started in is not shown");
    assert_eq!(launch.arguments.len(), 3);
}

#[test]
fn a_workspace_is_written_and_not_shown_twice() {
    let ground = Ground::new();
    ground.file("work/inner/x");
    let work = ground.path("work");
    let keys = format!("workspace = {work:?}\nrequired = false\nnet_allow = [\"a.example\"]");
    let inner = ground.path("work/inner");
    let launch = ground.launch(&["/bin/true", inner.to_str().unwrap()]);
    let launch = StdioLaunch { directory: Some(work.clone()), ..launch };
    let Prepared { profile, launch } =
        ground.confiner(&keys, &[]).prepare(&launch, Environment::Whole).unwrap();
    assert_eq!(profile.workspace, Some(work.clone()));
    assert!(profile.read.is_empty(), "{:?}", profile.read);
    assert_eq!(launch.directory, Some(work));
    assert_eq!((profile.minimum, profile.network), (Level::Partial, NetworkPolicy::Allowlist));
}

#[test]
fn only_named_variables_are_given_and_none_before_admission() {
    let ground = Ground::new();
    let confiner = ground.confiner("env = [\"CARGO_PKG_NAME\"]", &["CARGO_MANIFEST_DIR"]);
    let mut launch = ground.launch(&["/bin/true"]);
    launch.environment = vec![("TOKEN".into(), "secret".into())];
    let names = |environment| {
        let prepared = confiner.prepare(&launch, environment).unwrap();
        let names = prepared.launch.environment.into_iter().map(|(name, _)| name);
        names.map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    let whole = names(Environment::Whole);
    for name in ["TOKEN", "CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "PATH"] {
        assert!(whole.iter().any(|given| given == name), "{name} in {whole:?}");
    }
    assert!(!whole.iter().any(|given| given == "CARGO_PKG_VERSION" || given == "HOME"));
    let clean = names(Environment::Clean);
    assert!(
        !clean.iter().any(|given| given == "TOKEN" || given.starts_with("CARGO_")),
        "{clean:?}"
    );
}

#[test]
fn hosts_come_from_the_settings_the_launch_and_the_table() {
    let ground = Ground::new();
    let outline = |keys: &str, words: &[&str]| {
        network(&ground.confiner(keys, &[]).outline(&ground.launch(words)).unwrap())
    };
    assert_eq!(outline("", &["npx", "-y", "tavily-mcp@1"]), "allowlist api.tavily.com");
    assert_eq!(outline("", &["npx", "unknown-mcp"]), "block_all ");
    assert_eq!(
        outline("net_allow = [\"b.example\"]", &["npx", "mcp-remote", "https://a.example/mcp"]),
        "allowlist b.example a.example"
    );
    assert_eq!(outline("net = \"block_all\"", &["npx", "tavily-mcp"]), "block_all ");
    let script = ground.file("n/node_modules/tavily-mcp/build/index.js");
    assert_eq!(outline("", &["node", script.to_str().unwrap()]), "allowlist api.tavily.com");
}

#[test]
fn each_instance_has_a_home_of_its_own() {
    let ground = Ground::new();
    let confiner = ground.confiner("", &[]);
    let launch = ground.launch(&["/bin/true"]);
    let home = |confiner: &Confiner| {
        confiner.prepare(&launch, Environment::Named).unwrap().profile.home.unwrap()
    };
    let homes =
        [home(&confiner), home(&confiner.for_instance("a")), home(&confiner.for_instance("b"))];
    assert!(homes[0] != homes[1] && homes[1] != homes[2], "{homes:?}");
    assert!(homes.iter().all(|home| home.is_dir()));
}

#[test]
fn what_cannot_be_confined_says_what_to_do() {
    let ground = Ground::new();
    let confiner = ground.confiner("", &[]);
    let refused = |words: &[&str]| {
        confiner.prepare(&ground.launch(words), Environment::Whole).unwrap_err().to_string()
    };
    assert!(refused(&["docker", "run", "-i", "image"]).contains("`docker` confines it"));
    assert!(refused(&["no-such-program-at-all"]).contains("was not found"));
    assert!(refused(&["npx", "github:a/b"]).contains("`github:a/b`"));
}

#[test]
fn code_in_a_workspace_shows_nothing_else_of_the_user() {
    let ground = Ground::new();
    ground.file("private/notes.js");
    ground.file("app/package.json");
    let script = ground.file("app/work/server.js");
    let work = ground.path("app/work");
    let keys = format!("workspace = {:?}", work.display());
    let shown = |words: &[&str]| {
        let launch = ground.launch(words);
        ground.confiner(&keys, &[]).prepare(&launch, Environment::Whole).unwrap().profile.read
    };
    assert_eq!(shown(&["/bin/sh", "app/work/server.js"]), [ground.path("app")]);
    // The server replaced its script with a link, and names the folder that it wants to see.
    fs::remove_file(&script).unwrap();
    std::os::unix::fs::symlink(ground.path("private/notes.js"), &script).unwrap();
    assert!(shown(&["/bin/sh", "app/work/server.js"]).is_empty());
    // The same by means of a virtual environment.
    ground.file("private/bin/x");
    ground.file("app/work/.venv/bin/python");
    let home = format!("home = {}\n", ground.path("private/bin").display());
    fs::write(work.join(".venv/pyvenv.cfg"), home).unwrap();
    let launch = ["uv", "run", "--directory", work.to_str().unwrap(), "main.py"];
    if crate::program::find_program("uv", None).is_some() {
        assert!(!shown(&launch).iter().any(|path| path.starts_with(ground.path("private"))));
    }
}

#[test]
fn a_file_that_the_server_named_like_a_known_package_has_no_hosts() {
    let ground = Ground::new();
    ground.file("node_modules/tavily-mcp/index.js");
    let outline = |keys: &str| {
        let launch = ground.launch(&["/bin/sh", "node_modules/tavily-mcp/index.js"]);
        network(&ground.confiner(keys, &[]).outline(&launch).unwrap())
    };
    assert!(outline("").contains("tavily"), "{}", outline(""));
    let workspace = format!("workspace = {:?}", ground.path("").display());
    assert_eq!(outline(&workspace), "block_all ");
}
