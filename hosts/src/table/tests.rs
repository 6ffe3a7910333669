use super::*;
use std::collections::BTreeSet;

#[test]
fn every_host_has_an_id_of_its_own_and_a_file_of_its_own() {
    let ids: BTreeSet<&str> = HOSTS.iter().map(|host| host.id).collect();
    assert_eq!(ids.len(), HOSTS.len());
    assert!(HOSTS.len() >= 21, "{}", HOSTS.len());
    for host in HOSTS {
        assert!(!host.places.is_empty() && !host.layouts.is_empty(), "{}", host.id);
        assert_eq!(super::host(host.id), Some(host));
        assert_ne!(host.id, OTHER.id);
    }
    assert_eq!(super::host("no-such-host"), None);
}

#[test]
fn a_path_has_one_star_at_most_and_it_is_a_whole_name() {
    for place in HOSTS.iter().flat_map(|host| host.places) {
        let stars: Vec<&str> = place.path.split('/').filter(|part| part.contains('*')).collect();
        assert!(stars.len() <= 1 && stars.iter().all(|part| *part == "*"), "{}", place.path);
        assert!(!place.path.contains('\\') && !place.path.starts_with('/'), "{}", place.path);
    }
}

#[test]
fn every_variable_of_a_row_is_listed() {
    let named: BTreeSet<&str> = HOSTS
        .iter()
        .flat_map(|host| host.places)
        .filter_map(|place| match place.base {
            Base::Variable { name, .. } | Base::File { name } => Some(name),
            _ => None,
        })
        .chain(["APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME"])
        .collect();
    assert_eq!(named, VARIABLES.iter().copied().collect());
}
