//! `http_echo [TOOLS] [--stdio]`: an MCP server over streamable HTTP that answers each call with a
//! text whose length is given by the call's `query`. Prints its address. With `--stdio`, serves its
//! standard streams instead.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use bytes::Bytes;
use holdpoint_bench::server::{CHANGE, COUNT, pages_of, string_after, value_after};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;

const HELLO: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"echo","version":"1"}}"#;

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("http_echo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    let tools = std::env::args().nth(1).map_or(Ok(10), |word| word.parse());
    let tools = tools.map_err(io::Error::other)?;
    let server = Arc::new(HttpEcho {
        tools,
        pages: Mutex::new(pages_of(tools, 0)),
        edition: AtomicU64::new(0),
        calls: AtomicU64::new(0),
        texts: Mutex::default(),
    });
    if std::env::args().any(|word| word == "--stdio") {
        return server.serve_streams();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let server = server.clone();
            let service = service_fn(move |request| {
                let server = server.clone();
                async move { Ok::<_, Infallible>(server.respond(request).await) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

struct HttpEcho {
    tools: usize,
    pages: Mutex<Vec<String>>,
    edition: AtomicU64,
    calls: AtomicU64,
    /// Texts by length, so that generating one is not part of a call's time.
    texts: Mutex<HashMap<usize, Arc<str>>>,
}

impl HttpEcho {
    /// Answers lines until the input ends.
    fn serve_streams(&self) -> io::Result<()> {
        let mut output = io::stdout().lock();
        for line in io::stdin().lock().lines() {
            let line = line?;
            if let Some(id) = value_after(line.as_bytes(), b"\"id\":") {
                let mut answer = self.answer(id, line.as_bytes());
                answer.push(b'\n');
                output.write_all(&answer)?;
                output.flush()?;
            }
        }
        Ok(())
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.method() != Method::POST {
            return empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let Ok(body) = request.into_body().collect().await else {
            return empty(StatusCode::BAD_REQUEST);
        };
        let body = body.to_bytes();
        match value_after(&body, b"\"id\":") {
            Some(id) => {
                let mut response = Response::new(Full::new(self.answer(id, &body).into()));
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, json);
                response
            }
            None => empty(StatusCode::ACCEPTED),
        }
    }

    fn answer(&self, id: &[u8], body: &[u8]) -> Vec<u8> {
        let number = |name: &[u8]| -> Option<usize> {
            std::str::from_utf8(string_after(body, name)?).ok()?.parse().ok()
        };
        match string_after(body, b"\"method\":\"") {
            Some(b"tools/call") => {
                self.calls.fetch_add(1, Ordering::Relaxed);
                let text = self.text(number(b"\"query\":\"").unwrap_or_default());
                let parts: [&[u8]; 3] =
                    [br#"{"content":[{"type":"text","text":""#, text.as_bytes(), b"\"}]}"];
                result(id, &parts)
            }
            Some(b"tools/list") => {
                let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
                let page = pages.get(number(b"\"cursor\":\"").unwrap_or_default());
                result(id, &[page.map_or("{}", String::as_str).as_bytes()])
            }
            // Change without announcing it.
            Some(method) if method == CHANGE.as_bytes() => {
                let edition = self.edition.fetch_add(1, Ordering::Relaxed) + 1;
                let pages = pages_of(self.tools, edition);
                *self.pages.lock().unwrap_or_else(PoisonError::into_inner) = pages;
                result(id, &[edition.to_string().as_bytes()])
            }
            Some(method) if method == COUNT.as_bytes() => {
                result(id, &[self.calls.load(Ordering::Relaxed).to_string().as_bytes()])
            }
            Some(b"initialize") => result(id, &[HELLO.as_bytes()]),
            _ => [
                br#"{"jsonrpc":"2.0","id":"#,
                id,
                br#","error":{"code":-32601,"message":"no such method"}}"#,
            ]
            .concat(),
        }
    }

    fn text(&self, bytes: usize) -> Arc<str> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || "words and words ".chars().cycle().take(bytes).collect::<String>().into();
        texts.entry(bytes).or_insert_with(made).clone()
    }
}

fn result(id: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut message = Vec::with_capacity(length + id.len() + 40);
    message.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    message.extend_from_slice(id);
    message.extend_from_slice(br#","result":"#);
    parts.iter().for_each(|part| message.extend_from_slice(part));
    message.push(b'}');
    message
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
