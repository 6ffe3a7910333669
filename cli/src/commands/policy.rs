//! `holdpoint policy`: checks the gateway's policies, explains their decisions, and compares them with a table.

use crate::arguments::Options;
use crate::arguments::policy::{
    PolicyCheckCommand, PolicyCommand, PolicySubcommand, PolicyTestCommand,
};
use crate::failure::{Exit, Failure};
use crate::gateway_file::read_bounded;
use crate::policy_inputs::PolicyInputs;
use crate::report::count;
use crate::screen::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};
use policy::{
    AccessDecision, AccessRequest, Caller, CaseResult, DecisionTable, Explanation, Identity,
    IdentityProof, Policies, PolicyMatch, PolicyProblem, Severity,
};
use serde_json::{Value, json};

/// The largest table of expected decisions.
const MAX_TABLE_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) fn run(command: &PolicyCommand, options: &Options) -> Result<Exit, Failure> {
    match &command.command {
        PolicySubcommand::Check(command) => check(command, options),
        PolicySubcommand::Test(command) => test(command, options),
    }
}

fn check(command: &PolicyCheckCommand, options: &Options) -> Result<Exit, Failure> {
    let inputs = PolicyInputs::read(command.place.config.as_deref(), options)?;
    let policies = match compile(&inputs) {
        Ok(policies) => policies,
        Err(problems) => return print_mistakes(&inputs, &problems, options),
    };
    let caller = command.subject.as_ref().map(|subject| caller(subject, command, &inputs));
    let explanation = match (&caller, &command.tool) {
        (Some(caller), Some(tool)) => Some(explain(&policies, caller, tool, command)?),
        _ => None,
    };
    if options.json {
        let visible = caller.as_ref().map(|caller| visible_document(&policies, &inputs, caller));
        let asked = Asked { visible, decision: explanation.as_ref().map(decision_document) };
        screen::print_json(&check_document(&inputs, Some(&policies), policies.warnings(), &asked))?;
    } else {
        match (&explanation, &caller) {
            (Some(explanation), _) => print_explanation(explanation),
            (None, Some(caller)) => print_visible(&policies, &inputs, caller),
            (None, None) => print_summary(&policies, &inputs),
        }
    }
    let is_denied = explanation.is_some_and(|explanation| !explanation.decision.is_permit());
    Ok(if is_denied { Exit::Denied } else { Exit::Fine })
}

fn compile(inputs: &PolicyInputs) -> Result<Policies, Vec<PolicyProblem>> {
    Policies::compile(&inputs.files, inputs.entities.as_deref(), &inputs.inventory)
}

fn caller(subject: &str, command: &PolicyCheckCommand, inputs: &PolicyInputs) -> Caller {
    let mut groups = command.group.clone();
    groups.sort();
    groups.dedup();
    let issuer = command.issuer.clone().or_else(|| inputs.issuer.clone());
    Caller::new(Identity {
        issuer: issuer.unwrap_or_default(),
        subject: subject.to_owned(),
        actor_type: command.actor,
        client_id: None,
        org: command.org.clone(),
        groups,
        clearance: None,
        mfa: command.mfa,
        proof: IdentityProof::Token,
    })
}

fn explain(
    policies: &Policies,
    caller: &Caller,
    tool: &str,
    command: &PolicyCheckCommand,
) -> Result<Explanation, Failure> {
    let (server, tool) = tool.split_once("__").ok_or_else(|| {
        Failure::usage("`--tool`: expected `server__tool`, such as `files__read_file`")
    })?;
    let input = command.input.as_deref().map(str::as_bytes);
    Ok(policies.explain(caller, &AccessRequest::Call { server, tool, input }))
}

fn print_mistakes(
    inputs: &PolicyInputs,
    problems: &[PolicyProblem],
    options: &Options,
) -> Result<Exit, Failure> {
    if options.json {
        screen::print_json(&check_document(inputs, None, problems, &Asked::default()))?;
        return Ok(Exit::Usage);
    }
    problems.iter().for_each(print_problem);
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let mistakes = count(errors, "mistake", "mistakes");
    screen::say(styled(RED, format!("{mistakes}: a gateway does not start with these policies")));
    Ok(Exit::Usage)
}

fn print_problem(problem: &PolicyProblem) {
    let style = match problem.severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
    };
    screen::say(styled(style, screen::readable(&problem.to_string())));
}

fn print_summary(policies: &Policies, inputs: &PolicyInputs) {
    policies.warnings().iter().for_each(print_problem);
    let number = count(policies.ids().count(), "policy", "policies");
    let files = count(inputs.files.len(), "file", "files");
    let servers = count(inputs.inventory.servers().count(), "server", "servers");
    let tools: usize = inputs.inventory.servers().map(|server| server.tools().count()).sum();
    let tools = count(tools, "tool", "tools");
    screen::say(styled(GREEN, format!("{number} in {files} fit {servers} with {tools}")));
    for server in inputs.inventory.servers().filter(|server| server.tools().next().is_none()) {
        let sentence = format!("  {}: no tool is pinned yet", screen::readable(server.id()));
        screen::say(styled(DIM, sentence));
    }
}

fn print_visible(policies: &Policies, inputs: &PolicyInputs, caller: &Caller) {
    policies.warnings().iter().for_each(print_problem);
    let mut is_empty = true;
    for server in inputs.inventory.servers() {
        let visible = policies.visible(caller, server.id());
        is_empty &= visible.is_empty();
        if visible.is_empty() {
            continue;
        }
        screen::say(styled(BOLD, screen::readable(server.id())));
        for (kind, names) in [
            ("tool", visible.tools().collect::<Vec<_>>()),
            ("prompt", visible.prompts().collect()),
            ("resource", visible.resources().collect()),
        ] {
            for name in names {
                screen::say(format!("  {kind} {}", screen::name(name)));
            }
        }
    }
    if is_empty {
        screen::say("the caller can use nothing");
    }
}

fn print_explanation(explanation: &Explanation) {
    let style = if explanation.decision.is_permit() { GREEN } else { RED };
    let text = explanation.to_string();
    let mut lines = text.lines();
    if let Some(first) = lines.next() {
        screen::say(styled(style, screen::readable(first)));
    }
    lines.for_each(|line| screen::say(screen::readable(line)));
}

fn test(command: &PolicyTestCommand, options: &Options) -> Result<Exit, Failure> {
    let inputs = PolicyInputs::read(command.place.config.as_deref(), options)?;
    let text = read_bounded(&command.file, MAX_TABLE_BYTES)?;
    let issuer = inputs.issuer.as_deref().unwrap_or_default();
    let table = DecisionTable::parse(&text, issuer)
        .map_err(|error| Failure::usage(format!("`{}`: {error}", command.file.display())))?;
    let policies = match compile(&inputs) {
        Ok(policies) => policies,
        Err(problems) => return print_mistakes(&inputs, &problems, options),
    };
    let results = table.run(&policies);
    let failed = results.iter().filter(|case| !case.passed).count();
    if options.json {
        let cases: Vec<Value> = results.iter().map(case_document).collect();
        let passed = results.len().saturating_sub(failed);
        screen::print_json(&json!({ "passed": passed, "failed": failed, "cases": cases }))?;
    } else {
        for case in results.iter().filter(|case| options.verbose || !case.passed) {
            let style = if case.passed { GREEN } else { RED };
            screen::say(styled(style, screen::readable(&case.to_string())));
        }
        let cases = count(results.len(), "case", "cases");
        screen::say(match failed {
            0 => styled(GREEN, format!("{cases}, all as expected")),
            _ => styled(RED, format!("{cases}, {failed} not as expected")),
        });
    }
    Ok(if failed == 0 { Exit::Fine } else { Exit::Denied })
}

/// The JSON answer to a question about a caller.
#[derive(Default)]
struct Asked {
    visible: Option<Vec<Value>>,
    decision: Option<Value>,
}

fn check_document(
    inputs: &PolicyInputs,
    policies: Option<&Policies>,
    problems: &[PolicyProblem],
    asked: &Asked,
) -> Value {
    let ids = policies.into_iter().flat_map(Policies::ids);
    let ids: Vec<Value> =
        ids.map(|(id, file, line)| json!({ "id": id, "file": file, "line": line })).collect();
    let servers: Vec<Value> = inputs
        .inventory
        .servers()
        .map(|server| json!({ "id": server.id(), "tools": server.tools().count() }))
        .collect();
    let problems: Vec<Value> = problems.iter().map(problem_document).collect();
    json!({
        "policies": ids,
        "servers": servers,
        "problems": problems,
        "visible": asked.visible,
        "decision": asked.decision,
    })
}

fn problem_document(problem: &PolicyProblem) -> Value {
    let severity = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    json!({
        "severity": severity,
        "file": problem.file,
        "line": problem.line,
        "policy": problem.policy_id,
        "sentence": problem.sentence,
    })
}

fn visible_document(policies: &Policies, inputs: &PolicyInputs, caller: &Caller) -> Vec<Value> {
    let servers = inputs.inventory.servers().map(|server| {
        let visible = policies.visible(caller, server.id());
        json!({
            "server": server.id(),
            "tools": visible.tools().collect::<Vec<_>>(),
            "prompts": visible.prompts().collect::<Vec<_>>(),
            "resources": visible.resources().collect::<Vec<_>>(),
        })
    });
    servers.collect()
}

fn decision_document(explanation: &Explanation) -> Value {
    let (outcome, reason, groups) = match &explanation.decision {
        AccessDecision::Permit { approval_groups, .. } if approval_groups.is_empty() => {
            ("permit", None, approval_groups.to_vec())
        }
        AccessDecision::Permit { approval_groups, .. } => {
            ("approval", None, approval_groups.to_vec())
        }
        AccessDecision::Deny { reason } => ("deny", Some(reason.code()), Vec::new()),
    };
    let policies = explanation.policies.iter().map(|policy| {
        let matched = match &policy.matched {
            PolicyMatch::Matched => "matched",
            PolicyMatch::OtherPrincipal => "other_principal",
            PolicyMatch::OtherAction => "other_action",
            PolicyMatch::OtherResource => "other_resource",
            PolicyMatch::ConditionFalse => "condition_false",
            PolicyMatch::Failed { .. } => "failed",
        };
        json!({
            "id": policy.policy_id,
            "file": policy.file,
            "line": policy.line,
            "effect": if policy.permits { "permit" } else { "forbid" },
            "matched": matched,
        })
    });
    json!({
        "outcome": outcome,
        "reason": reason,
        "policy": explanation.decision.policy_id(),
        "approval_groups": groups,
        "notes": explanation.notes,
        "policies": policies.collect::<Vec<_>>(),
    })
}

fn case_document(case: &CaseResult) -> Value {
    json!({
        "number": case.number,
        "name": case.name,
        "passed": case.passed,
        "expected": case.expected.to_string(),
        "expected_policy": case.expected_policy,
        "found": case.outcome().to_string(),
        "policy": case.found.policy_id(),
    })
}
