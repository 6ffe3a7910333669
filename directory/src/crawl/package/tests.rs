use super::*;

const NPM: &str = r#"{"name":"a","time":{"created":"2020-01-01T00:00:00.000Z","1.0.0":"2026-01-02T03:04:05.678Z","1.1.0":"2025-02-02T00:00:00.000Z","2.0.0-beta.1":"2026-03-02T00:00:00.000Z","0.9.0":"2025-01-01T00:00:00.000Z"},
"versions":{"1.1.0":{"description":"does things","repository":{"type":"git","url":"git+https://github.com/a/b.git"},"license":"MIT","bin":{"a":"x.js"}},
"1.0.0":{"description":7,"repository":"github:a/b","license":{"type":"ISC"},"bin":"x.js"},"0.9.0":{"deprecated":"use another"},"2.0.0-beta.1":{},"--evil":{},"9.9.9":[]}}"#;

const PYPI: &str = r#"{"info":{"summary":"tells the time","license":"","classifiers":["License :: OSI Approved :: MIT License"],"project_urls":{"Homepage":"https://h.example/","Source":"https://github.com/a/time"}},
"releases":{"1.0":[{"packagetype":"sdist","upload_time_iso_8601":"2026-01-01T00:00:00.000000Z"}],"1.1":[{"packagetype":"bdist_wheel","upload_time_iso_8601":"2026-02-01T00:00:00.000000Z","yanked":false}],
"1.2":[{"packagetype":"bdist_wheel","upload_time_iso_8601":"2026-03-01T00:00:00.000000Z","yanked":true}],"1.3rc1":[{"packagetype":"bdist_wheel","upload_time_iso_8601":"2026-03-02T00:00:00Z"}],"1.10":[{"packagetype":"bdist_wheel","upload_time_iso_8601":"2026-04-01T00:00:00.000000Z"}]}}"#;

fn versions(releases: &[Release]) -> Vec<&str> {
    releases.iter().map(|release| release.version.as_str()).collect()
}

#[test]
fn npms_releases_come_by_their_versions_without_previews_and_withdrawn_ones() {
    let releases = read_npm(NPM.as_bytes()).unwrap();
    assert_eq!(versions(&releases), ["1.0.0", "1.1.0"]);
    let newest = &releases[1].manifest;
    assert_eq!(newest.repository.as_deref(), Some("https://github.com/a/b"));
    assert_eq!(newest.licence.as_deref(), Some("MIT"));
    assert_eq!(newest.published_at.as_deref(), Some("2025-02-02T00:00:00Z"));
    let oldest = &releases[0].manifest;
    assert_eq!(oldest.description, None);
    assert_eq!(oldest.repository.as_deref(), Some("https://github.com/a/b"));
    assert_eq!(oldest.licence.as_deref(), Some("ISC"));
}

#[test]
fn pypis_releases_have_a_wheel_that_is_not_withdrawn() {
    let releases = read_pypi(PYPI.as_bytes()).unwrap();
    assert_eq!(versions(&releases), ["1.1", "1.10"]);
    assert_eq!(releases[0].manifest.licence.as_deref(), Some("OSI Approved :: MIT License"));
    assert_eq!(releases[0].manifest.repository.as_deref(), Some("https://github.com/a/time"));
}

#[test]
fn named_releases_are_chosen_or_missed_and_else_the_newest() {
    let releases = || read_pypi(PYPI.as_bytes()).unwrap();
    let of = |named: &[&str], newest| {
        let named: Vec<String> = named.iter().map(|text| (*text).to_owned()).collect();
        chosen("time", releases(), &named, newest)
            .map(|found| versions(&found).join(" "))
            .map_err(|error| error.to_string())
    };
    assert_eq!(of(&[], 1).unwrap(), "1.10");
    assert_eq!(of(&[], 9).unwrap(), "1.1 1.10");
    assert_eq!(of(&["1.1"], 1).unwrap(), "1.1");
    assert!(of(&["1.2"], 1).unwrap_err().contains("no release `1.2`"));
    assert!(chosen("time", Vec::new(), &[], 1).is_err());
}

#[test]
fn a_repository_that_no_browser_should_follow_is_not_shown() {
    for text in ["javascript:alert(1)", "http://a.example/x", "file:///etc/passwd", "", "a/b"] {
        assert_eq!(web_address(text), None, "{text}");
    }
}
