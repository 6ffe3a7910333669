//! Administrators: who may audit, approve, grant and operate.

use crate::scene::{compile, compile_over, identity, inventory, shown};
use policy::{
    AccessRequest, ActorType, AdminAction, AdminTarget, Caller, Identity, Policies, ServerInventory,
};

const ADMINS: &str = r#"@id("admins") permit(principal in Group::"admins",
    action in [Action::"audit", Action::"approve", Action::"grant", Action::"operate"], resource);"#;

fn ask(
    policies: &Policies,
    identity: Identity,
    action: AdminAction,
    on: AdminTarget<'_>,
) -> String {
    shown(&policies.decide(&Caller::new(identity), &AccessRequest::Admin { action, on }))
}

#[test]
fn only_people_approve_and_grant() {
    let policies = compile(ADMINS);
    for action in AdminAction::ALL {
        for on in [AdminTarget::Gateway, AdminTarget::Server("files")] {
            let admin = identity("alice", &["admins"]);
            assert_eq!(ask(&policies, admin.clone(), action, on), "permit admins");
            for actor_type in [ActorType::Agent, ActorType::System] {
                let machine = Identity { actor_type, ..admin.clone() };
                let needs_a_user = matches!(action, AdminAction::Approve | AdminAction::Grant);
                let expected = if needs_a_user { "not a user" } else { "permit admins" };
                assert_eq!(ask(&policies, machine, action, on), expected);
            }
            assert_eq!(ask(&policies, identity("bob", &[]), action, on), "no match");
        }
    }
}

#[test]
fn a_server_that_does_not_exist_has_no_administrators() {
    let policies = compile(ADMINS);
    let admin = identity("alice", &["admins"]);
    assert_eq!(ask(&policies, admin, AdminAction::Audit, AdminTarget::Server("none")), "no match");
}

#[test]
fn admins_of_an_org_manage_the_servers_of_that_org_only() {
    let server = ServerInventory::builder("tenant").org("acme").build();
    let policies = compile_over(ADMINS, &inventory().with_server(server));
    let of = |org: Option<&str>| Identity {
        org: org.map(str::to_owned),
        ..identity("alice", &["admins"])
    };
    let on = |org, target| ask(&policies, of(org), AdminAction::Operate, target);
    assert_eq!(on(Some("acme"), AdminTarget::Server("tenant")), "permit admins");
    assert_eq!(on(Some("other"), AdminTarget::Server("tenant")), "other org");
    assert_eq!(on(None, AdminTarget::Server("tenant")), "permit admins");
    assert_eq!(on(Some("acme"), AdminTarget::Server("files")), "other org");
    assert_eq!(on(Some("acme"), AdminTarget::Gateway), "other org");
    assert_eq!(on(None, AdminTarget::Gateway), "permit admins");
}

#[test]
fn a_policy_can_single_out_a_server_or_the_gateway() {
    let policies = compile(
        r#"@id("one") permit(principal, action == Action::"audit", resource == Server::"files");
           @id("all") permit(principal, action == Action::"operate", resource is Gateway);"#,
    );
    let on = |action, target| ask(&policies, identity("alice", &[]), action, target);
    assert_eq!(on(AdminAction::Audit, AdminTarget::Server("files")), "permit one");
    assert_eq!(on(AdminAction::Audit, AdminTarget::Server("issues")), "no match");
    assert_eq!(on(AdminAction::Audit, AdminTarget::Gateway), "no match");
    assert_eq!(on(AdminAction::Operate, AdminTarget::Gateway), "permit all");
    assert_eq!(on(AdminAction::Operate, AdminTarget::Server("files")), "no match");
}
