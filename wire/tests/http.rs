//! Observing servers over streamable HTTP, on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what the tests share may fail loudly too"
)]

#[path = "support/http_server.rs"]
#[allow(unreachable_pub, reason = "a module of a test has no users outside")]
mod http_server;

use contract::client::ClientCapabilities;
use contract::surface::ListKind;
use http_server::{HttpServer, Seen, events, json, respond};
use std::sync::Arc;
use std::time::Duration;
use wire::{
    Awaited, Era, HttpEndpoint, ListOutcome, ObserveError, ObserveLimits, Observed, Revision,
    Upstream, observe, observe_as,
};

const TOOLS: &str = r#"{"tools":[ {"name":"a"} ]}"#;

fn limits() -> ObserveLimits {
    ObserveLimits { frame_bytes: 10_000, ..ObserveLimits::default() }
}

fn endpoint(url: &str) -> HttpEndpoint {
    HttpEndpoint {
        url: url.parse().unwrap(),
        headers: Vec::new(),
        allow_private: false,
        authorizer: None,
    }
}

async fn run(url: &str) -> Result<Observed, ObserveError> {
    observe(&Upstream::Http(endpoint(url)), &limits(), &|_| {}).await
}

/// The response to this request, as text.
fn result(request: &Seen, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request.body["id"])
}

fn error(id: &str, code: i64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"}}}}"#)
}

const INITIALIZED: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}"#;
const DISCOVERED: &str =
    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#;

/// A server of the older era, with the given refusal of the modern handshake and the given list.
fn older(
    refusal: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static,
    list: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static,
) -> impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static {
    move |request| match (request.method.as_str(), request.rpc_method()) {
        ("DELETE", _) => respond("200 OK", "", ""),
        (_, "initialize") => {
            let headers = "content-type: application/json\r\nMcp-Session-Id: s-1\r\n";
            respond("200 OK", headers, &result(request, INITIALIZED))
        }
        (_, "tools/list") => list(request),
        (_, "server/discover") => refusal(request),
        _ => respond("202 Accepted", "", ""),
    }
}

fn not_initialized(_: &Seen) -> Vec<u8> {
    let body = error("null", -32000);
    respond("400 Bad Request", "content-type: application/json\r\n", &body)
}

/// The outcome of the tools list if it is answered like this.
async fn listed(list: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static) -> ListOutcome {
    let server = HttpServer::start(older(not_initialized, list)).await;
    run(&server.url()).await.unwrap().lists[0].1.clone()
}

fn unreadable(outcome: ListOutcome) -> String {
    match outcome {
        ListOutcome::Unreadable(reason) => reason,
        other => panic!("expected an unreadable list, got {other:?}"),
    }
}

fn tools_page() -> ListOutcome {
    ListOutcome::Pages(Arc::new(vec![TOOLS.into()]))
}

#[tokio::test]
async fn a_server_with_sessions_is_observed_and_its_session_ended() {
    let list = |request: &Seen| json(&result(request, TOOLS));
    let server = HttpServer::start(older(not_initialized, list)).await;
    let observed = run(&server.url()).await.unwrap();
    assert_eq!(observed.era, Era::Initialize { protocol_version: Revision::June2025 });
    assert_eq!(observed.handshake, INITIALIZED);
    assert_eq!(observed.lists[0], (ListKind::Tools, tools_page()));
    assert_eq!(observed.notes, Vec::<String>::new());
    let seen = server.seen();
    let steps: Vec<_> = seen.iter().map(|s| (s.method.as_str(), s.rpc_method())).collect();
    assert_eq!(
        steps,
        [
            ("POST", "server/discover"),
            ("POST", "initialize"),
            ("POST", "notifications/initialized"),
            ("POST", "tools/list"),
            ("DELETE", "")
        ]
    );
    assert_eq!(seen[1].header("mcp-protocol-version"), None);
    assert_eq!(seen[1].header("mcp-session-id"), None);
    for request in &seen[2..] {
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-06-18"));
        assert_eq!(request.header("mcp-session-id"), Some("s-1"));
        assert_eq!(request.header("mcp-method"), None);
        assert_eq!(request.path, "/mcp?key=1");
    }
    let accept = Some("application/json, text/event-stream");
    assert!(seen.iter().all(|request| request.header("accept") == accept));
}

#[tokio::test]
async fn a_server_of_the_stateless_era_gets_its_headers_and_no_session() {
    let server = HttpServer::start(|request| match request.rpc_method() {
        "server/discover" => json(&result(request, DISCOVERED)),
        "tools/list" => json(&result(request, TOOLS)),
        _ => respond("405 Method Not Allowed", "", ""),
    })
    .await;
    let observed = run(&server.url()).await.unwrap();
    assert_eq!(observed.era, Era::Stateless { protocol_version: Revision::July2026 });
    assert_eq!(observed.handshake, DISCOVERED);
    assert_eq!(observed.lists[0].1, tools_page());
    let seen = server.seen();
    assert_eq!(seen.len(), 2, "no initialize, no notification, no DELETE");
    for request in &seen {
        assert_eq!(request.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(request.header("mcp-method"), Some(request.rpc_method()));
        let meta = &request.body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    }
}

#[tokio::test]
async fn every_way_of_not_knowing_the_modern_era_leads_to_the_older_one() {
    let refusals: [fn(&Seen) -> Vec<u8>; 7] = [
        |_| respond("404 Not Found", "content-type: text/html\r\n", "<p>no</p>"),
        |_| respond("405 Method Not Allowed", "", ""),
        |_| respond("500 Internal Server Error", "", "oops"),
        |request| json(&error(&request.body["id"].to_string(), -32601)),
        |request| json(&error(&request.body["id"].to_string(), -32602)),
        |request| json(&result(request, r#"{"supportedVersions":["2027-01-01"]}"#)),
        |_| respond("200 OK", "content-type: text/plain\r\n", "hello"),
    ];
    for refusal in refusals {
        let list = |request: &Seen| json(&result(request, TOOLS));
        let server = HttpServer::start(older(refusal, list)).await;
        assert_eq!(run(&server.url()).await.unwrap().lists[0].1, tools_page());
    }
}

#[tokio::test]
async fn a_modern_server_that_refuses_our_revision_is_quoted_rather_than_its_refusal_of_the_older_era()
 {
    let server = HttpServer::start(|request| match request.rpc_method() {
        "server/discover" => respond(
            "400 Bad Request",
            "content-type: application/json\r\n",
            &error(&request.body["id"].to_string(), -32022),
        ),
        _ => respond("400 Bad Request", "", ""),
    })
    .await;
    let error = run(&server.url()).await.unwrap_err();
    assert!(matches!(error, ObserveError::Refused { code: -32022, .. }), "{error}");
}

#[tokio::test]
async fn answers_come_as_events_among_others() {
    let server = HttpServer::start(older(not_initialized, |request| {
        let answer = result(request, TOOLS);
        events(&format!(
            "\u{feff}: hello\r\nid: 1\r\ndata:\r\n\r\n\
             event: message\r\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}}\r\n\r\n\
             data: {{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}}\n\n\
             data: {{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{{\"tools\":[\"forged\"]}}}}\n\n\
             data: {answer}\n\ndata: never read\n\n"
        ))
    }))
    .await;
    let observed = run(&server.url()).await.unwrap();
    assert_eq!(observed.lists[0].1, tools_page());
    assert_eq!(observed.notes.len(), 1, "{:?}", observed.notes);
    let reply = server.seen().into_iter().find(|seen| seen.body["id"] == 9).unwrap();
    assert_eq!(reply.body["result"], serde_json::json!({}));
    assert_eq!(reply.header("mcp-session-id"), Some("s-1"));
}

#[tokio::test]
async fn a_stream_that_ends_early_makes_the_list_unreadable() {
    let reason = unreadable(listed(|_| events(": nothing\n\n")).await);
    assert_eq!(reason, "the event stream ended before the answer");
}

#[tokio::test]
async fn bodies_and_events_are_read_at_the_limit_and_not_one_past_it() {
    /// A response of exactly this many bytes.
    fn sized(request: &Seen, bytes: usize) -> String {
        let empty = result(request, r#"{"tools":[],"x":""}"#);
        let filling = "x".repeat(bytes - empty.len());
        result(request, &format!(r#"{{"tools":[],"x":"{filling}"}}"#))
    }
    let limit = limits().frame_bytes;
    let chunked = |body: &str| {
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes()
    };
    let at = [
        listed(move |request| json(&sized(request, limit))).await,
        listed(move |request| chunked(&sized(request, limit))).await,
        listed(move |request| events(&format!("data: {}\n\n", sized(request, limit)))).await,
    ];
    for outcome in at {
        assert!(matches!(outcome, ListOutcome::Pages(_)), "{outcome:?}");
    }
    let past = [
        listed(move |request| json(&sized(request, limit + 1))).await,
        listed(move |request| chunked(&sized(request, limit + 1))).await,
        listed(move |request| events(&format!("data: {}\n\n", sized(request, limit + 1)))).await,
    ];
    for outcome in past {
        assert_eq!(unreadable(outcome), format!("a message longer than {limit} bytes"));
    }
}

#[tokio::test]
async fn lists_that_read_two_ways_or_are_no_answer_are_unreadable() {
    let twice = listed(|request| json(&result(request, r#"{"tools":[],"tools":[]}"#))).await;
    assert!(unreadable(twice).contains("appears twice"));
    let other = listed(|_| json(r#"{"jsonrpc":"2.0","id":"other","result":{"tools":[]}}"#)).await;
    assert!(unreadable(other).contains("not the answer"));
    let refused = listed(|_| respond("503 Service Unavailable", "", "busy")).await;
    assert_eq!(unreadable(refused), "answered with status 503 Service Unavailable");
    let packed = listed(|request| {
        let headers = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
        respond("200 OK", headers, &result(request, TOOLS))
    });
    assert!(unreadable(packed.await).contains("content encoding"));
    let missing = listed(|request| json(&error(&request.body["id"].to_string(), -32601))).await;
    assert_eq!(missing, ListOutcome::NotOffered);
}

#[tokio::test]
async fn a_redirect_is_refused_and_its_target_not_reached() {
    let target = HttpServer::start(|_| json("{}")).await;
    let location = format!("location: http://{}/secret?token=1\r\n", target.address);
    let server = HttpServer::start(move |_| respond("307 Temporary Redirect", &location, "")).await;
    let said = run(&server.url()).await.unwrap_err().to_string();
    assert!(said.contains(&format!("`http://{}`", target.address)), "{said}");
    assert!(!said.contains("token"), "{said}");
    assert!(target.seen().is_empty());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_server_that_wants_a_sign_in_is_said_to() {
    let challenge = "www-authenticate: Bearer resource_metadata=\"https://example.com/\"\r\n";
    let server = HttpServer::start(move |_| respond("401 Unauthorized", challenge, "")).await;
    let error = run(&server.url()).await.unwrap_err();
    assert!(matches!(error, ObserveError::NeedsSignIn { challenged: true }));
    assert!(error.to_string().contains("sign-in (status 401 with WWW-Authenticate)"), "{error}");
    let server = HttpServer::start(|_| respond("401 Unauthorized", "", "")).await;
    let error = run(&server.url()).await.unwrap_err();
    assert!(matches!(error, ObserveError::NeedsSignIn { challenged: false }));
}

#[tokio::test]
async fn a_server_of_the_oldest_transport_is_met_with_a_hint() {
    let server = HttpServer::start(|_| respond("405 Method Not Allowed", "", "")).await;
    let said = run(&server.url()).await.unwrap_err().to_string();
    assert!(said.contains("status 405") && said.contains("HTTP+SSE"), "{said}");
    let server = HttpServer::start(|_| respond("500 Internal Server Error", "", "")).await;
    let said = run(&server.url()).await.unwrap_err().to_string();
    assert!(said.contains("status 500") && !said.contains("HTTP+SSE"), "{said}");
}

#[tokio::test]
async fn private_addresses_are_refused_before_anything_is_sent() {
    let error = run("https://10.0.0.1/mcp").await.unwrap_err();
    assert!(matches!(error, ObserveError::PrivateAddressRefused { .. }), "{error}");
    let error = run("https://[::ffff:169.254.169.254]/mcp").await.unwrap_err();
    assert!(error.to_string().contains("metadata"), "{error}");
    let allowed = HttpEndpoint { allow_private: true, ..endpoint("http://10.0.0.1/mcp") };
    let error = observe(&Upstream::Http(allowed), &limits(), &|_| {}).await.unwrap_err();
    assert!(matches!(error, ObserveError::PlainHttp { .. }), "{error}");
}

#[tokio::test]
async fn loopback_is_reached_by_name_and_over_ipv6() {
    let answer = || older(not_initialized, |request| json(&result(request, TOOLS)));
    let server = HttpServer::start(answer()).await;
    let url = format!("http://localhost:{}/mcp", server.address.port());
    assert_eq!(run(&url).await.unwrap().lists[0].1, tools_page());
    let server = HttpServer::start_at("[::1]:0", answer()).await;
    assert_eq!(run(&server.url()).await.unwrap().lists[0].1, tools_page());
    assert_eq!(server.seen()[0].header("host"), Some(server.address.to_string().as_str()));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_with_what_was_waited_for() {
    let server = HttpServer::start(|_| Vec::new()).await;
    let limits = ObserveLimits { start_timeout: Duration::from_secs(1), ..limits() };
    let upstream = Upstream::Http(endpoint(&server.url()));
    let error = observe(&upstream, &limits, &|_| {}).await.unwrap_err();
    assert!(
        matches!(error, ObserveError::TimedOut { awaited: Awaited::Initialize, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_opened_again() {
    let closing = "content-type: application/json\r\nconnection: close\r\n";
    let server = HttpServer::start(move |request| match request.rpc_method() {
        "server/discover" => respond("200 OK", closing, &result(request, DISCOVERED)),
        _ => json(&result(request, TOOLS)),
    })
    .await;
    assert_eq!(run(&server.url()).await.unwrap().lists[0].1, tools_page());
}

#[tokio::test]
async fn a_connection_that_closes_without_an_answer_is_said_to_be_lost() {
    let cut = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 10\r\n\r\nshort";
    let server = HttpServer::start(|_| cut.to_vec()).await;
    let error = run(&server.url()).await.unwrap_err();
    assert!(matches!(error, ObserveError::ConnectionLost { .. }), "{error}");
}

#[tokio::test]
async fn headers_are_read_up_to_the_limits() {
    let observed = async |headers: String| {
        let list = move |request: &Seen| {
            let headers = format!("content-type: application/json\r\n{headers}");
            respond("200 OK", &headers, &result(request, TOOLS))
        };
        let server = HttpServer::start(older(not_initialized, list)).await;
        run(&server.url()).await.map(|observed| observed.lists[0].1.clone())
    };
    // The content type and the length add two.
    let many = |count: usize| (2..count).map(|number| format!("x-{number}: 1\r\n")).collect();
    assert_eq!(observed(many(100)).await.unwrap(), tools_page());
    assert!(matches!(observed(many(101)).await, Err(ObserveError::ConnectionLost { .. })));
    let long = |bytes: usize| format!("x: {}\r\n", "x".repeat(bytes));
    assert_eq!(observed(long(60 * 1024)).await.unwrap(), tools_page());
    // The block is measured between reads, so it may exceed the limit by up to one read.
    assert!(matches!(observed(long(192 * 1024)).await, Err(ObserveError::ConnectionLost { .. })));
}

#[tokio::test]
async fn given_headers_are_sent_and_those_of_the_protocol_are_refused() {
    let server =
        HttpServer::start(older(not_initialized, |request| json(&result(request, TOOLS)))).await;
    let with = |name: &'static str| HttpEndpoint {
        headers: vec![(name.parse().unwrap(), "Bearer hidden".parse().unwrap())],
        ..endpoint(&server.url())
    };
    let given = with("authorization");
    assert!(!format!("{given:?}").contains("hidden"));
    observe(&Upstream::Http(given), &limits(), &|_| {}).await.unwrap();
    let seen = server.seen();
    assert!(seen.iter().all(|request| request.header("authorization") == Some("Bearer hidden")));
    for name in ["host", "Mcp-Session-Id", "transfer-encoding"] {
        let refused = observe(&Upstream::Http(with(name)), &limits(), &|_| {}).await;
        assert!(matches!(refused, Err(ObserveError::HeaderNotAllowed { .. })), "{name}");
    }
    assert_eq!(server.seen().len(), seen.len());
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = run(&format!("http://{address}/mcp")).await.unwrap_err();
    assert!(matches!(error, ObserveError::CannotConnect { .. }), "{error}");
}

#[tokio::test]
async fn what_a_client_can_do_goes_with_every_request_of_the_stateless_era() {
    let server = HttpServer::start(|request: &Seen| match request.rpc_method() {
        "server/discover" => json(&result(request, DISCOVERED)),
        _ => json(&result(request, TOOLS)),
    })
    .await;
    let client = ClientCapabilities::read(br#"{"roots":{}}"#).unwrap();
    let upstream = Upstream::Http(endpoint(&server.url()));
    observe_as(&client, &upstream, &limits(), &|_| {}).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    for request in &seen {
        let said = &request.body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(said.to_string(), r#"{"roots":{}}"#, "{}", request.body);
    }
}
