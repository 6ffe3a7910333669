//! Reading the command lines of launchers.

use super::*;

fn found(line: &str) -> Result<Option<FetchedPackage>, UnclearFetch> {
    let mut words = line.split(' ').map(str::to_owned);
    let program = words.next().unwrap();
    let words: Vec<String> = words.collect();
    find_fetched(&program, &words)
}

/// `requirements | program | python | arguments`.
#[track_caller]
fn check(line: &str, expected: &str) {
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let fetched = found(line).unwrap().unwrap();
    let rest = words[fetched.arguments_at..].join(" ");
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let parts =
        [fetched.requirements.join(" "), text(&fetched.program), text(&fetched.python), rest];
    assert_eq!(parts.join("|"), expected, "{line}");
}

#[test]
fn packages_of_the_npm_family() {
    check("npx -y @s/files@1.2.3 /srv --x", "@s/files@1.2.3|||/srv --x");
    check("/usr/bin/npx files", "files|||");
    check("npx -p @s/files --package=other run /srv", "@s/files other|run||/srv");
    check("npm exec @s/files -- /srv --x", "@s/files|||/srv --x");
    check("npm exec --yes @s/files", "@s/files|||");
    check("pnpm dlx files@latest a", "files@latest|||a");
    check("bunx files -y", "files|||-y");
    check("npx mcp-remote https://a.example/mcp", "mcp-remote|||https://a.example/mcp");
}

#[test]
fn packages_of_the_python_family() {
    check(
        "uvx mcp-server-time --local-timezone=UTC",
        "mcp-server-time|mcp-server-time||--local-timezone=UTC",
    );
    check("uvx mcp-server-time@2025.7.1", "mcp-server-time==2025.7.1|mcp-server-time||");
    check("uvx mcp-server-time@latest", "mcp-server-time|mcp-server-time||");
    check("uvx --from pkg[extra]==1.2 run -x", "pkg[extra]==1.2|run||-x");
    check("uvx --python 3.12 --with a,b==2 pkg", "pkg a b==2|pkg|3.12|");
    check("uv tool run pkg a", "pkg|pkg||a");
    check("pipx run --spec pkg==1 run a", "pkg==1|run||a");
}

#[test]
fn what_changes_what_is_fetched_is_refused() {
    for line in [
        "npx -c run",
        "npx --registry=https://a.example files",
        "npx --node-options=--require=x files",
        "npm exec files --registry=x",
        "npx github:a/b",
        "npx ./local",
        "npx https://a.example/x.tgz",
        "npx files@npm:other",
        "npx -y",
        "npx",
        "uvx --index-url https://a.example pkg",
        "uvx --from git+https://a.example/x pkg",
        "uvx --with-editable . pkg",
        "env npx files",
        "timeout 5 uvx pkg",
    ] {
        assert!(found(line).is_err(), "{line}: {:?}", found(line));
    }
}

#[test]
fn other_programs_fetch_nothing() {
    for line in ["node x.js", "python -m mcp_server", "uv run x", "docker run a", "/opt/server a"] {
        assert_eq!(found(line), Ok(None), "{line}");
    }
}

#[test]
fn options_of_containers_end_at_the_image() {
    let options = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        container_options("docker", &words)
    };
    assert_eq!(options("run -i --rm image --privileged").unwrap(), ["-i", "--rm"]);
    assert_eq!(options("container run --privileged image").unwrap(), ["--privileged"]);
    assert_eq!(options("run --not-known image x").unwrap(), ["--not-known", "image", "x"]);
    assert_eq!(options("ps"), None);
}
