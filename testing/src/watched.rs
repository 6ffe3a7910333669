//! Runs part of a test in a separate network namespace whose only connection is monitored.
//!
//! The test starts itself twice more: once as the *world* in a namespace with one end of a cable
//! (veth), and from there as the *product* in a namespace with the other end, a default route for
//! both families and a name server that is the world. Everything that the product's processes send,
//! except to their own loopback device, crosses the cable, where the world captures it with a
//! packet socket. The machine's own network is not used.

mod name_server;
mod packet;

pub use name_server::NameServer;
pub use packet::{Packet, streams};

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The world's address. Nothing listens there unless the test starts it.
pub const WORLD: Ipv4Addr = Ipv4Addr::new(10, 117, 0, 1);
/// Another address of the world that counts as loopback, so that plain HTTP is used: TLS would hide
/// the bytes. The product reaches it over the cable like any other.
pub const PLAIN: Ipv4Addr = Ipv4Addr::new(127, 117, 0, 1);
/// An address of the world that counts as public. It is only reachable over the cable: the
/// namespace has no other connection.
pub const PUBLIC: Ipv4Addr = Ipv4Addr::new(9, 117, 0, 1);
const WORLD_HARDWARE: &str = "02:00:00:00:01:01";
const ROLE: &str = "HOLDPOINT_TEST_NAMESPACE";
const SHARED: &str = "HOLDPOINT_TEST_SHARED";
/// Sent when the product is done: once it is seen, everything sent before has been seen too.
const END: &[u8] = b"the product is done";
/// How long the product may run.
const DEADLINE: Duration = Duration::from_secs(150);
const REPORT: &str = "watched-report ";

/// The parts of a test on each side of the cable.
#[allow(missing_debug_implementations, reason = "closures have nothing to show")]
pub struct Watched<'a, T> {
    /// The full name of the test, as passed to `--exact`.
    pub test: &'a str,
    /// Starts the services that the product may reach, on [`WORLD`].
    pub world: &'a dyn Fn() -> T,
    /// The monitored part. Returns one line for `check`.
    pub product: &'a dyn Fn() -> String,
    /// Receives the result of `world`, every packet that the product sent, and the product's line.
    pub check: &'a dyn Fn(T, &[Packet], &str),
}

impl<T> Watched<'_, T> {
    /// Runs the test; skips it if this user cannot create namespaces.
    #[track_caller]
    pub fn run(&self) {
        match std::env::var(ROLE).as_deref() {
            Ok("world") => self.watch(),
            Ok(_) => self.produce(),
            Err(_) => self.begin(),
        }
    }

    #[track_caller]
    fn begin(&self) {
        if let Err(why) = namespaces_are_there() {
            return crate::not_run(&format!("no network namespace can be made: {why}"));
        }
        let shared = std::env::temp_dir().join(format!("holdpoint-shared-{}", std::process::id()));
        std::fs::create_dir_all(&shared).unwrap();
        let mut world = self.role("world");
        let mut world = world.env(SHARED, &shared).stdin(Stdio::null()).spawn().unwrap();
        let status = ended_in_time(&mut world, DEADLINE + Duration::from_secs(20));
        std::fs::remove_dir_all(&shared).unwrap();
        assert!(status, "the watched part of `{}` failed: see above", self.test);
    }

    /// Starts this test again in a separate namespace.
    fn role(&self, role: &str) -> Command {
        let mut command = Command::new("unshare");
        if !rustix::process::getuid().is_root() {
            command.arg("--map-root-user");
        }
        command.args(["--net", "--mount"]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", self.test, "--nocapture"]).env(ROLE, role);
        command
    }

    fn watch(&self) {
        let packets = Capture::begin();
        let mut product = self.role("product");
        let mut product = product.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let pid = product.id().to_string();
        ip(&["link", "set", "lo", "up"]);
        crate::wait_until("a namespace for the product", || {
            let link = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
            link(&pid).is_some() && link(&pid) != link("self")
        });
        ip(&["link", "add", "outside", "type", "veth", "peer", "name", "out", "netns", &pid]);
        ip(&["link", "set", "outside", "address", WORLD_HARDWARE]);
        ip(&["address", "add", "10.117.0.1/24", "dev", "outside"]);
        ip(&["address", "add", &format!("{PUBLIC}/32"), "dev", "outside"]);
        ip(&["address", "add", "2001:db8:117::1/64", "dev", "outside", "nodad"]);
        ip(&["link", "set", "outside", "up"]);
        know("outside", packet::PRODUCT_ADDRESS, ["10.117.0.2", "2001:db8:117::2"]);
        route_loopback("outside");
        let started = (self.world)();
        let mut orders = product.stdin.take().unwrap();
        writeln!(orders, "go").unwrap();
        let out = BufReader::new(product.stdout.take().unwrap());
        let lines = std::thread::spawn(move || {
            let lines = out.lines().map_while(Result::ok);
            // The line may follow output of the test harness on the same line.
            lines.filter_map(|line| Some(line.split_once(REPORT)?.1.to_owned())).last()
        });
        let packets = packets.until_the_end_of(&mut product);
        // The cable exists as long as the product runs.
        drop(orders);
        assert!(ended_in_time(&mut product, DEADLINE), "the product failed");
        let report = lines.join().unwrap().expect("the product's line");
        (self.check)(started, &packets, &report);
    }

    fn produce(&self) {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).unwrap();
        assert_eq!(line, "go\n", "the world is ready");
        ip(&["link", "set", "lo", "up"]);
        ip(&["link", "set", "out", "address", packet::PRODUCT_ADDRESS]);
        ip(&["address", "add", "10.117.0.2/24", "dev", "out"]);
        ip(&["address", "add", "2001:db8:117::2/64", "dev", "out", "nodad"]);
        ip(&["link", "set", "out", "up"]);
        ip(&["route", "add", "default", "via", "10.117.0.1"]);
        ip(&["-6", "route", "add", "default", "via", "2001:db8:117::1"]);
        route_loopback("out");
        ip(&["route", "add", "local", "127.0.0.0/16", "dev", "lo", "table", "local"]);
        ip(&["route", "del", "local", "127.0.0.0/8", "dev", "lo", "table", "local"]);
        ip(&["route", "add", "127.117.0.1/32", "via", "10.117.0.1", "src", "10.117.0.2"]);
        know("out", WORLD_HARDWARE, ["10.117.0.1", "2001:db8:117::1"]);
        ask_the_world_for_names();
        let report = (self.product)();
        assert!(!report.contains('\n'), "one line: {report}");
        println!("\n{REPORT}{report}");
        send(END);
        // The world closes this after it has seen the datagram.
        std::io::stdin().read_line(&mut line).unwrap();
    }
}

/// A folder that both sides of the cable can read and write.
pub fn shared_folder() -> PathBuf {
    std::env::var_os(SHARED).expect("the folder is there in a watched test").into()
}

/// Sends a datagram to the world, to show that the monitor sees what is sent.
pub fn send(bytes: &[u8]) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.send_to(bytes, (WORLD, 9)).unwrap();
}

/// Makes the world resolve names. A resolver of the machine would send its queries from its own
/// namespace, unseen.
fn ask_the_world_for_names() {
    let file = std::env::temp_dir().join(format!("holdpoint-resolv-{}", std::process::id()));
    std::fs::write(&file, format!("nameserver {WORLD}\noptions timeout:1 attempts:1\n")).unwrap();
    let mut mount = Command::new("mount");
    mount.arg("--bind").arg(&file).arg("/etc/resolv.conf");
    must(&mut mount);
    std::fs::remove_file(&file).unwrap();
}

/// Adds a static neighbour entry, so that no neighbour discovery crosses the cable.
fn know(device: &str, hardware: &str, addresses: [&str; 2]) {
    for address in addresses {
        let entry = ["neighbour", "replace", address, "lladdr", hardware, "dev", device];
        ip(&[&entry[..], &["nud", "permanent"]].concat());
    }
}

/// Allows packets to and from [`PLAIN`] on a device.
fn route_loopback(device: &str) {
    std::fs::write(format!("/proc/sys/net/ipv4/conf/{device}/route_localnet"), "1").unwrap();
}

fn namespaces_are_there() -> Result<(), String> {
    let mut tried = Command::new("unshare");
    if !rustix::process::getuid().is_root() {
        tried.arg("--map-root-user");
    }
    let script = "ip link set lo up && ip link add outside type veth peer name out && test -e /etc/resolv.conf";
    tried.args(["--net", "--mount", "sh", "-c", script]);
    let output = tried.output().map_err(|error| format!("unshare: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

fn ip(words: &[&str]) {
    must(Command::new("ip").args(words));
}

#[track_caller]
fn must(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}

/// Whether a process exited successfully within the time limit; kills it otherwise.
fn ended_in_time(child: &mut Child, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Captures everything that crosses the cable in either direction.
struct Capture(Arc<Mutex<Vec<Packet>>>);

impl Capture {
    fn begin() -> Capture {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, eth, socket_with, sockopt};
        let (family, kind) = (AddressFamily::PACKET, SocketType::RAW);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(eth::ALL)).unwrap();
        sockopt::set_socket_recv_buffer_size(&socket, 4 * 1024 * 1024).unwrap();
        let (mut socket, seen) = (File::from(socket), Arc::<Mutex<Vec<Packet>>>::default());
        let seen_by_thread = seen.clone();
        std::thread::spawn(move || {
            let mut frame = vec![0; 256 * 1024];
            while let Ok(length) = socket.read(&mut frame) {
                let packet = Packet::of_frame(&frame[..length]);
                lock(&seen_by_thread).extend(packet);
            }
        });
        Capture(seen)
    }

    /// The packets that the product sent until its end. The device's own counter confirms that none
    /// is missing.
    fn until_the_end_of(&self, product: &mut Child) -> Vec<Packet> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            assert!(product.try_wait().unwrap().is_none(), "the product failed");
            assert!(Instant::now() < deadline, "the product takes too long");
            let seen = lock(&self.0);
            let is_over = seen.iter().any(|packet| packet.payload == END);
            if is_over && received() == seen.len() as u64 {
                let own = seen.iter().filter(|it| !it.is_of_the_kernel && it.payload != END);
                return own.cloned().collect();
            }
            drop(seen);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The number of packets received at the world's end of the cable.
fn received() -> u64 {
    let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
    let line = devices.lines().find_map(|line| line.trim().strip_prefix("outside:"));
    let packets = line.and_then(|line| line.split_whitespace().nth(1)).expect("the device");
    packets.parse().unwrap()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
