//! Puts the functions that a gate runs beside each other in the program: of the rest, little is then resident.
#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on its standard output")]

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-changed=layout.ld");
    let is = |name: &str, expected: &str| std::env::var(name).is_ok_and(|value| value == expected);
    // Cargo tells a build script no profile but `release` or `debug`: the level tells `dist`, which ships, from the rest.
    if is("CARGO_CFG_TARGET_OS", "linux") && is("OPT_LEVEL", "3") {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
        let script = folder.join("layout.ld");
        println!("cargo:rustc-link-arg-bin=holdpoint=-Wl,-T,{}", script.display());
    }
}
