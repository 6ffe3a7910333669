//! Measures the directory's API: its rendered responses, and the same bytes from a static hyper
//! server, in turn.
//!
//! Prints each figure with its bound, and exits with 1 if one exceeds it. `directory --static FILE`
//! is the static server.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement prints")]

use bytes::Bytes;
use holdpoint_bench::figures::{Figures, exit_code};
use holdpoint_bench::programs::Programs;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The number of runs of each server, in turn.
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(3);
const CONNECTIONS: usize = 32;
const PATH: &str = "/api/v1/trust/tool/com.example%2Fecho/tool_0";

type Measured<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [option, file] if option == "--static" => match serve_static(file) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("directory: {error}");
                ExitCode::FAILURE
            }
        },
        _ => exit_code(measure()),
    }
}

/// A process that is ended with the measurement, and the address that it printed.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start(mut command: Command) -> Measured<Served> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        let line = lines.and_then(|mut lines| lines.next()).ok_or("it printed no address")??;
        let line = line.strip_prefix("listening on ").unwrap_or(&line);
        let address = line.split(": ").next().unwrap_or(line);
        let address = address.strip_prefix("http://").unwrap_or(address).to_owned();
        Ok(Served { child, address })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn measure() -> Measured<Figures> {
    let programs = Programs::find()?;
    let home = tempfile::tempdir()?;
    let directory = directory(&programs, home.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let answer = runtime.block_on(Connection::open(&directory.address))?.1;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or("no answer")?;
    let body = answer.get(end + 4..).unwrap_or_default();
    if !body.starts_with(b"{\"subject\"") || !answer.starts_with(b"HTTP/1.1 200") {
        return Err(String::from_utf8_lossy(&answer).into_owned().into());
    }
    let file = home.path().join("answer.json");
    std::fs::write(&file, body)?;
    let mut plain = Command::new(std::env::current_exe()?);
    plain.arg("--static").arg(&file);
    let plain = Served::start(plain)?;
    let (mut throughputs, mut slowest) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let ours = runtime.block_on(load(&directory.address))?;
        let theirs = runtime.block_on(load(&plain.address))?;
        println!(
            "run {round}: directory {:.0}/s, p99 {:?}; static {:.0}/s, p99 {:?}",
            ours.per_second, ours.p99, theirs.per_second, theirs.p99
        );
        throughputs.push(ours.per_second / theirs.per_second);
        slowest.push(ours.p99.as_secs_f64() / theirs.p99.as_secs_f64().max(1e-9));
    }
    let mut figures = Figures::default();
    figures.tell_at_least("rendered answers, of a static server's", median(throughputs), 0.5);
    figures.tell("their p99, times a static server's", median(slowest), 3.0);
    Ok(figures)
}

/// A directory that has crawled one server.
fn directory(programs: &Programs, home: &std::path::Path) -> Measured<Served> {
    let echo = programs.echo.with_file_name("http_echo");
    let mut command = Command::new(echo.with_extension(std::env::consts::EXE_EXTENSION));
    command.arg("20");
    let echo = Served::start(command)?;
    std::fs::write(
        home.join("servers.txt"),
        format!("com.example/echo http://{}\n", echo.address),
    )?;
    let settings = "[network]\nallow_private = true\n[rates]\nanonymous_per_minute = 100000000\n";
    std::fs::write(home.join("directory.toml"), settings)?;
    let mut crawl = programs.holdpoint(home);
    let targets = home.join("servers.txt");
    crawl.args(["crawl", "--quiet", "--targets"]).arg(targets).stdout(Stdio::null());
    let crawled = crawl.status()?;
    if !crawled.success() {
        return Err("the crawl failed".into());
    }
    let mut serve = programs.holdpoint(home);
    serve.args(["directory", "--reader", "--listen", "127.0.0.1:0"]);
    Served::start(serve)
}

fn serve_static(file: &str) -> std::io::Result<()> {
    let body = Bytes::from(std::fs::read(file)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let body = body.clone();
            let service = service_fn(move |_: Request<Incoming>| {
                let mut answer = Response::new(Full::new(body.clone()));
                let media_type = HeaderValue::from_static("application/json");
                answer.headers_mut().insert(CONTENT_TYPE, media_type);
                async move { Ok::<_, Infallible>(answer) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    })
}

/// An open connection, and a buffer for responses, which all have the same length.
struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Connection {
    /// Opens a connection and sends one request.
    async fn open(address: &str) -> Measured<(Connection, Vec<u8>)> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut connection = Connection { stream, answer: Vec::new() };
        connection.ask().await?;
        let mut all = vec![0; 64 * 1024];
        let mut read = 0;
        loop {
            let room = all.get_mut(read..).ok_or("the answer is too long")?;
            let more = connection.stream.read(room).await?;
            read += more;
            let so_far = all.get(..read).unwrap_or_default();
            if more == 0 || is_whole(so_far) {
                all.truncate(read);
                connection.answer = vec![0; read];
                return Ok((connection, all));
            }
        }
    }

    async fn ask(&mut self) -> std::io::Result<()> {
        let question = format!("GET {PATH} HTTP/1.1\r\nhost: directory.example\r\n\r\n");
        self.stream.write_all(question.as_bytes()).await
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    length.is_some_and(|length| body.len() >= length)
}

struct Load {
    per_second: f64,
    p99: Duration,
}

/// Sends requests over all connections at once for some time.
async fn load(address: &str) -> Measured<Load> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(address).await?.0);
    }
    let begun = Instant::now();
    let tasks: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            tokio::spawn(async move {
                let mut times = Vec::new();
                while begun.elapsed() < ROUND {
                    let asked = Instant::now();
                    connection.ask().await?;
                    connection.stream.read_exact(&mut connection.answer).await?;
                    times.push(asked.elapsed());
                }
                std::io::Result::Ok(times)
            })
        })
        .collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    let per_second = times.len() as f64 / begun.elapsed().as_secs_f64();
    times.sort_unstable();
    let p99 = times.get(times.len() * 99 / 100).copied().ok_or("no answer came")?;
    Ok(Load { per_second, p99 })
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or_default()
}
