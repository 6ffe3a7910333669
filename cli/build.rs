//! Puts the functions that a gate runs beside each other in the program: of the rest, little is then resident.
#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on its standard output")]

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=layout.ld");
    let is = |name: &str, expected: &str| std::env::var(name).is_ok_and(|value| value == expected);
    // Cargo tells a build script no profile but `release` or `debug`: the level tells `dist`, which ships, from the rest.
    if is("CARGO_CFG_TARGET_OS", "linux") && is("OPT_LEVEL", "3") {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
        let script = folder.join("layout.ld");
        println!("cargo:rustc-link-arg-bin=holdpoint=-Wl,-T,{}", script.display());
        // The loader reads all relocations at the start, and they stay resident. Packed, they are a hundredth of that size.
        if is("CARGO_CFG_TARGET_ENV", "gnu") && is_glibc_new_enough() {
            println!("cargo:rustc-link-arg-bin=holdpoint=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// Whether the C library of this system reads packed relocations: glibc does since 2.36. A program with packed relocations
/// does not start on an older one, so without an answer they stay as they are.
fn is_glibc_new_enough() -> bool {
    if std::env::var_os("HOST") != std::env::var_os("TARGET") {
        return false;
    }
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text
        .trim()
        .trim_start_matches("glibc ")
        .split('.')
        .map_while(|part| part.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|version| version >= (2, 36))
}
