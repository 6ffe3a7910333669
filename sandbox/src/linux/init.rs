//! The first process of the new namespaces: it starts the program, reaps processes, forwards
//! signals, answers DNS queries, passes connections on, and ends everything when the socket of the
//! parent program closes.

use super::blocked_attempts::BlockedAttempts;
use super::child::{self, Beginning, Started};
use super::control::{self, Report};
use super::dns::{self, Names};
use super::network::{self, Listening};
use super::notify::Observer;
use super::plan::{NetworkPlan, Plan};
use super::{memory, sys};
use crate::event::BlockReason;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, wait};
use std::io;
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

/// The signals that are forwarded to the program.
pub(super) const FORWARDED: [Signal; 8] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::CONT,
];
/// The exit code if the program could not be started; the next one means that it was ended for
/// using too much memory.
pub(super) const FAILED: i32 = 125;
const OUT_OF_MEMORY: i32 = 137;
/// The intervals for reporting pending events and for checking memory use.
const TICK: Duration = Duration::from_millis(250);
const LOOK_AT_MEMORY: Duration = Duration::from_secs(1);
/// How many packets, names or connections are processed before other events get their turn.
const MAX_AT_ONCE: usize = 64;

/// The state of the first process while the program runs.
struct Init<'a> {
    control: &'a OwnedFd,
    /// The process outside of the namespaces, if there are any.
    outer: Option<&'a OwnedFd>,
    /// The program, until it has started.
    starting: Option<Started>,
    signals: OwnedFd,
    program: Pid,
    rules: &'a NetworkPlan,
    network: Option<Listening>,
    names: Names,
    observer: Option<Observer>,
    blocked: BlockedAttempts,
}

/// Starts the program and stays until it has ended. Returns its exit code.
pub(super) fn stay(
    plan: &Plan,
    control: &OwnedFd,
    outer: Option<&OwnedFd>,
    network: Option<Listening>,
) -> Result<i32, String> {
    let mut wanted = FORWARDED.to_vec();
    wanted.push(Signal::CHILD);
    let signals = sys::signals(&wanted).map_err(|error| format!("signals: {error}"))?;
    let started = child::start(plan)?;
    let _ = sys::let_go_of_standard_streams();
    child::drop_privileges().map_err(|error| format!("capabilities: {error}"))?;
    let empty = NetworkPlan::default();
    let mut started = started;
    let mut init = Init {
        control,
        outer,
        signals,
        program: started.process,
        rules: plan.network.as_ref().unwrap_or(&empty),
        network,
        names: Names::default(),
        observer: started.listener.take().map(Observer::new),
        starting: Some(started),
        blocked: BlockedAttempts::default(),
    };
    let mut looked = Instant::now();
    loop {
        init.wait().map_err(|error| format!("waiting: {error}"))?;
        init.begin()?;
        if let Some(code) = init.turn() {
            init.begin()?;
            // Also report the program's last attempts.
            for _ in 0..MAX_AT_ONCE {
                if init.take_attempts() == 0 {
                    break;
                }
            }
            init.tell_blocked(true);
            return Ok(code);
        }
        // Without a process namespace this would count the processes of the whole machine.
        if outer.is_some() && looked.elapsed() >= LOOK_AT_MEMORY {
            looked = Instant::now();
            if memory::in_use() > plan.limits.memory_bytes {
                return Ok(OUT_OF_MEMORY);
            }
        }
    }
}

impl Init<'_> {
    fn tell(&self, report: &Report) {
        let _ = control::send(self.control, report, None, SendFlags::empty());
    }

    fn tell_blocked(&mut self, everything: bool) {
        let control = self.control;
        self.blocked.tell(Instant::now(), everything, |blocked| {
            control::send(control, &Report::Blocked(blocked), None, SendFlags::DONTWAIT).is_ok()
        });
    }

    /// Reports when the program starts. Returns an error if it cannot start.
    fn begin(&mut self) -> Result<(), String> {
        match self.starting.as_ref().map(Started::look) {
            None | Some(Beginning::Waiting) => Ok(()),
            Some(Beginning::Failed(reason)) => Err(reason),
            Some(Beginning::Begun) => {
                self.starting = None;
                self.tell(&Report::Ready);
                Ok(())
            }
        }
    }

    /// Waits for the next event.
    fn wait(&self) -> io::Result<()> {
        let readable = PollFlags::IN;
        let mut waiting =
            vec![PollFd::new(self.control, PollFlags::RDHUP), PollFd::new(&self.signals, readable)];
        waiting.extend(self.outer.map(|outer| PollFd::new(outer, readable)));
        if let Some(starting) = &self.starting {
            waiting.push(PollFd::new(&starting.beginning, readable));
        }
        if let Some(network) = &self.network {
            waiting.push(PollFd::new(&network.resolver, readable));
            waiting.push(PollFd::new(&network.packets, readable));
            waiting.extend(network.ports.iter().map(|(_, port)| PollFd::new(port, readable)));
        }
        if let Some(observer) = &self.observer {
            waiting.push(PollFd::new(observer.listener(), readable));
        }
        let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(TICK.subsec_nanos()) };
        let idle = Timespec { tv_sec: 1, tv_nsec: 0 };
        let timeout = if self.blocked.is_empty() { idle } else { tick };
        match poll(&mut waiting, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Handles pending events. Returns the exit code once the program has ended or the gate has
    /// closed its socket.
    fn turn(&mut self) -> Option<i32> {
        if hung_up(self.control) || self.outer.is_some_and(is_readable) {
            return Some(FAILED);
        }
        while let Some(signal) = sys::next_signal(&self.signals) {
            if signal != Signal::CHILD {
                let _ = kill_process_group(self.program, signal);
            }
        }
        let _ = self.take_attempts();
        self.observe();
        self.tell_blocked(false);
        self.collect()
    }

    /// Collects the program's new attempts. Returns their number.
    fn take_attempts(&mut self) -> usize {
        self.take_names() + self.take_connections() + self.take_packets()
    }

    fn collect(&self) -> Option<i32> {
        while let Ok(Some((process, status))) = wait(WaitOptions::NOHANG) {
            if process == self.program {
                let by_signal = status.terminating_signal().map(|signal| 128 + signal);
                return Some(status.exit_status().or(by_signal).unwrap_or(FAILED));
            }
        }
        None
    }

    fn take_names(&mut self) -> usize {
        let Some(network) = &self.network else { return 0 };
        let mut query = [0; 1500];
        for taken in 0..MAX_AT_ONCE {
            let Ok((read, from)) = network.resolver.recv_from(&mut query) else { return taken };
            let query = query.get(..read).unwrap_or_default();
            let Some(reply) = dns::answer(&self.rules.rules, &mut self.names, query) else {
                continue;
            };
            let _ = network.resolver.send_to(&reply.bytes, from);
            if let Some(host) = reply.refused {
                self.blocked.note(host, None, BlockReason::NotAllowed);
            }
        }
        MAX_AT_ONCE
    }

    fn take_connections(&mut self) -> usize {
        let Some(network) = &self.network else { return 0 };
        let mut taken = 0;
        for (port, listener) in &network.ports {
            for _ in 0..MAX_AT_ONCE {
                let Ok((stream, _)) = listener.accept() else { break };
                taken += 1;
                let Some(host) = self.host_of(&stream) else { continue };
                let report = Report::Connection { host: host.clone(), port: *port };
                // If the proxy cannot keep up, close the connection.
                let handed = Some(stream.as_fd());
                if control::send(self.control, &report, handed, SendFlags::DONTWAIT).is_err() {
                    self.blocked.note(host, Some(*port), BlockReason::TooMany);
                }
            }
        }
        taken
    }

    /// The host that a connection was meant for, determined by the connection's local address.
    fn host_of(&self, stream: &TcpStream) -> Option<String> {
        let address = stream.local_addr().ok()?.ip().to_canonical();
        Some(self.host(address))
    }

    fn host(&self, address: IpAddr) -> String {
        let name = match address {
            IpAddr::V4(address) => self.names.name_of(address),
            IpAddr::V6(_) => None,
        };
        name.map_or_else(|| address.to_string(), str::to_owned)
    }

    /// Records attempts at ports without a listener.
    fn take_packets(&mut self) -> usize {
        let Some(network) = &self.network else { return 0 };
        // Packets that did not fit into the buffer are only counted.
        self.blocked.note_others(sys::dropped_packets(&network.packets));
        let mut packet = [0; 128];
        for taken in 0..MAX_AT_ONCE {
            let Ok((read, _)) = rustix::net::recv(&network.packets, &mut packet, RecvFlags::TRUNC)
            else {
                return taken;
            };
            let packet = packet.get(..read.min(128)).unwrap_or_default();
            let Some(to) = network::destination(packet) else { continue };
            let (address, port) = (to.ip().to_canonical(), to.port());
            let is_udp = network::is_udp(packet);
            let is_taken = !is_udp && network.ports.iter().any(|(listened, _)| *listened == port);
            let is_resolver = address == IpAddr::V4(dns::RESOLVER) && port == 53;
            // The program may talk to itself. The kernel responds from the resolver's address, or
            // from an assigned one.
            if is_taken || is_resolver || address.is_loopback() || network::is_reply(packet) {
                continue;
            }
            let host = self.host(address);
            self.blocked.note(host, Some(port), BlockReason::NotAllowed);
        }
        MAX_AT_ONCE
    }

    fn observe(&mut self) {
        let Some(observer) = &mut self.observer else { return };
        for _ in 0..MAX_AT_ONCE {
            if !is_readable(observer.listener()) {
                return;
            }
            for access in observer.next() {
                let report = Report::Access(access);
                let _ = control::send(self.control, &report, None, SendFlags::empty());
            }
        }
    }
}

fn events(descriptor: &OwnedFd, wanted: PollFlags) -> PollFlags {
    let mut waiting = [PollFd::new(descriptor, wanted)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut waiting, Some(&now)) {
        Ok(1..) => waiting.first().map_or(PollFlags::empty(), PollFd::revents),
        _ => PollFlags::empty(),
    }
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    events(descriptor, PollFlags::IN).contains(PollFlags::IN)
}

fn hung_up(descriptor: &OwnedFd) -> bool {
    events(descriptor, PollFlags::RDHUP)
        .intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}
