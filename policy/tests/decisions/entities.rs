//! What the entities file may and may not add.

use crate::scene::{caller, decide, inventory, sentences};
use policy::Policies;

fn with_entities(text: &str, entities: &str) -> Result<Policies, Vec<String>> {
    Policies::compile(&[("p.cedar", text)], Some(entities), &inventory())
        .map_err(|problems| sentences(&problems))
}

fn refused(entities: &str, expected: &str) {
    assert_eq!(with_entities("", entities).unwrap_err(), [expected], "{entities}");
}

#[test]
fn groups_can_be_members_of_groups_and_have_attributes() {
    let policies = with_entities(
        r#"@id("staff") permit(principal in Group::"staff", action in Action::"call", resource)
           when { Group::"staff" has open && Group::"staff".open };"#,
        r#"[{"uid":{"type":"Group","id":"interns"},"parents":[{"type":"Group","id":"staff"}]},
            {"uid":{"type":"Group","id":"staff"},"attrs":{"open":true}}]"#,
    )
    .unwrap();
    assert_eq!(decide(&policies, &caller(&["interns"]), "files__wipe"), "permit staff");
    assert_eq!(decide(&policies, &caller(&["guests"]), "files__wipe"), "no match");
}

#[test]
fn principals_servers_and_tools_can_get_groups_and_attributes() {
    let policies = with_entities(
        r#"@id("own") permit(principal in Group::"oncall", action in Action::"call", resource)
           when { principal has team && resource has owner && principal.team == resource.owner &&
                  resource.server has zone && resource.server.zone == "eu" };"#,
        r#"[{"uid":{"type":"Principal","id":"https://idp|alice"},"attrs":{"team":"blue"},
             "parents":[{"type":"Group","id":"oncall"}]},
            {"uid":{"type":"Server","id":"files"},"attrs":{"zone":"eu"}},
            {"uid":{"type":"Tool","id":"files__wipe"},"attrs":{"owner":"blue"}},
            {"uid":{"type":"Tool","id":"files__write_file"},"attrs":{"owner":"red"}}]"#,
    )
    .unwrap();
    assert_eq!(decide(&policies, &caller(&[]), "files__wipe"), "permit own");
    assert_eq!(decide(&policies, &caller(&[]), "files__write_file"), "no match");
    assert_eq!(decide(&policies, &caller(&[]), "files__read_file"), "no match");
    let bob = policy::Caller::new(crate::scene::identity("bob", &[]));
    assert_eq!(decide(&policies, &bob, "files__wipe"), "no match");
}

#[test]
fn what_the_gateway_sets_cannot_be_redefined() {
    refused(
        r#"[{"uid":{"type":"Server","id":"files"},"attrs":{"trust":"internal"}}]"#,
        r#"entities: Server::"files": `trust` is set by the gateway and cannot be redefined"#,
    );
    refused(
        r#"[{"uid":{"type":"Tool","id":"files__wipe"},"attrs":{"risk":"low"}}]"#,
        r#"entities: Tool::"files__wipe": `risk` is set by the gateway and cannot be redefined"#,
    );
    refused(
        r#"[{"uid":{"type":"Principal","id":"x"},"attrs":{"mfa":true}}]"#,
        r#"entities: Principal::"x": `mfa` is set by the gateway and cannot be redefined"#,
    );
    refused(
        r#"[{"uid":{"type":"Server","id":"files"},"parents":[{"type":"Group","id":"x"}]}]"#,
        r#"entities: Server::"files": only principals and groups can be put in groups"#,
    );
    refused(
        r#"[{"uid":{"type":"Principal","id":"x"},"parents":[{"type":"Org","id":"acme"}]}]"#,
        r#"entities: Principal::"x": only principals and groups can be put in groups"#,
    );
    refused(
        r#"[{"uid":{"type":"Action","id":"call"}}]"#,
        r#"entities: Action::"call": this file describes Principal, Group, Org, Server, Tool, Prompt and Resource only"#,
    );
}

#[test]
fn mistakes_in_the_file_are_refused() {
    refused(
        r#"[{"uid":{"type":"Group","id":"a"},"parents":[{"type":"Group","id":"b"}]},
            {"uid":{"type":"Group","id":"b"},"parents":[{"type":"Group","id":"a"}]}]"#,
        "entities: the group `a` is, by way of others, a member of itself",
    );
    refused(
        r#"[{"uid":{"type":"Group","id":"a"}},{"uid":{"type":"Group","id":"a"}}]"#,
        r#"entities: Group::"a" is described twice"#,
    );
    refused(
        r#"[{"uid":{"type":"Group","id":"a"},"attrs":{"x":1}},{"uid":{"type":"Group","id":"b"},"attrs":{"x":"1"}}]"#,
        r#"entities: Group::"b": `x` has another type than on other entities"#,
    );
    refused(
        r#"[{"uid":{"type":"Group","id":"a"},"attrs":{"x":{"__entity":{"type":"Tool","id":"t"}}}}]"#,
        r#"entities: Group::"a": `x` is not a string, an integer, a boolean or an array of strings"#,
    );
    assert!(with_entities("", "{").is_err());
    assert!(with_entities("", r#"[{"uid":{"type":"Group","id":"a","id":"b"}}]"#).is_err());
    assert!(with_entities("", r#"[{"uid":{"type":"Group","id":"a"},"tags":{}}]"#).is_err());
}
