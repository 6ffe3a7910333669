//! The hostile programs' actions on sockets.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener, UnixStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn act(name: &str, arguments: &[&str]) -> Option<io::Result<String>> {
    Some(match (name, arguments) {
        ("abstract", [socket]) => UnixAddress::from_abstract_name(socket)
            .and_then(|address| UnixStream::connect_addr(&address))
            .map(|_| String::new()),
        ("own-abstract", []) => own_abstract(),
        ("socket", [family, kind, protocol]) => {
            let number = |text: &str| text.parse::<i32>().unwrap();
            let socket = unsafe { libc::socket(number(family), number(kind), number(protocol)) };
            if socket < 0 { Err(io::Error::last_os_error()) } else { Ok(String::new()) }
        }
        ("socket-pair", []) => UnixDatagram::pair().map(|_| String::new()),
        ("resolve", [name]) => resolve(name).map(|address| address.to_string()),
        ("ask-other-resolver", [address]) => {
            ask(address.parse().unwrap(), "example.com").map(|a| a.to_string())
        }
        ("connect", [address]) => {
            TcpStream::connect_timeout(&address.parse().unwrap(), PATIENCE).map(|_| String::new())
        }
        ("connect-many", [count, port]) => {
            let (count, port): (u32, u16) = (count.parse().unwrap(), port.parse().unwrap());
            // Public addresses, all different.
            let address = |number: u32| Ipv4Addr::from_bits(0x5db8_0000 + number);
            let failed = (0..count).filter(|number| {
                TcpStream::connect_timeout(&(address(*number), port).into(), PATIENCE)
                    .and_then(|stream| exchange(stream, b"x"))
                    .is_err()
            });
            Ok(failed.count().to_string())
        }
        ("fetch", [address, text]) => {
            let address = address.parse().unwrap();
            TcpStream::connect_timeout(&address, PATIENCE)
                .and_then(|stream| exchange(stream, text.as_bytes()))
        }
        ("fetch-name", [name, port, text]) => {
            by_name(name, port).and_then(|stream| exchange(stream, text.as_bytes()))
        }
        ("fetch-tls", [name, port, server_name]) => {
            by_name(name, port).and_then(|stream| exchange(stream, &hello(server_name)))
        }
        ("send", [address]) => UdpSocket::bind("0.0.0.0:0")
            .and_then(|socket| socket.send_to(b"secret", address))
            .map(|sent| sent.to_string()),
        ("loopback", []) => loopback(),
        ("serve", [address]) => serve(address),
        _ => return None,
    })
}

fn own_abstract() -> io::Result<String> {
    let address = UnixAddress::from_abstract_name("own")?;
    let _listener = UnixListener::bind_addr(&address)?;
    UnixStream::connect_addr(&address).map(|_| String::new())
}

fn loopback() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    TcpStream::connect_timeout(&listener.local_addr()?, PATIENCE).map(|_| String::new())
}

/// Responds to anything until it is ended.
fn serve(address: &str) -> io::Result<String> {
    for stream in TcpListener::bind(address)?.incoming() {
        let mut stream = stream?;
        let _ = stream.read(&mut [0; 64]);
        let _ = stream.write_all(b"answer");
    }
    Ok(String::new())
}

fn by_name(name: &str, port: &str) -> io::Result<TcpStream> {
    let address = SocketAddr::new(resolve(name)?, port.parse().unwrap());
    TcpStream::connect_timeout(&address, PATIENCE)
}

/// Sends a text and reads the response.
fn exchange(mut stream: TcpStream, text: &[u8]) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(text)?;
    let mut answer = [0; 64];
    let read = stream.read(&mut answer)?;
    if read == 0 {
        return Err(io::Error::other("closed without an answer"));
    }
    Ok(String::from_utf8_lossy(&answer[..read]).into_owned())
}

/// Queries the sandbox's resolver, as a program without a C library would.
fn resolve(name: &str) -> io::Result<IpAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf")?;
    let server = text.lines().find_map(|line| line.strip_prefix("nameserver "));
    let server = server.ok_or_else(|| io::Error::other("no resolver"))?;
    ask(SocketAddr::new(server.parse().unwrap(), 53), name)
}

fn ask(server: SocketAddr, name: &str) -> io::Result<IpAddr> {
    let mut query = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(u8::try_from(label.len()).unwrap());
        query.extend(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    socket.connect(server)?;
    socket.send(&query)?;
    let mut answer = [0; 512];
    let read = socket.recv(&mut answer)?;
    match (answer[3] & 0xf, answer[7]) {
        (0, 1..) => {
            let [a, b, c, d] = answer[read - 4..read].try_into().unwrap();
            Ok(Ipv4Addr::new(a, b, c, d).into())
        }
        (code, _) => Err(io::Error::other(format!("answer {code}"))),
    }
}

/// The first message of a TLS handshake.
fn hello(name: &str) -> Vec<u8> {
    let short = |length: usize| u16::try_from(length).unwrap().to_be_bytes();
    let entry = [&[0][..], &short(name.len()), name.as_bytes()].concat();
    let list = [&short(entry.len())[..], &entry].concat();
    let extension = [&[0, 0][..], &short(list.len()), &list].concat();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(short(extension.len()));
    body.extend(&extension);
    let message = [&[1, 0][..], &short(body.len()), &body].concat();
    [&[22, 3, 1][..], &short(message.len()), &message].concat()
}
