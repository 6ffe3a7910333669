//! The OpenAPI document of the admin API. Paths and methods come from the table of operations, so
//! they match what is served; the schemas of bodies and responses are in `openapi/schemas.json`.

use super::operation::{ADMIN_PATH, Operation, Reach};
use policy::AdminAction;
use serde_json::{Map, Value, json};

const SCHEMAS: &str = include_str!("openapi/schemas.json");

/// The document of a gateway at this address.
pub(super) fn document(public_url: &str) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in Operation::ALL {
        let path = paths.entry(operation.path()).or_insert_with(|| json!({}));
        if let Value::Object(methods) = path {
            methods.insert(operation.method().to_owned(), describe(operation));
        }
    }
    let schemas: Value = serde_json::from_str(SCHEMAS).unwrap_or_default();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Holdpoint gateway: admin API",
            "version": "1.0.0",
            "description": "Send an admin key (`holdpoint key create --admin`), or an access token for the audience `PUBLIC_URL/admin`, as a bearer token. Every operation needs a Cedar policy that permits its action.",
        },
        "servers": [{"url": format!("{public_url}{ADMIN_PATH}")}],
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

fn describe(operation: Operation) -> Value {
    let action = operation.action();
    let on = match operation.reach() {
        Reach::Gateway => "the gateway",
        Reach::Server => "the server",
        Reach::EachServer => "a server; others are left out",
        Reach::NamedServer => "the gateway, or the server that `server` names",
    };
    let who = if action.needs_a_user() { " Only a user may do this." } else { "" };
    let mut described = json!({
        "operationId": operation.id(),
        "summary": summary(operation),
        "description": format!("Needs the action `{}` on {on}.{who}", action.as_str()),
        "responses": {
            "200": {
                "description": "Done",
                "content": {"application/json": {"schema": schema(answer(operation))}},
            },
            "401": refusal("No valid identity for the admin API"),
            "403": refusal("No policy permits it"),
        },
    });
    let Value::Object(members) = &mut described else { return described };
    let parameters = parameters(operation);
    if !parameters.is_empty() {
        members.insert("parameters".to_owned(), parameters.into());
    }
    if let Some(body) = body(operation) {
        let content = json!({"application/json": {"schema": schema(body)}});
        members.insert("requestBody".to_owned(), json!({"required": true, "content": content}));
    }
    if let Some(Value::Object(responses)) = members.get_mut("responses") {
        if body(operation).is_some() || !parameters_of_query(operation).is_empty() {
            responses.insert("400".to_owned(), refusal("The request is not valid"));
        }
        if operation.path().starts_with("/servers/{id}") {
            responses.insert("404".to_owned(), refusal("No such server is configured"));
        }
        if matches!(operation, Operation::GrantCall | Operation::RefuseCall) {
            responses.insert("409".to_owned(), refusal("No call waits under this id here"));
        }
        if operation.reach() == Reach::Server && action != AdminAction::Audit {
            let words = "Not what waits now, or not in this status";
            responses.insert("409".to_owned(), refusal(words));
        }
        if matches!(operation, Operation::Release | Operation::Recheck) {
            responses.insert("502".to_owned(), refusal("The server could not be reached or read"));
        }
    }
    described
}

fn summary(operation: Operation) -> &'static str {
    match operation {
        Operation::ListServers => "Every server: its status, what waits, and since when",
        Operation::ShowServer => "One server with its findings and everything that is pinned",
        Operation::Approve => "Approve what was reviewed",
        Operation::Quarantine => "Stop a server until it is released",
        Operation::Release => "End a quarantine: the server is looked at again",
        Operation::Recheck => "Look at a server now, without waiting for a call",
        Operation::ListReceipts => "The newest receipts of all nodes, newest first",
        Operation::ShowIncident => "Incident mode and revocations",
        Operation::SetIncident => {
            "Declare, change or end an incident; what stops less needs a user"
        }
        Operation::Revoke => "Revoke what a key, principal, server or session was allowed so far",
        Operation::ReleaseQuarantine => "Let a session call again that tripped an anomaly rule",
        Operation::ListApprovals => "The calls that wait for you on any node, with their arguments",
        Operation::GrantCall => "Let a call that waits be made, once",
        Operation::RefuseCall => "Refuse a call that waits",
        Operation::ShowPrincipalTools => "What a principal would see, and why",
        Operation::ShowInventory => "Every server and tool with trust, risk and accepted hash",
        Operation::ShowStats => "Numbers since the gateway started",
        Operation::ShowOpenApi => "This document",
    }
}

fn answer(operation: Operation) -> &'static str {
    match operation {
        Operation::ListServers => "Servers",
        Operation::ShowServer => "ServerInFull",
        Operation::Approve | Operation::Quarantine | Operation::Release | Operation::Recheck => {
            "Decided"
        }
        Operation::ListReceipts => "Receipts",
        Operation::ShowIncident
        | Operation::SetIncident
        | Operation::Revoke
        | Operation::ReleaseQuarantine => "IncidentState",
        Operation::ListApprovals => "Approvals",
        Operation::GrantCall | Operation::RefuseCall => "DecidedCall",
        Operation::ShowPrincipalTools => "PrincipalTools",
        Operation::ShowInventory => "Inventory",
        Operation::ShowStats => "Stats",
        Operation::ShowOpenApi => "Document",
    }
}

fn body(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::Approve => Some("ApproveBody"),
        Operation::SetIncident => Some("IncidentBody"),
        Operation::Revoke => Some("RevokeBody"),
        Operation::ReleaseQuarantine => Some("ReleaseBody"),
        _ => None,
    }
}

fn parameters(operation: Operation) -> Vec<Value> {
    let names = operation
        .path()
        .split('/')
        .filter_map(|part| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')));
    let in_path = names.map(
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}),
    );
    let in_query = parameters_of_query(operation).iter().map(|(name, words)| {
        json!({
            "name": name,
            "in": "query",
            "required": false,
            "description": words,
            "schema": {"type": "string"},
        })
    });
    in_path.chain(in_query).collect()
}

fn parameters_of_query(operation: Operation) -> &'static [(&'static str, &'static str)] {
    match operation {
        Operation::ShowServer => &[(
            "server_text",
            "`true`: with the words of the server that are not approved; only for users",
        )],
        Operation::ListReceipts => &[
            ("since", "A moment (`2026-11-17T08:00:00Z`), a day, or a duration (`2h`)"),
            ("decision", "`allowed`, `held` or `denied`"),
            ("server", "A server's id"),
            ("sub", "The subject of the caller"),
            ("tool", "A tool's own name"),
            ("reason", "A reason code"),
            ("limit", "The maximum number of receipts; 100 by default, at most 1000"),
            ("events", "`true`: with people's acts and what happened apart from calls"),
        ],
        Operation::GrantCall | Operation::RefuseCall => &[(
            "ticket",
            "From a link of the webhook; it counts for this decision on this call alone",
        )],
        Operation::ShowPrincipalTools => &[
            ("issuer", "Who issues its tokens; a key's principal if it is not given"),
            ("server", "Only tools of this server"),
            ("actor_type", "`agent`, `user` or `system`, as its token says"),
            ("org", "Its organization"),
            ("group", "A group; may be given several times"),
            ("clearance", "Its clearance"),
            ("client_id", "Its client"),
            ("mfa", "`true`: it proved more than one factor"),
        ],
        _ => &[],
    }
}

fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn refusal(words: &str) -> Value {
    json!({
        "description": words,
        "content": {"application/json": {"schema": schema("Refusal")}},
    })
}

#[cfg(test)]
mod tests;
