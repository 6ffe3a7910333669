use super::*;
use crate::hash::sha256_hex;

/// A redactor for which every path exists unless it contains `gone`.
fn redactor() -> Redactor<'static> {
    Redactor {
        exists: &|path| !path.contains("gone"),
        keyed_hash: &|word| sha256_hex(format!("key {word}").as_bytes()),
    }
}

fn of_words(words: &[&str]) -> ProgramOrigin {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    ProgramOrigin::of(&words[0], &words[1..], &redactor())
}

fn origin(line: &str) -> ProgramOrigin {
    of_words(&line.split(' ').collect::<Vec<_>>())
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
    // Options after the package belong to the package.
    check("npx -y x-mcp -p=other", "npm", "x-mcp", None);
    check("npx -p other x-mcp", "npm", "other", None);
    check("npm exec x-mcp -p other", "npm", "other", None);
    check("uvx x-mcp --from other", "pypi", "x-mcp", None);
    check("python3 server.py -m other", "script", "server.py", None);
    check("uv run server.py -m other", "script", "server.py", None);
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
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(find_package(&words[0], &words[1..]), None, "{line}");
    }
}

/// Each line runs GOOD, and runs something else if that word is replaced. Whichever options precede
/// the word, the result is a different server. If the line identifies what it runs, a later
/// argument is only a detail.
#[test]
fn another_package_behind_the_same_launcher_is_another_server() {
    const KNOWN: [&str; 63] = [
        "docker run -i --rm GOOD",
        "docker run -i --rm --cap-drop ALL GOOD",
        "docker run -i --rm --security-opt no-new-privileges GOOD",
        "docker run -i --gpus all --restart no --init --tmpfs /tmp GOOD",
        "docker run -i --device /dev/x --dns 1.1.1.1 --shm-size 1g GOOD",
        "docker run -i --pids-limit 100 --ulimit nofile=1 --log-driver none GOOD",
        "docker run -i --log-opt X GOOD",
        "docker run -ie A=b GOOD",
        "docker run -eA=b GOOD",
        "docker run -it -c 5 GOOD",
        "docker run --unheard=of GOOD",
        "podman run --rm -i --userns keep-id GOOD",
        "docker exec -i box GOOD",
        "docker exec -i box env A=b GOOD",
        "docker exec -i box node GOOD",
        "npx -y GOOD",
        "npx -yq GOOD",
        "npx --otp X GOOD",
        "npx --loglevel silent -y GOOD",
        "npx --prefix /tmp GOOD",
        "npx -w ws GOOD",
        "npx --userconfig x GOOD",
        "npx --package GOOD start",
        "npx tsx watch GOOD",
        "npx -y mcp-remote --transport http-only https://GOOD/mcp",
        "mcp-remote https://GOOD/mcp",
        "npm exec --yes -- GOOD",
        "pnpm dlx --silent GOOD",
        "yarn dlx -q GOOD",
        "bunx --bun GOOD",
        "uvx GOOD",
        "uvx --env-file .env GOOD",
        "uvx --index-strategy unsafe-best-match GOOD",
        "uvx --extra-index-url https://h/s GOOD",
        "uvx --python-preference system --color never GOOD",
        "uvx --from GOOD start",
        "uv tool run --python 3.12 GOOD",
        "uv run --python 3.12 --isolated GOOD",
        "uv run -p 3.12 GOOD",
        "uv run --env-file .env python -u GOOD",
        "uv run --index x -m GOOD",
        "pipx run --pip-args x GOOD",
        "pipx run --spec GOOD start",
        "poetry run python -m GOOD",
        "ssh -E log GOOD serve",
        "ssh -o a=b -c aes h GOOD",
        "ssh -Tm x h GOOD",
        "node --import tsx GOOD",
        "node --conditions dev -C other GOOD",
        "node --env-file-if-exists .env --no-warnings GOOD",
        "node --max-old-space-size=100 GOOD",
        "python3 -u -X utf8 GOOD",
        "python3 -OO GOOD",
        "python3 -I -m GOOD",
        "bash -l GOOD",
        "bash -o pipefail GOOD",
        "bash --rcfile x GOOD",
        "deno run --config c.json GOOD",
        "deno run -A --allow-net npm:GOOD",
        "env A=b GOOD",
        "env -u A B=c GOOD",
        "cmd /c npx GOOD",
        "java -Xmx1g -Da=b -jar GOOD",
    ];
    const UNKNOWN: [&str; 19] = [
        "docker run --unheard of GOOD",
        "docker --context x run -i GOOD",
        "docker compose run GOOD",
        "npx --unheard of GOOD",
        "npx -c GOOD",
        "npx --call=GOOD x",
        "uvx --unheard of GOOD",
        "ssh h -p 22 GOOD",
        "node --max-old-space-size 100 GOOD",
        "node -e GOOD",
        "node --eval=GOOD x",
        "python3 -c GOOD",
        "bash -c GOOD",
        "bash -lc GOOD",
        "uv run bash -c GOOD",
        "env -S GOOD x",
        "npm run GOOD",
        "sudo -u me GOOD",
        "java -cp x GOOD",
    ];
    for line in KNOWN.iter().chain(&UNKNOWN) {
        let good = origin(&line.replace("GOOD", "good-one"));
        let evil = origin(&line.replace("GOOD", "evil-one"));
        assert_ne!(good.identity(), evil.identity(), "{line}");
        let package = good.package.as_ref().unwrap().registry;
        let is_known = KNOWN.contains(line);
        assert_eq!(package != "command", is_known, "{line}: {package}");
        if is_known {
            let more = origin(&format!("{} --more", line.replace("GOOD", "good-one")));
            assert_eq!(more.identity(), good.identity(), "{line}");
        } else {
            let program = line.split(' ').next().unwrap();
            assert_eq!(good.short_name(), program, "{line}");
            assert!(!format!("{good:?}").contains("good-one"), "{good:?}");
        }
    }
}

#[test]
fn the_value_of_an_option_is_not_kept_as_the_package() {
    for line in [
        "npx --otp S3CR3T pkg",
        "npx --unheard S3CR3T pkg",
        "bash -lc S3CR3T",
        "docker run --log-opt S3CR3T img",
        "docker run --unheard S3CR3T img",
        "uvx --index S3CR3T pkg",
        "node --title S3CR3T s.js",
        "ssh -S S3CR3T h srv",
    ] {
        check_hidden(&line.split(' ').collect::<Vec<_>>(), "S3CR3T");
    }
}

#[test]
fn names_are_short_and_identity_leaves_out_version_and_arguments() {
    assert_eq!(origin("npx @a/server-files /x").short_name(), "server-files");
    assert_eq!(origin("/opt/bin/thing.exe").short_name(), "thing");
    assert_eq!(origin("npx a@1 /x").identity(), origin("/usr/bin/npx -y a@2 /y").identity());
    assert_ne!(origin("npx a").identity(), origin("npx b").identity());
}

/// The origin's entry does not reveal a hidden word, and changes if the word changes.
#[track_caller]
fn check_hidden(words: &[&str], secret: &str) {
    let found = of_words(words);
    let (entry, id) = (found.entry().unwrap(), found.short_name());
    assert!(found.has_secrets, "{words:?}");
    assert!(!entry.raw().contains(secret), "{}", entry.raw());
    assert!(!format!("{found:?} {} {id}", found.identity()).contains(secret), "{found:?}");
    assert_eq!(of_words(words).entry().unwrap().raw(), entry.raw());
    let others: Vec<String> = words.iter().map(|word| word.replace(secret, "another")).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    assert_ne!(of_words(&others).entry().unwrap().raw(), entry.raw(), "{words:?}");
}

#[test]
fn a_word_that_may_be_a_secret_is_kept_as_a_keyed_hash() {
    let remote = ["npx", "-y", "mcp-remote", "https://a.example/mcp"];
    check_hidden(&[&remote[..], &["--header", "Authorization: Bearer s3cr3t"]].concat(), "s3cr3t");
    check_hidden(&[&remote[..], &["--header", "X-API-Key: s3cr3t"]].concat(), "s3cr3t");
    check_hidden(&["npx", "pg-mcp", "postgresql://u:s3cr3t@db/x"], "s3cr3t");
    check_hidden(&["npx", "mcp-remote", "https://u:s3cr3t@a.example/mcp"], "s3cr3t");
    check_hidden(&["npx", "mcp-remote", "https://a.example/s3cr3t/mcp"], "s3cr3t");
    check_hidden(&["npx", "mcp-remote", "https://a.example/mcp?s3cr3t"], "s3cr3t");
    check_hidden(&["npx", "mcp-remote", "https://a.example/mcp#s3cr3t"], "s3cr3t");
    check_hidden(&["uvx", "--from", "git+https://s3cr3t@host/x", "x"], "s3cr3t");
    check_hidden(&["npx", "https://s3cr3t@host/x.tgz"], "s3cr3t");
    check_hidden(&["npx", "--token", "s3cr3t", "package"], "s3cr3t");
    check_hidden(&["docker", "run", "-e", "KEY=s3cr3t", "image"], "s3cr3t");
    check_hidden(&["docker", "run", "--label", "a=s3cr3t", "image"], "s3cr3t");
    check_hidden(&["ssh", "s3cr3t@host", "serve"], "s3cr3t");
    check_hidden(&["sh", "-c", "TOKEN=s3cr3t exec server"], "s3cr3t");
    check_hidden(&["env", "TOKEN=s3cr3t", "npx", "x-mcp"], "s3cr3t");
    check_hidden(&["node", "/gone/s3cr3t/server.js"], "s3cr3t");
    check_hidden(&["/gone/s3cr3t/server"], "s3cr3t");
    check_hidden(&["KEY=s3cr3t", "npx"], "s3cr3t");
    for word in [
        "s3cr3t",
        "--key=s3cr3t",
        "-ps3cr3t",
        "-p=s3cr3t",
        "KEY=s3cr3t",
        "{\"key\":\"s3cr3t\"}",
        "a=b=s3cr3t",
        "s3cr3t==",
        "s3cr3t=",
        "--s3cr3t12",
        "/gone/s3cr3t",
        "~/gone/s3cr3t",
        "session=s3cr3t; path=/",
        "AccountKey=s3cr3t;EndpointSuffix=x",
        "wss://host:443/s3cr3t",
        "https://host/v1/s3cr3t/messages?x=1",
        "http://s3cr3t@host",
        "s3cr3t/relative",
        "пароль-s3cr3t",
        "%73s3cr3t",
    ] {
        check_hidden(&["server", word], "s3cr3t");
    }
    // Short numbers and ordinary words are stored in clear, except after an option that names a
    // secret.
    for option in [
        "--token",
        "--pass",
        "--dbpass",
        "--otp",
        "--mfa-code",
        "--gh.pat",
        "--header",
        "-H",
        "--api-key",
        "--PASSWORD",
        "--db.pin",
    ] {
        check_hidden(&["server", option, "4711"], "4711");
        check_hidden(&["server", option, "production"], "production");
    }
    check_hidden(&["server", "--pin=4711"], "4711");
    check_hidden(&["server", "PIN=4711"], "4711");
    check_hidden(&["server", "123456"], "123456");
}

#[test]
fn words_of_the_closed_list_are_kept_in_clear() {
    for line in [
        "npx -y @modelcontextprotocol/server-filesystem@2026.1.14 /srv/work/2024/01",
        "uvx mcp-server-git[all]==0.6.2 --repository ./here",
        "docker run -i --rm -e DEBUG=1 -p 8080:80 ghcr.io/org/image:1.2"
            .replace(":80 ", " ")
            .as_str(),
        "docker run image@sha256:0123abcd",
        "python3.11 -u -m mcp_server_time --local-timezone",
        "python3 -u server.py --port 8080 --log-level=debug",
        "npx mcp-remote https://a.example:8443/api/v1/mcp --transport streamable-http",
        "x --url=wss://[::1]:1/ws ~/work -- run stdio",
        "cmd /c npx -y x-mcp",
        "x ",
    ] {
        let found = origin(line);
        assert!(!found.has_secrets, "{line}: {found:?}");
        assert_eq!(found.arguments.join(" "), line.split_once(' ').unwrap().1);
    }
}

#[test]
fn of_a_url_the_parts_that_are_not_known_are_hidden_one_by_one() {
    let kept = |url: &str| redactor().address(url);
    let hidden = |text: &str| redactor().hidden(text);
    assert_eq!(kept("https://h/mcp/"), "https://h/mcp/");
    assert_eq!(kept("HTTPS://H.example:1"), "HTTPS://H.example:1");
    assert_eq!(
        kept("https://h/t/ab%20c/mcp"),
        format!("https://h/{}/{}/mcp", hidden("t"), hidden("ab%20c"))
    );
    assert_eq!(kept("https://h/mcp?a=1&b=2"), format!("https://h/mcp?{}", hidden("a=1&b=2")));
    assert_eq!(kept("https://h?"), "https://h?");
    for url in ["https://u@h/mcp", "https://h:port/mcp", "https://", "ftp://h/mcp", "h/mcp", ""] {
        assert_eq!(kept(url), hidden(url), "{url}");
    }
    assert_eq!(host_of(&kept("https://[fe80::1]:8080/secret")), Some("fe80::1"));
    assert_eq!(host_of(&kept("https://u:p@h/mcp")), None);
}

#[test]
fn short_names_come_from_packages_programs_and_hosts_only() {
    let name = |line: &str| origin(line).short_name();
    assert_eq!(name("npx mcp-remote https://a.example/tokentoken"), "a.example");
    assert_eq!(name("npx mcp-remote https://u:p@a.example/mcp"), "npx");
    assert_eq!(name("uvx --from git+https://token@host/x x"), "uvx");
    assert_eq!(name("/usr/bin/node /gone/token/server.js"), "node");
    assert_eq!(name("node /srv/token/server.js"), "server");
    assert_eq!(name("KEY=token npx"), "");
}

#[test]
fn messages_name_a_program_without_its_folders() {
    assert_eq!(shown_program("npx"), "npx");
    assert_eq!(shown_program("/opt/token/server"), "…/server");
    assert_eq!(shown_program("KEY=token"), "…");
}

#[test]
fn an_entry_that_was_kept_in_clear_is_redacted_once() {
    let old = r#"{"arguments":["-y","x@1","--header","Bearer s3cr3t"],"digest":"ab","kind":"program","package":"npm:x","program":"npx","version":"1"}"#;
    let now = redact_entry(old, &redactor()).unwrap();
    let expected = ProgramOrigin {
        digest: Some("ab".to_owned()),
        ..of_words(&["npx", "-y", "x@1", "--header", "Bearer s3cr3t"])
    };
    assert_eq!(now, expected.entry().unwrap().raw());
    assert_eq!(redact_entry(&now, &redactor()), Some(now.clone()));
    let old = r#"{"kind":"address","tlsKey":"ab","url":"https://h/s3cr3t"}"#;
    let now = redact_entry(old, &redactor()).unwrap();
    assert!(now.contains("\"tlsKey\":\"ab\"") && now.contains("https://h/hidden:"), "{now}");
    assert_eq!(redact_entry("null", &redactor()), None);
    // A word that is hidden, or only looks hidden, must not stop the conversion.
    let hidden = redactor().hidden("x");
    for word in ["--style=hidden:yes", &hidden, &format!("--style={hidden}")] {
        let old = format!(
            r#"{{"arguments":["{word}","--header","Bearer s3cr3t"],"kind":"program","program":"srv"}}"#
        );
        let now = redact_entry(&old, &redactor()).unwrap();
        assert!(!now.contains("s3cr3t") && !now.contains("hidden:yes"), "{now}");
        assert!(!word.contains(&hidden) || now.contains(word), "{now}");
        assert_eq!(redact_entry(&now, &redactor()), Some(now.clone()));
    }
    for line in ["npx --unheard x pkg", "npx mcp-remote https://h/s3cr3t", "node /gone/s.js --x y"]
    {
        let entry = origin(line).entry().unwrap().raw().to_owned();
        assert_eq!(redact_entry(&entry, &redactor()), Some(entry), "{line}");
    }
}

/// A former version stored `sha256:` and 16 digits for a word that looked like a secret.
#[test]
fn what_a_former_version_hashed_is_renewed_with_the_word_itself() {
    let hash = |word: &str| format!("sha256:{:.16}", sha256_hex(word.as_bytes()));
    let words = ["--api-key", "s3cr3t", "--token=s3cr3t", "--more", "x"].map(str::to_owned);
    let kept = [
        "--api-key".to_owned(),
        hash("s3cr3t"),
        format!("--token={}", hash("s3cr3t")),
        "--more".to_owned(),
        "x".to_owned(),
    ];
    let old = ProgramOrigin {
        arguments: kept.to_vec(),
        digest: Some("ab".to_owned()),
        ..origin("server")
    };
    let redacted = redact_entry(old.entry().unwrap().raw(), &redactor()).unwrap();
    let way = |words| Way::Program { program: "server", arguments: words };
    let now = renew_entry(&redacted, way(&words), &redactor()).unwrap();
    let expected = ProgramOrigin {
        digest: Some("ab".to_owned()),
        ..ProgramOrigin::of("server", &words, &redactor())
    };
    assert_eq!(now, expected.entry().unwrap().raw());
    assert_eq!(renew_entry(&now, way(&words), &redactor()), None);
    let others = words.clone().map(|word| word.replace("s3cr3t", "another"));
    assert_eq!(renew_entry(&redacted, way(&others), &redactor()), None);
    let url = "https://h/mcp?mode=a&token=s3cr3t";
    let old = format!(
        "{{\"kind\":\"address\",\"url\":\"https://h/mcp?mode=a&token={}\"}}",
        hash("s3cr3t")
    );
    let redacted = redact_entry(&old, &redactor()).unwrap();
    let now = renew_entry(&redacted, Way::Address(url), &redactor()).unwrap();
    assert_eq!(now, address_entry(&redactor().address(url), None).unwrap().raw());
    assert_eq!(
        renew_entry(&redacted, Way::Address("https://h/mcp?mode=a&token=b"), &redactor()),
        None
    );
}

/// A path is stored in clear only if it exists, and a server may create the file that its own
/// arguments name.
#[test]
fn a_file_that_appears_or_is_gone_makes_no_other_origin() {
    let words = ["server.py", "--db=/x/y.db", "/x/y.db", "--api-key", "s3cr3t"].map(str::to_owned);
    fn way(words: &[String]) -> Way<'_> {
        Way::Program { program: "python3", arguments: words }
    }
    let seen = |exists: &'static dyn Fn(&str) -> bool| Redactor { exists, ..redactor() };
    let (before, after) = (seen(&|path| path != "/x/y.db"), seen(&|_| true));
    let entry = |redactor: &Redactor<'_>, words: &[String]| {
        let origin = ProgramOrigin::of("python3", words, redactor);
        let digest = Some("ab".to_owned());
        ProgramOrigin { digest, ..origin }.entry().unwrap().raw().to_owned()
    };
    assert_ne!(entry(&before, &words), entry(&after, &words));
    for (pinned, now) in [(&before, &after), (&after, &before)] {
        let renewed = renew_entry(&entry(pinned, &words), way(&words), now);
        assert_eq!(renewed, Some(entry(now, &words)));
    }
    // The same if a former version stored a word in clear and took it for the package.
    let former = r#"{"arguments":["--unheard","of","pkg"],"kind":"program","package":"npm:of","program":"npx"}"#;
    let words_of_former = ["--unheard", "of", "pkg"].map(str::to_owned);
    let launched = Way::Program { program: "npx", arguments: &words_of_former };
    let renewed = renew_entry(former, launched, &after).unwrap();
    assert_eq!(renewed, origin("npx --unheard of pkg").entry().unwrap().raw());
    // A different path or a different secret is a different launch.
    for (word, other) in [("y.db", "z.db"), ("s3cr3t", "another")] {
        let others = words.clone().map(|each| each.replace(word, other));
        assert_eq!(renew_entry(&entry(&before, &words), way(&others), &after), None);
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
