//! A directory for tests: its settings, its crawl, the serving process, and requests to it.

use crate::bench::{Answer, Bench, answer};
use crate::strangers::{DnsServer, WebServer};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Owners and their keys; one owner has two.
pub(crate) const KEYS: [(&str, &str); 4] =
    [("acme", "key-one"), ("bank", "key-two"), ("corp", "key-three"), ("acme", "key-four")];
/// The server that is crawled.
pub(crate) const SERVER: &str = "com.example/weather";

pub(crate) struct Station {
    pub(crate) bench: Bench,
    pub(crate) web: WebServer,
    pub(crate) dns: DnsServer,
}

impl Station {
    /// A directory that has crawled one server over HTTP.
    pub(crate) fn new(further: &str) -> Station {
        let station = Station {
            bench: Bench::new(),
            web: WebServer::start("Tells the weather."),
            dns: DnsServer::start(),
        };
        let expires = day_after(30);
        let mut text = format!(
            "public_url = \"http://directory.example\"\n[network]\nallow_private = true\n[rates]\nanonymous_per_minute = 10000\nkeyed_per_minute = 10000\n[crawl]\nnpm = \"http://{}\"\n[claims]\nresolvers = [\"{}\"]\n{further}\n",
            station.web.address, station.dns.address
        );
        for (at, (owner, _)) in KEYS.iter().enumerate() {
            text.push_str(&format!(
                "[[key]]\nowner = \"{owner}\"\nsecret = \"env:KEY_{at}\"\nexpires = \"{expires}\"\n"
            ));
        }
        station.bench.file("directory.toml", text);
        let targets = format!("{SERVER} http://{}/mcp\n", station.web.address);
        station.bench.file("servers.txt", targets);
        station.crawl();
        station
    }

    pub(crate) fn crawl(&self) -> Answer {
        let crawl = ["crawl", "--targets", "servers.txt", "--again", "--config", "directory.toml"];
        answer(self.command(&crawl)).exits(0)
    }

    /// The binary with the keys in its environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bench.command(words);
        for (at, (_, key)) in KEYS.iter().enumerate() {
            command.env(format!("KEY_{at}"), key);
        }
        command
    }

    /// `holdpoint directory WORDS…` with the settings of this directory.
    pub(crate) fn operator(&self, words: &[&str]) -> Answer {
        let all = [&["directory"], words, &["--config", "directory.toml"]].concat();
        answer(self.command(&all))
    }

    pub(crate) fn serve(&self) -> Served {
        self.serve_with(&[])
    }

    pub(crate) fn serve_with(&self, further: &[&str]) -> Served {
        let words = ["directory", "--listen", "127.0.0.1:0", "--config", "directory.toml"];
        let mut command = self.command(&[&words, further].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let address = line.strip_prefix("listening on ").unwrap().split(": ").next().unwrap();
        Served { child, address: address.to_owned() }
    }
}

/// The date `days` days from now.
fn day_after(days: u64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let later = (now + Duration::from_secs(days * 86_400)).as_millis() as i64;
    contract::time::Timestamp(later).to_string().chars().take(10).collect()
}

/// The serving process, ended with the test.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response.
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Told {
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Told {
        let body = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{}\n{body}", self.head);
        self
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }
}

impl Served {
    /// Asserts that a response conforms to the directory's own API description.
    #[track_caller]
    pub(crate) fn conforms(&self, schema: &str, told: &Told) {
        let described = self.get("/api/v1/openapi.json", None).is(200).json();
        let mut own = described["components"]["schemas"][schema].clone();
        assert!(own.is_object(), "{schema}");
        own["components"] = described["components"].clone();
        let validator = jsonschema::draft202012::new(&own).unwrap();
        let value = told.json();
        let errors: Vec<String> = validator.iter_errors(&value).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{schema}: {errors:?}\n{value:#}");
    }

    pub(crate) fn get(&self, path: &str, key: Option<&str>) -> Told {
        self.request("GET", path, key, "")
    }

    pub(crate) fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Told {
        self.request("POST", path, key, &body.to_string())
    }

    pub(crate) fn request(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> Told {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(testing::PATIENCE)).unwrap();
        let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: d\r\n{key}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(all[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Told { status, head, body: all[end + 4..].to_vec() }
    }
}
