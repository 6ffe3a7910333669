//! The directory's counterparts: a server with its claims file and its packages' manifests, and a
//! resolver.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Files by path, and the description of the server's only tool.
#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) files: HashMap<String, String>,
    pub(crate) description: String,
}

/// An MCP server over HTTP at `/mcp`, with files at every other path.
pub(crate) struct WebServer {
    pub(crate) address: SocketAddr,
    shelf: Arc<Mutex<Shelf>>,
}

impl WebServer {
    pub(crate) fn start(description: &str) -> WebServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shelf = Shelf { description: description.to_owned(), ..Shelf::default() };
        let shelf = Arc::new(Mutex::new(shelf));
        let own = shelf.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shelf = own.clone();
                std::thread::spawn(move || serve(stream, &shelf));
            }
        });
        WebServer { address, shelf }
    }

    pub(crate) fn put(&self, path: &str, body: &Value) {
        self.shelf.lock().unwrap().files.insert(path.to_owned(), body.to_string());
    }

    pub(crate) fn remove(&self, path: &str) {
        self.shelf.lock().unwrap().files.remove(path);
    }

    pub(crate) fn describe(&self, description: &str) {
        self.shelf.lock().unwrap().description = description.to_owned();
    }
}

/// Handles one request, and closes the connection.
fn serve(mut stream: TcpStream, shelf: &Mutex<Shelf>) {
    let Some((line, body)) = request(&mut stream) else { return };
    let path = line.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match path {
        "/mcp" if line.starts_with("POST") => call(&body, shelf),
        "/mcp" => ("405 Method Not Allowed", String::new()),
        path => match shelf.lock().unwrap().files.get(path) {
            Some(file) => ("200 OK", file.clone()),
            None => ("404 Not Found", String::new()),
        },
    };
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}

fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        (stream.read(&mut byte).ok()? == 1).then_some(())?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some((head.lines().next()?.to_owned(), body))
}

fn call(body: &[u8], shelf: &Mutex<Shelf>) -> (&'static str, String) {
    let asked: Value = serde_json::from_slice(body).unwrap();
    let id = asked["id"].clone();
    if id.is_null() {
        return ("202 Accepted", String::new());
    }
    let result = match asked["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "weather", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{
            "name": "forecast",
            "description": shelf.lock().unwrap().description,
            "inputSchema": { "type": "object" },
        }] }),
        _ => {
            let error = json!({ "code": -32601, "message": "no such method" });
            return ("200 OK", json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string());
        }
    };
    ("200 OK", json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string())
}

/// A resolver with the TXT records of a few names.
pub(crate) struct DnsServer {
    pub(crate) address: SocketAddr,
    texts: Arc<Mutex<HashMap<String, String>>>,
}

impl DnsServer {
    pub(crate) fn start() -> DnsServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let texts: Arc<Mutex<HashMap<String, String>>> = Arc::default();
        let own = texts.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = resolve(&mut stream, &own);
            }
        });
        DnsServer { address, texts }
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        self.texts.lock().unwrap().insert(name.to_owned(), text.to_owned());
    }

    pub(crate) fn clear(&self) {
        self.texts.lock().unwrap().clear();
    }
}

fn resolve(stream: &mut TcpStream, texts: &Mutex<HashMap<String, String>>) -> std::io::Result<()> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut question)?;
    let (mut labels, mut at) = (Vec::new(), 12);
    while question[at] != 0 {
        let end = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8(question[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    let text = texts.lock().unwrap().get(&labels.join(".")).cloned();
    let mut answer = question.clone();
    answer[2..4].copy_from_slice(&if text.is_some() { 0x8180_u16 } else { 0x8183 }.to_be_bytes());
    if let Some(text) = text {
        answer[6..8].copy_from_slice(&1_u16.to_be_bytes());
        let parts: Vec<u8> = text
            .as_bytes()
            .chunks(100)
            .flat_map(|part| std::iter::once(part.len() as u8).chain(part.iter().copied()))
            .collect();
        answer.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60]);
        answer.extend((parts.len() as u16).to_be_bytes());
        answer.extend(parts);
    }
    stream.write_all(&(answer.len() as u16).to_be_bytes())?;
    stream.write_all(&answer)
}
