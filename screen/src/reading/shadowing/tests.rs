use super::*;

#[test]
fn a_well_known_name_is_a_finding_unless_the_server_is_known_by_it() {
    let rule = |name: &str, called: &str| shadowed_name(name, called).map(|found| found.rule);
    assert_eq!(rule("brave_web_search", "weather-mcp"), Some("shadowing.well-known-name"));
    assert_eq!(rule("brave_web_search", "@modelcontextprotocol/server-brave-search"), None);
    assert_eq!(rule("search", "anything"), None);
}

#[test]
fn a_name_that_only_looks_well_known_is_a_finding_for_every_server() {
    let rule = |name: &str| shadowed_name(name, "brave").map(|found| found.rule);
    assert_eq!(rule("br\u{430}ve_web_search"), Some("shadowing.look-alike-name"));
    assert_eq!(rule("brave_web_s3arch"), Some("shadowing.look-alike-name"));
    assert_eq!(rule("braveWebSearch"), None);
}

#[test]
fn names_of_one_server_that_look_alike_are_found() {
    let mut twins =
        twin_names(["read_file", "read_fi1e", "write_file", "list_v1", "list_v2"].into_iter());
    twins.sort_unstable();
    assert_eq!(twins, ["read_fi1e"]);
    assert!(twin_names(["a_b", "ab", "aB"].into_iter()).is_empty());
}

#[test]
fn every_line_of_the_table_names_a_tool_and_its_owners() {
    let lines = KNOWN_TOOLS.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(known().len(), lines, "a name is there twice, or a line has no owners");
    assert!(known().values().all(|known| !known.owners.is_empty()));
}
