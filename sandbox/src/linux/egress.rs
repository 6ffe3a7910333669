//! The proxy outside of the sandbox: it receives the program's connections, decides on each one,
//! resolves the name itself, and relays the data. One thread serves all sandboxes of this process.

use super::blocked_attempts::BlockedAttempts;
use super::control::{self, Report};
use super::sys;
use crate::confine::{Embedder, State};
use crate::event::{BlockReason, Event};
use crate::hello::{self, Hello, MAX_HELLO_BYTES};
use crate::host_rule::{HostRule, Reach};
use rustix::fd::OwnedFd;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval for reporting blocked attempts that were delayed.
const TICK: Duration = Duration::from_millis(250);
/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// The thread that all proxies of this process share.
fn thread() -> io::Result<Handle> {
    static THREAD: OnceLock<Result<Handle, String>> = OnceLock::new();
    let started = THREAD.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let handle = runtime.handle().clone();
        std::thread::Builder::new()
            .name("egress".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))
            .map_err(|error| error.to_string())?;
        Ok(handle)
    });
    started.clone().map_err(io::Error::other)
}

/// The configuration of one program's proxy.
pub(super) struct Proxy {
    pub(super) rules: Vec<HostRule>,
    pub(super) connections: usize,
    pub(super) embedder: Embedder,
    pub(super) state: Arc<State>,
    pub(super) blocked: Mutex<BlockedAttempts>,
}

/// Serves a helper until it closes its socket or the handle is aborted.
pub(super) fn serve(control: OwnedFd, proxy: Proxy) -> io::Result<AbortHandle> {
    let thread = thread()?;
    rustix::io::ioctl_fionbio(&control, true)?;
    let task = thread.spawn(async move {
        let (state, proxy) = (proxy.state.clone(), Arc::new(proxy));
        let outcome = read_reports(control, proxy.clone()).await;
        proxy.tell_blocked(true);
        state.end(outcome.err().map(|error| error.to_string()));
    });
    Ok(task.abort_handle())
}

async fn read_reports(control: OwnedFd, proxy: Arc<Proxy>) -> io::Result<()> {
    let control = sys::readable(control)?;
    let places = Arc::new(Semaphore::new(proxy.connections));
    // Dropped together with this task, which ends all of its connections.
    let mut connections = JoinSet::new();
    loop {
        let mut ready = tokio::select! {
            ready = control.readable() => ready?,
            () = sleep(TICK) => {
                proxy.tell_blocked(false);
                continue;
            }
        };
        let received = ready.try_io(|socket| control::receive::<Report>(socket.get_ref()));
        let Ok(received) = received else { continue };
        while connections.try_join_next().is_some() {}
        let Some((report, descriptor)) = received? else { return Ok(()) };
        match report {
            Report::Ready => proxy.state.ready(),
            Report::Failed(reason) => {
                (proxy.embedder.events)(Event::Failed(reason.clone()));
                proxy.state.end(Some(reason));
            }
            Report::Blocked(blocked) => (proxy.embedder.events)(Event::Blocked(blocked)),
            Report::Access(access) => (proxy.embedder.events)(Event::Access(access)),
            Report::Ended { code } => (proxy.embedder.events)(Event::Ended { code }),
            Report::Offered(_) => {}
            Report::Connection { host, port } => {
                let Some(descriptor) = descriptor else { continue };
                let (proxy, places) = (proxy.clone(), places.clone());
                connections.spawn(async move {
                    let stream = std::net::TcpStream::from(descriptor);
                    let Ok(place) = places.try_acquire() else {
                        refuse(stream);
                        return proxy.block(&host, port, BlockReason::TooMany);
                    };
                    if let Err(reason) = carry(&proxy, stream, &host, port).await {
                        proxy.block(&host, port, reason);
                    }
                    drop(place);
                });
            }
        }
    }
}

impl Proxy {
    fn block(&self, host: &str, port: u16, reason: BlockReason) {
        let mut blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        blocked.note(host.to_owned(), Some(port), reason);
        drop(blocked);
        self.tell_blocked(false);
    }

    fn tell_blocked(&self, everything: bool) {
        let mut blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        blocked.tell(Instant::now(), everything, |blocked| {
            (self.embedder.events)(Event::Blocked(blocked));
            true
        });
    }

    fn rule(&self, host: &str, port: u16) -> Option<&HostRule> {
        match host.parse::<IpAddr>() {
            Ok(address) => HostRule::for_address(&self.rules, address, port),
            Err(_) => HostRule::for_name(&self.rules, host, port),
        }
    }
}

/// Resets a connection, so that the program sees a refusal rather than an empty response.
fn refuse(stream: impl rustix::fd::AsFd) {
    let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
}

/// Relays one connection until it ends. Fails with the reason if it is not allowed.
async fn carry(
    proxy: &Proxy,
    stream: std::net::TcpStream,
    host: &str,
    port: u16,
) -> Result<(), BlockReason> {
    let mut switch = proxy.embedder.switch.subscribe();
    let Ok(mut inside) = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream))
    else {
        return Ok(());
    };
    let carried = async {
        let (mut outside, first) = match open(proxy, &mut inside, host, port).await {
            Ok(open) => open,
            Err(reason) => {
                refuse(&inside);
                return Err(reason);
            }
        };
        (proxy.embedder.events)(Event::Connected { host: host.to_owned(), port });
        if outside.write_all(&first).await.is_ok() {
            // How the connection ends is up to the program and the host.
            let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
        }
        Ok(())
    };
    let outcome = tokio::select! {
        biased;
        // Fails only if the switch is dropped, but the proxy holds it.
        _ = switch.wait_for(|closed| *closed) => Err(BlockReason::Closed),
        outcome = carried => outcome,
    };
    if outcome.is_err() {
        refuse(&inside);
    }
    outcome
}

/// Decides on a connection and establishes it. Returns it with the bytes that were read for the
/// decision.
async fn open(
    proxy: &Proxy,
    inside: &mut TcpStream,
    host: &str,
    port: u16,
) -> Result<(TcpStream, Vec<u8>), BlockReason> {
    let Some(rule) = proxy.rule(host, port) else { return Err(BlockReason::NotAllowed) };
    let mut first = Vec::new();
    if !rule.allows_any_protocol() {
        let name = match timeout(HELLO_TIMEOUT, read_hello(inside, &mut first)).await {
            Ok(hello) => hello?,
            Err(_) => return Err(BlockReason::NotTls),
        };
        if !name.eq_ignore_ascii_case(host) {
            return Err(BlockReason::ServerName);
        }
    }
    let addresses = resolve(proxy, rule, host, port).await?;
    for address in addresses {
        if let Ok(Ok(stream)) = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            let _ = stream.set_nodelay(true);
            return Ok((stream, first));
        }
    }
    Err(BlockReason::Unreachable)
}

async fn read_hello(inside: &mut TcpStream, first: &mut Vec<u8>) -> Result<String, BlockReason> {
    loop {
        match hello::read(first) {
            Hello::Named(name) => return Ok(name),
            Hello::Nameless => return Err(BlockReason::ServerName),
            Hello::NotTls => return Err(BlockReason::NotTls),
            Hello::Incomplete => {}
        }
        let room = MAX_HELLO_BYTES.saturating_sub(first.len());
        let read = (&mut *inside).take(u64::try_from(room).unwrap_or(0)).read_buf(first).await;
        if !matches!(read, Ok(1..)) {
            return Err(BlockReason::NotTls);
        }
    }
}

/// The addresses of a host that may be connected to.
async fn resolve(
    proxy: &Proxy,
    rule: &HostRule,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, BlockReason> {
    let found: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(asked) => {
            let addresses = rule.addresses_for(asked).into_iter();
            addresses.map(|address| SocketAddr::new(address, port)).collect()
        }
        Err(_) => match timeout(RESOLVE_TIMEOUT, lookup_host((host, port))).await {
            Ok(Ok(found)) => found.take(MAX_ADDRESSES).collect(),
            Ok(Err(_)) | Err(_) => return Err(BlockReason::NotResolved),
        },
    };
    let may_reach = |address: &SocketAddr| match (proxy.embedder.reach)(address.ip().to_canonical())
    {
        Reach::Allowed => true,
        Reach::NeedsPermission => rule.allows_private(),
        Reach::Refused => false,
    };
    if found.is_empty() {
        return Err(BlockReason::NotResolved);
    }
    let allowed: Vec<SocketAddr> = found.into_iter().filter(may_reach).collect();
    if allowed.is_empty() { Err(BlockReason::PrivateAddress) } else { Ok(allowed) }
}
