//! Places the functions that a gate runs next to each other in the binary, so that little of the
//! rest becomes resident.
#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on its standard output")]

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=layout.ld");
    let is = |name: &str, expected: &str| std::env::var(name).is_ok_and(|value| value == expected);
    // Cargo only tells build scripts `release` or `debug`; the optimization level distinguishes the
    // shipped `dist` profile.
    if is("CARGO_CFG_TARGET_OS", "linux") && is("OPT_LEVEL", "3") {
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
        let script = folder.join("layout.ld");
        println!("cargo:rustc-link-arg-bin=holdpoint=-Wl,-T,{}", script.display());
        // The loader reads all relocations at startup, and they stay resident. Packed, they take a
        // hundredth of the space.
        if is("CARGO_CFG_TARGET_ENV", "gnu") && is_glibc_new_enough() {
            println!("cargo:rustc-link-arg-bin=holdpoint=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// Whether this system's C library supports packed relocations, as glibc does since 2.36. A program
/// with packed relocations does not start on an older one, so they are only packed if this is
/// certain.
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
