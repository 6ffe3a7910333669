//! What a confined program sends (the beginning of a TLS connection, a question for a name, a packet) and the index of a
//! repository in its workspace take any bytes.

pub fn run(bytes: &[u8]) {
    #[cfg(target_os = "linux")]
    sandbox::read_untrusted(bytes);
    #[cfg(not(target_os = "linux"))]
    let _ = bytes;
}
