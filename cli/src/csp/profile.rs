//! The ten tests, each a list of checks in the order of the profile.

use super::caller::{Answered, SuiteCaller};
use super::config::{SandboxConfig, SuiteConfig};
use super::hooks;
use super::oauth_proxy;
use super::report::{CheckReport, Outcome, Report, TestReport};
use super::upstream::Upstream;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use wire::EndpointUrl;
use zeroize::Zeroizing;

/// The size of an argument that no gateway has to accept.
const OVERSIZED_BYTES: usize = 20 * 1024 * 1024;
/// How long a receipt may take to become readable.
const RECEIPT_PATIENCE: Duration = Duration::from_secs(10);
/// The polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The members that every receipt must have.
const RECEIPT_MEMBERS: [&str; 18] = [
    "/ts",
    "/receipt_id",
    "/trace_id",
    "/principal/sub",
    "/principal/actor_type",
    "/principal/client_id",
    "/mcp/method",
    "/mcp/server_id",
    "/mcp/tool_name",
    "/mcp/trust_level",
    "/request/args_hash",
    "/request/size_bytes_in",
    "/decision/result",
    "/decision/policy_id",
    "/decision/reason_codes",
    "/token_handling/mode",
    "/token_handling/passthrough_detected",
    "/outcome",
];

/// Runs all tests. The error says why none could run.
pub(crate) async fn run(url: &EndpointUrl, config: &SuiteConfig) -> Result<Report, String> {
    let address = config.upstream.listen;
    let upstream = Upstream::listen(address).await;
    let upstream = upstream.map_err(|error| format!("`upstream.listen`: {address}: {error}"))?;
    if let Some(setup) = &config.setup {
        hooks::run(&setup.command).await.map_err(|error| format!("`setup`: {error}"))?;
    }
    let token = async |name: &str, principal| {
        hooks::token(principal).await.map_err(|error| format!("`principal.{name}`: {error}"))
    };
    let tokens = [token("a", &config.principal.a).await?, token("b", &config.principal.b).await?];
    let begin = async |name: &str, token: &str| {
        let begun = SuiteCaller::begin(url, token).await;
        begun.map_err(|error| format!("caller `{name}` could not begin a session: {error}"))
    };
    let [a, b] = &tokens;
    let (a, b) = (begin("a", a).await?, begin("b", b).await?);
    let suite = Suite { url: url.clone(), config, upstream, tokens, a, b };
    let mut tests = Vec::new();
    for number in 1..=10 {
        tests.push(suite.test(number).await);
    }
    Ok(Report::new(url.to_string(), tests))
}

struct Suite<'a> {
    url: EndpointUrl,
    config: &'a SuiteConfig,
    upstream: Upstream,
    tokens: [Zeroizing<String>; 2],
    a: SuiteCaller,
    b: SuiteCaller,
}

pub(super) fn check(
    name: &'static str,
    outcome: Outcome,
    detail: impl Into<String>,
) -> CheckReport {
    CheckReport { name, outcome, detail: detail.into() }
}

pub(super) fn holds(name: &'static str, is_met: bool, detail: impl Into<String>) -> CheckReport {
    check(name, if is_met { Outcome::Pass } else { Outcome::Fail }, detail)
}

pub(super) fn unseen(name: &'static str, why: impl Into<String>) -> CheckReport {
    check(name, Outcome::NotApplicable, why)
}

const NO_RECEIPTS: &str = "no hook `receipts` is configured";

impl Suite<'_> {
    async fn test(&self, number: u8) -> TestReport {
        let name = match number {
            1 => "discovery filtering",
            2 => "deny by default at run time",
            3 => "token passthrough prevention",
            4 => "a token of its own for each server",
            5 => "OAuth proxy: confused deputy",
            6 => "schema validation",
            7 => "sandbox: file system",
            8 => "sandbox: network",
            9 => "receipts",
            _ => "incident kill switch",
        };
        if let Some(why) = self.config.not_applicable.get(&number.to_string()) {
            return TestReport::new(number, name, vec![unseen("declared", why.clone())]);
        }
        let checks = match number {
            1 => self.discovery().await,
            2 => self.deny_by_default().await,
            3 => self.passthrough().await,
            4 => self.own_token().await,
            5 => self.oauth_proxy().await,
            6 => self.schema().await,
            7 => self.sandbox(self.config.files.as_ref(), "files").await,
            8 => self.sandbox(self.config.network.as_ref(), "network").await,
            9 => self.receipts().await,
            _ => self.incident().await,
        };
        TestReport::new(number, name, checks)
    }

    async fn discovery(&self) -> Vec<CheckReport> {
        let (restricted, echo) = (&self.config.tools.restricted, &self.config.tools.echo);
        let seen = |names: &[String]| match names.contains(restricted) {
            true => "among them",
            false => "not among them",
        };
        let mut checks = Vec::new();
        for (caller, without, sees) in [
            (&self.a, "a caller without permission does not see the tool", false),
            (&self.b, "a caller with permission sees the tool", true),
        ] {
            checks.push(match caller.tools().await {
                Ok(names) => holds(
                    without,
                    names.contains(restricted) == sees && names.contains(echo),
                    format!("{} tools listed, `{restricted}` {}", names.len(), seen(&names)),
                ),
                Err(why) => check(without, Outcome::Fail, why),
            });
        }
        checks
    }

    /// Makes a call that must be refused before the server sees it.
    async fn refused(
        &self,
        name: &'static str,
        caller: &SuiteCaller,
        tool: &str,
        arguments: Value,
    ) -> CheckReport {
        let before = self.upstream.calls();
        let answer = caller.call(tool, arguments).await;
        let has_arrived = self.upstream.calls() > before;
        match answer.refusal() {
            Some(why) if !has_arrived => check(name, Outcome::Pass, why),
            Some(why) => {
                check(name, Outcome::Fail, format!("{why}, after the server got the call"))
            }
            None => check(name, Outcome::Fail, "the call was made"),
        }
    }

    async fn allowed(&self, name: &'static str, caller: &SuiteCaller, tool: &str) -> CheckReport {
        let answer = caller.call(tool, json!({"text": "hello"})).await;
        match (&answer, answer.text()) {
            (_, Some("hello")) => check(name, Outcome::Pass, "the server answered"),
            (Answered::Result(_), _) => {
                check(name, Outcome::Fail, "the answer is not the server's")
            }
            _ => check(name, Outcome::Fail, answer.refusal().unwrap_or_default()),
        }
    }

    async fn deny_by_default(&self) -> Vec<CheckReport> {
        let tools = &self.config.tools;
        let unknown = format!("{}-that-does-not-exist", tools.echo);
        let text = || json!({"text": "hello"});
        vec![
            self.allowed("a call that is permitted is made", &self.a, &tools.echo).await,
            self.refused("an unknown tool is denied", &self.a, &unknown, text()).await,
            self.refused(
                "without a permission a call is denied",
                &self.a,
                &tools.restricted,
                text(),
            )
            .await,
            self.allowed("with the permission it is made", &self.b, &tools.restricted).await,
        ]
    }

    async fn passthrough(&self) -> Vec<CheckReport> {
        let echo = &self.config.tools.echo;
        let mut checks = vec![self.allowed("a call is made", &self.b, echo).await];
        let [a, b] = &self.tokens;
        let found = [a, b].into_iter().find_map(|token| self.upstream.with_token(token, 0));
        checks.push(match found {
            None => check(
                "no request to the server has a caller's token",
                Outcome::Pass,
                format!("{} requests looked at", self.upstream.count()),
            ),
            Some(method) => check(
                "no request to the server has a caller's token",
                Outcome::Fail,
                format!("a `{method}` request had it"),
            ),
        });
        let before = self.upstream.count();
        let answer = self.b.call(echo, json!({"text": format!("use {}", b.as_str())})).await;
        let name = "beyond the profile: a token in the arguments is refused or taken out";
        checks.push(match (answer.refusal(), self.upstream.with_token(b, before)) {
            (_, Some(_)) => unseen(name, "the server got it; the profile does not ask for this"),
            (Some(why), None) => check(name, Outcome::Pass, why),
            (None, None) => check(name, Outcome::Pass, "the call was made without it"),
        });
        checks.push(self.receipts_say_no_passthrough().await);
        checks
    }

    async fn receipts_say_no_passthrough(&self) -> CheckReport {
        let name = "receipts say `passthrough_detected = false`";
        let Some(hook) = &self.config.receipts else { return unseen(name, NO_RECEIPTS) };
        match hooks::receipts(hook).await {
            Ok(receipts) => {
                // Receipts of events belong to no request.
                let of_requests: Vec<&Value> = receipts
                    .iter()
                    .filter(|one| one.pointer("/decision/result").is_some())
                    .collect();
                let say = |receipt: &Value| {
                    receipt.pointer("/token_handling/passthrough_detected") == Some(&json!(false))
                };
                let (all, saying) =
                    (of_requests.len(), of_requests.iter().filter(|one| say(one)).count());
                holds(name, saying == all && saying > 0, format!("{saying} of {all} receipts"))
            }
            Err(why) => check(name, Outcome::Fail, why),
        }
    }

    async fn own_token(&self) -> Vec<CheckReport> {
        let name = "the server is shown a token with its audience, or its secret";
        let expected = &self.config.upstream;
        if expected.audience.is_none() && expected.secret.is_none() {
            return vec![unseen(
                name,
                "neither `upstream.audience` nor `upstream.secret` is configured",
            )];
        }
        let before = self.upstream.count();
        let mut checks =
            vec![self.allowed("a call is made", &self.b, &self.config.tools.echo).await];
        let shown = self.upstream.newest("echo").and_then(|call| call.authorization);
        let token = shown.as_deref().map(|shown| shown.rsplit(' ').next().unwrap_or_default());
        let secret = expected.secret.as_ref().and_then(|name| {
            name.read(|variable| std::env::var(variable).ok()).ok().map(Zeroizing::new)
        });
        let is_secret = token.is_some() && secret.as_ref().map(|secret| secret.as_str()) == token;
        let audiences = token.map(audiences_of).unwrap_or_default();
        let is_bound = expected.audience.as_ref().is_some_and(|named| audiences.contains(named));
        let detail = match (&token, is_secret, is_bound) {
            (None, ..) => "the request had no `Authorization`".to_owned(),
            (_, true, _) => "the configured secret".to_owned(),
            (_, _, true) => format!("a token for {}", audiences.join(", ")),
            _ if audiences.is_empty() => {
                "neither the secret nor a token whose audience can be read".to_owned()
            }
            _ => format!("a token for {}", audiences.join(", ")),
        };
        checks.push(holds(name, is_secret || is_bound, detail));
        let [a, b] = &self.tokens;
        let found = [a, b].into_iter().find_map(|token| self.upstream.with_token(token, before));
        checks.push(holds(
            "no caller's token is in any request to the server",
            found.is_none(),
            format!("{} requests looked at", self.upstream.count() - before),
        ));
        checks
    }

    async fn oauth_proxy(&self) -> Vec<CheckReport> {
        let Some(oauth) = &self.config.oauth else {
            return oauth_proxy::not_configured(&self.url).await;
        };
        oauth_proxy::checks(oauth).await
    }

    async fn schema(&self) -> Vec<CheckReport> {
        let echo = &self.config.tools.echo;
        let large = "x".repeat(OVERSIZED_BYTES);
        vec![
            self.allowed("a valid call is made", &self.b, echo).await,
            self.refused(
                "an unknown field is refused",
                &self.b,
                echo,
                json!({"text": "a", "unknown": 1}),
            )
            .await,
            self.refused("an oversized payload is refused", &self.b, echo, json!({"text": large}))
                .await,
            self.refused(
                "an argument of another type is refused",
                &self.b,
                echo,
                json!({"text": {"a": 1}}),
            )
            .await,
            self.refused("a missing argument is refused", &self.b, echo, json!({})).await,
        ]
    }

    async fn sandbox(&self, config: Option<&SandboxConfig>, key: &'static str) -> Vec<CheckReport> {
        let Some(SandboxConfig { tool, inside, outside }) = config else {
            let why =
                format!("no `{key}` is configured: the suite has no tool that runs in a sandbox");
            return vec![unseen("sandbox", why)];
        };
        let answer = self.b.call(tool, Value::Object(inside.clone())).await;
        let mut checks = vec![holds(
            "what is inside the boundary works",
            answer.refusal().is_none(),
            answer.refusal().unwrap_or("it worked"),
        )];
        for arguments in outside {
            let answer = self.b.call(tool, Value::Object(arguments.clone())).await;
            checks.push(holds(
                "what is outside the boundary fails",
                answer.refusal().is_some(),
                answer.refusal().unwrap_or("it worked"),
            ));
        }
        if key == "network" {
            checks.push(
                self.receipts_have("receipts show the blocked attempt", |receipt| {
                    let text = receipt.to_string();
                    text.contains("egress.blocked")
                        || text.contains("egress_blocked")
                        || text.contains("egress_not_allowed")
                })
                .await,
            );
        }
        checks
    }

    /// Polls until a receipt satisfies `has`, or the time is over.
    async fn receipts_have(&self, name: &'static str, has: impl Fn(&Value) -> bool) -> CheckReport {
        let Some(hook) = &self.config.receipts else { return unseen(name, NO_RECEIPTS) };
        let begun = Instant::now();
        loop {
            match hooks::receipts(hook).await {
                Ok(receipts) if receipts.iter().any(&has) => {
                    return check(
                        name,
                        Outcome::Pass,
                        format!("among {} receipts", receipts.len()),
                    );
                }
                Ok(receipts) if begun.elapsed() > RECEIPT_PATIENCE => {
                    return check(
                        name,
                        Outcome::Fail,
                        format!("in none of {} receipts", receipts.len()),
                    );
                }
                Ok(_) => tokio::time::sleep(POLL_INTERVAL).await,
                Err(why) => return check(name, Outcome::Fail, why),
            }
        }
    }

    async fn receipts(&self) -> Vec<CheckReport> {
        if self.config.receipts.is_none() {
            return vec![unseen("receipts", NO_RECEIPTS)];
        }
        let tools = &self.config.tools;
        let _ = self.b.call(&tools.echo, json!({"text": "hello"})).await;
        let _ = self.a.call(&tools.restricted, json!({"text": "hello"})).await;
        let is = |receipt: &Value, result: &str| {
            receipt.pointer("/decision/result").and_then(Value::as_str) == Some(result)
                && receipt.pointer("/mcp/method").and_then(Value::as_str) == Some("tools/call")
        };
        let mut checks = vec![
            self.receipts_have("an allowed call has a receipt", |one| is(one, "allow")).await,
            self.receipts_have("a denied call has a receipt", |one| is(one, "deny")).await,
        ];
        let name = "receipts have the required members";
        let read = match &self.config.receipts {
            Some(hook) => hooks::receipts(hook).await,
            None => Ok(Vec::new()),
        };
        checks.push(match read {
            Ok(receipts) => {
                let calls = receipts.iter().filter(|one| is(one, "allow") || is(one, "deny"));
                let missing = calls.clone().find_map(|receipt| {
                    RECEIPT_MEMBERS.into_iter().find(|member| receipt.pointer(member).is_none())
                });
                match missing {
                    _ if calls.count() == 0 => {
                        check(name, Outcome::Fail, "there is no receipt of a call")
                    }
                    None => {
                        check(name, Outcome::Pass, format!("{} members", RECEIPT_MEMBERS.len()))
                    }
                    Some(member) => {
                        check(name, Outcome::Fail, format!("`{member}` is missing in one"))
                    }
                }
            }
            Err(why) => check(name, Outcome::Fail, why),
        });
        checks.push(self.approval().await);
        checks
    }

    /// Makes a call that a second person approves while it waits.
    async fn approval(&self) -> CheckReport {
        let name = "approvals have approver and time";
        let Some(approval) = &self.config.approval else {
            return unseen(name, "no hook `approval` is configured");
        };
        let call = self.b.call(&approval.tool, json!({"text": "approved by another person"}));
        let (answer, granted) = tokio::join!(call, hooks::run(&approval.grant));
        if let Err(why) = granted {
            return check(name, Outcome::Fail, format!("`approval.grant`: {why}"));
        }
        if let Some(refusal) = answer.refusal() {
            let why = format!("the call was not made after it was approved: {refusal}");
            return check(name, Outcome::Fail, why);
        }
        let has_text = |receipt: &Value, member: &str| {
            let text = receipt.pointer(member).and_then(Value::as_str);
            text.is_some_and(|text| !text.is_empty())
        };
        self.receipts_have(name, |receipt| {
            receipt.pointer("/approval/required") == Some(&Value::Bool(true))
                && has_text(receipt, "/approval/approved_by")
                && has_text(receipt, "/ts")
        })
        .await
    }

    async fn incident(&self) -> Vec<CheckReport> {
        let (Some(incident), Some(critical)) = (&self.config.incident, &self.config.tools.critical)
        else {
            return vec![unseen(
                "incident",
                "no hook `incident`, or no `tools.critical`, is configured",
            )];
        };
        let mut checks = vec![self.allowed("the tool works before", &self.b, critical).await];
        if let Err(why) = hooks::run(&incident.on).await {
            checks.push(check("incident mode is switched on", Outcome::Fail, why));
            return checks;
        }
        let limit = Duration::from_secs(incident.within_seconds);
        checks.push(
            self.becomes_refused("a tool of high risk is denied within the time", critical, limit)
                .await,
        );
        checks.push(
            self.receipts_have("receipts note the incident", |receipt| {
                receipt.pointer("/incident_mode") == Some(&json!(true))
            })
            .await,
        );
        checks.push(match hooks::run(&incident.off).await {
            Ok(_) => self.becomes_allowed("the tool works again afterwards", critical, limit).await,
            Err(why) => check("the tool works again afterwards", Outcome::Fail, why),
        });
        let name = "a caller that was revoked is refused within the time";
        checks.push(match &incident.revoke {
            None => unseen(name, "no hook `incident.revoke` is configured"),
            Some(revoke) => match hooks::run(revoke).await {
                Ok(_) => self.becomes_refused(name, &self.config.tools.echo, limit).await,
                Err(why) => check(name, Outcome::Fail, why),
            },
        });
        checks
    }

    async fn becomes_refused(
        &self,
        name: &'static str,
        tool: &str,
        limit: Duration,
    ) -> CheckReport {
        let begun = Instant::now();
        loop {
            let answer = self.b.call(tool, json!({"text": "hello"})).await;
            match answer.refusal() {
                Some(why) => {
                    return check(
                        name,
                        Outcome::Pass,
                        format!("{why}, after {} ms", begun.elapsed().as_millis()),
                    );
                }
                None if begun.elapsed() > limit => {
                    return check(
                        name,
                        Outcome::Fail,
                        format!("still allowed after {} s", limit.as_secs()),
                    );
                }
                None => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    async fn becomes_allowed(
        &self,
        name: &'static str,
        tool: &str,
        limit: Duration,
    ) -> CheckReport {
        let begun = Instant::now();
        loop {
            let last = self.allowed(name, &self.b, tool).await;
            if last.outcome == Outcome::Pass || begun.elapsed() > limit {
                return last;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// The audiences of a token, as far as it can be decoded.
fn audiences_of(token: &str) -> Vec<String> {
    let payload = token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    let claims: Value =
        payload.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    match claims.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => {
            many.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}
