//! The server behind the gateway under test: it offers three tools that do nothing, and records the
//! requests that arrive.

use bytes::Bytes;
use engine::credentials::Needles;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;

/// The longest message that is accepted, and the most requests that are recorded.
const MAX_BODY: usize = 64 * 1024 * 1024;
const MAX_ARRIVED: usize = 10_000;

/// A request that arrived.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) method: String,
    pub(super) tool: Option<String>,
    pub(super) authorization: Option<String>,
    /// The request line, the headers and the body, to search for tokens.
    raw: Arc<Vec<u8>>,
}

/// The server.
#[derive(Debug, Clone)]
pub(super) struct Upstream {
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Upstream {
    pub(super) async fn listen(address: SocketAddr) -> std::io::Result<Upstream> {
        let listener = TcpListener::bind(address).await?;
        let upstream = Upstream { arrived: Arc::default() };
        let own = upstream.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let own = own.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let own = own.clone();
                        async move { Ok::<_, Infallible>(own.respond(request).await) }
                    });
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(upstream)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arrived>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of tool calls that arrived.
    pub(super) fn calls(&self) -> usize {
        self.lock().iter().filter(|one| one.method == "tools/call").count()
    }

    /// The newest call of a tool.
    pub(super) fn newest(&self, tool: &str) -> Option<Arrived> {
        self.lock().iter().rev().find(|one| one.tool.as_deref() == Some(tool)).cloned()
    }

    pub(super) fn count(&self) -> usize {
        self.lock().len()
    }

    /// The method of a recorded request that contained the token in any encoding, after skipping
    /// the first `behind` requests.
    pub(super) fn with_token(&self, token: &str, behind: usize) -> Option<String> {
        let needles = Needles::of(token.as_bytes());
        let arrived = self.lock();
        arrived
            .iter()
            .skip(behind)
            .find(|one| needles.occur_in(&one.raw))
            .map(|one| one.method.clone())
    }

    async fn respond(&self, request: http::Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let mut raw = format!("{} {}\n", parts.method, parts.uri).into_bytes();
        for (name, value) in &parts.headers {
            raw.extend_from_slice(name.as_str().as_bytes());
            raw.extend_from_slice(b": ");
            raw.extend_from_slice(value.as_bytes());
            raw.push(b'\n');
        }
        raw.extend_from_slice(&body);
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let text = |pointer: &str| message.pointer(pointer)?.as_str().map(str::to_owned);
        let method = text("/method").unwrap_or_else(|| parts.method.to_string());
        let tool = text("/params/name").filter(|_| method == "tools/call");
        let authorization = parts.headers.get(http::header::AUTHORIZATION);
        let authorization = authorization.and_then(|value| value.to_str().ok()).map(str::to_owned);
        {
            let mut arrived = self.lock();
            if arrived.len() < MAX_ARRIVED {
                let raw = Arc::new(raw);
                arrived.push(Arrived { method: method.clone(), tool, authorization, raw });
            }
        }
        if parts.method != http::Method::POST {
            return answer(StatusCode::METHOD_NOT_ALLOWED, String::new());
        }
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else {
            return answer(StatusCode::ACCEPTED, String::new());
        };
        let outcome = result(&method, message.get("params").unwrap_or(&Value::Null));
        let outcome = match outcome {
            Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => {
                let error = json!({"code": -32601, "message": "no such method"});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        answer(StatusCode::OK, outcome.to_string())
    }
}

fn answer(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

fn result(method: &str, params: &Value) -> Option<Value> {
    let tool = |name: &str, description: &str| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": false,
            },
        })
    };
    match method {
        "initialize" => {
            let version = params["protocolVersion"].as_str().unwrap_or("2025-06-18");
            Some(json!({
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "csp-suite", "version": "1"},
            }))
        }
        "ping" => Some(json!({})),
        "tools/list" => Some(json!({"tools": [
            tool("echo", "Returns the text."),
            tool("restricted", "Returns the text, to some callers."),
            tool("critical", "Returns the text, unless there is an incident."),
            tool("approved", "Returns the text, once another person has approved the call."),
        ]})),
        "tools/call" => {
            let text =
                params.pointer("/arguments/text").and_then(Value::as_str).unwrap_or_default();
            Some(json!({"content": [{"type": "text", "text": text}]}))
        }
        _ => None,
    }
}
