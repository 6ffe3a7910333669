//! A syslog receiver over TCP or TLS that strictly parses octet-counted frames.

use engine::export::CertificateDer;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// A key and its certificate for `localhost`.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    fn new() -> Identity {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        Identity { certificate, key: made.signing_key.serialize_der() }
    }

    fn acceptor(&self) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

pub(crate) struct Receiver {
    port: u16,
    identity: Option<Identity>,
    messages: Arc<Mutex<Vec<String>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    pub(crate) fn start(port: u16, is_secure: bool) -> Receiver {
        Receiver::start_as(port, is_secure.then(Identity::new))
    }

    pub(crate) fn start_as(port: u16, identity: Option<Identity>) -> Receiver {
        let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let messages = Arc::new(Mutex::new(Vec::new()));
        let (inside, tls) = (Arc::clone(&messages), identity.as_ref().map(Identity::acceptor));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = serve(&listener, tls, &inside) => {}
                    _ = stopped => {}
                }
            });
        });
        Receiver { port, identity, messages, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity.clone()
    }

    pub(crate) fn messages(&self) -> Vec<String> {
        self.messages.lock().unwrap().clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn serve(listener: &TcpListener, tls: Option<TlsAcceptor>, messages: &Mutex<Vec<String>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        match &tls {
            None => read_frames(stream, messages).await,
            Some(tls) => {
                if let Ok(stream) = tls.accept(stream).await {
                    read_frames(stream, messages).await;
                }
            }
        }
    }
}

async fn read_frames(mut stream: impl AsyncRead + Unpin, messages: &Mutex<Vec<String>>) {
    loop {
        let mut digits = String::new();
        loop {
            match stream.read_u8().await {
                Ok(b' ') => break,
                Ok(digit) => digits.push(char::from(digit)),
                Err(_) => return,
            }
        }
        let mut message = vec![0; digits.parse().unwrap()];
        if stream.read_exact(&mut message).await.is_err() {
            return;
        }
        messages.lock().unwrap().push(String::from_utf8(message).unwrap());
    }
}
