use super::*;

fn origin(line: &str) -> ProgramOrigin {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    ProgramOrigin::of(&words[0], &words[1..])
}

fn check(line: &str, registry: &str, name: &str, version: Option<&str>) {
    let package = origin(line).package.expect(line);
    assert_eq!(
        (package.registry, package.name.as_str(), package.version.as_deref()),
        (registry, name, version),
        "{line}"
    );
}

#[test]
fn launchers_are_looked_through() {
    check(
        "npx -y @modelcontextprotocol/server-filesystem /srv",
        "npm",
        "@modelcontextprotocol/server-filesystem",
        None,
    );
    check("/usr/bin/npx -y some-mcp@1.2.3 --flag", "npm", "some-mcp", Some("1.2.3"));
    check("npx -y @scope/name@latest", "npm", "@scope/name", Some("latest"));
    check("npx --package=@scope/name@2 name", "npm", "@scope/name", Some("2"));
    check("npm exec -- firecrawl-mcp", "npm", "firecrawl-mcp", None);
    check("pnpm dlx x-mcp@3", "npm", "x-mcp", Some("3"));
    check("bunx x-mcp", "npm", "x-mcp", None);
    check("cmd /c npx -y x-mcp", "npm", "x-mcp", None);
    check("env A=b npx x-mcp", "npm", "x-mcp", None);
    check("uvx mcp-server-git==0.6.2 --repository .", "pypi", "mcp-server-git", Some("0.6.2"));
    check("uvx --from mcp-server-time@1.0 run-it", "pypi", "mcp-server-time", Some("1.0"));
    check("uv tool run mcp-server-time[all]", "pypi", "mcp-server-time", None);
    check("pipx run mcp-server-fetch", "pypi", "mcp-server-fetch", None);
    check(
        "docker run -i --rm -e KEY ghcr.io/org/image:1.2",
        "oci",
        "ghcr.io/org/image",
        Some("1.2"),
    );
    check("docker run localhost:5000/image", "oci", "localhost:5000/image", None);
    check("docker run image@sha256:abc", "oci", "image", Some("sha256:abc"));
    check("python3.11 -m mcp_server_time --local", "python-module", "mcp_server_time", None);
    assert_eq!(origin("/opt/server --x").package, None);
    check("node --enable-source-maps /opt/server.js --x", "script", "/opt/server.js", None);
    check("python3 server.py", "script", "server.py", None);
    check("java -jar server.jar", "script", "server.jar", None);
    assert_ne!(origin("python3 a.py").identity(), origin("python3 b.py").identity());
}

#[test]
fn what_runs_in_a_project_or_elsewhere_is_what_counts() {
    check("uv --directory /p/one run a.py", "script", "/p/one/a.py", None);
    check("uv run --directory /p/one/ a.py --x", "script", "/p/one/a.py", None);
    check("uv run --with mcp mcp run server.py", "script", "server.py", None);
    check("uv run python -u server.py", "script", "server.py", None);
    check("uv run -m weather", "python-module", "weather", None);
    check("uv run weather-server", "script", "weather-server", None);
    check("uv --cache-dir /c tool run mcp-server-time@1", "pypi", "mcp-server-time", Some("1"));
    check("poetry -C /p run serve", "script", "/p/serve", None);
    check("npx -y mcp-remote https://a.example/mcp", "remote", "https://a.example/mcp", None);
    check("npx tsx src/server.ts", "script", "src/server.ts", None);
    check("ssh -p 22 host serve --x", "ssh", "host serve", None);
    check("docker exec -i box serve", "container", "box serve", None);
    for (one, other) in [
        ("uv --directory /p/one run a.py", "uv --directory /p/two run a.py"),
        ("npx mcp-remote https://a.example", "npx mcp-remote https://b.example"),
        ("ssh one serve", "ssh other serve"),
    ] {
        assert_ne!(origin(one).identity(), origin(other).identity(), "{one}");
    }
    let secret = origin("npx mcp-remote https://a.example/mcp?token=abcdef");
    assert!(!secret.identity().contains("abcdef"));
    for line in ["uv sync", "uv run", "uv", "ssh", "docker exec", "npx mcp-remote", "poetry run --"]
    {
        assert_eq!(origin(line).package, None, "{line}");
    }
}

#[test]
fn names_are_short_and_identity_leaves_out_version_and_arguments() {
    assert_eq!(origin("npx @a/server-files /x").short_name(), "server-files");
    assert_eq!(origin("/opt/bin/thing.exe").short_name(), "thing");
    assert_eq!(origin("npx a@1 /x").identity(), origin("/usr/bin/npx -y a@2 /y").identity());
    assert_ne!(origin("npx a").identity(), origin("npx b").identity());
}

#[test]
fn secrets_among_the_arguments_are_hashed_and_paths_are_not() {
    for line in [
        "x --token abc",
        "x --api-key=abc",
        "x ghp_0123456789abcdef0123",
        "x 9f8a7c6b5d4e3f2a1b0c9d8e7f6a5b4c",
        "x --header Authorization=abc",
    ] {
        let found = origin(line);
        assert!(found.has_secrets, "{line}");
        assert!(!found.entry().unwrap().raw().contains("abc\""), "{line}");
    }
    for line in [
        "x /srv/work/a-very-long-path-name/2024/01/02",
        "x --repository /home/ada",
        "x --verbose --port 8080",
    ] {
        assert!(!origin(line).has_secrets, "{line}");
    }
}

#[test]
fn secrets_in_an_address_are_hashed() {
    for url in ["https://h/mcp?api_key=abc", "https://h/mcp?x=1&token=abc", "https://h/mcp?key=abc"]
    {
        let (hidden, has_secrets) = hide_url_secrets(url);
        assert!(
            has_secrets && !hidden.contains("abc") && hidden.starts_with("https://h/mcp?"),
            "{hidden}"
        );
    }
    for url in ["https://h/mcp", "https://h/mcp?mode=fast&v=2", "https://h/mcp?token="] {
        assert_eq!(hide_url_secrets(url), (url.to_owned(), false));
    }
}

#[test]
fn entries_say_what_counts() {
    let entry = origin("npx -y a-mcp@1 /x").entry().unwrap();
    assert_eq!(
        entry.raw(),
        r#"{"arguments":["-y","a-mcp@1","/x"],"kind":"program","package":"npm:a-mcp","program":"npx","version":"1"}"#
    );
    let entry = address_entry("https://example.com/mcp", Some("ab")).unwrap();
    assert_eq!(entry.raw(), r#"{"kind":"address","tlsKey":"ab","url":"https://example.com/mcp"}"#);
}
