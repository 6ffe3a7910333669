//! Compiles the phrases of the marker scan (`src/markers.toml`) into static data, so that a gate neither parses them when
//! it starts nor keeps them on its heap.
#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on its standard output")]

use class::MarkerClass;
use std::error::Error;
use std::path::PathBuf;
use tree::Lexicon;

#[path = "src/markers/class.rs"]
#[allow(unreachable_pub, reason = "the library exports it")]
mod class;
#[path = "src/markers/letters.rs"]
mod letters;
#[path = "src/markers/lexicon/source.rs"]
mod source;
#[path = "src/markers/lexicon/tree.rs"]
#[allow(dead_code, reason = "the build script only prints what the library reads")]
mod tree;

const SOURCE: &str = "src/markers.toml";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    if let Err(error) = compile() {
        // Cargo reads one line.
        println!("cargo::error={SOURCE}: {}", error.to_string().replace('\n', " "));
    }
}

fn compile() -> Result<(), Box<dyn Error>> {
    let folder =
        |name: &str| std::env::var_os(name).map(PathBuf::from).ok_or("cargo set no folder");
    let source = std::fs::read_to_string(folder("CARGO_MANIFEST_DIR")?.join(SOURCE))?;
    let lexicon = source::parse(&source)?;
    std::fs::write(folder("OUT_DIR")?.join("lexicon.rs"), as_rust(&lexicon))?;
    Ok(())
}

/// The lexicon as Rust source, by the `Debug` form of its parts.
fn as_rust(lexicon: &Lexicon) -> String {
    let Lexicon {
        rules,
        nodes,
        ends,
        words,
        letters,
        postings,
        affixes,
        foreign,
        addresses,
        table,
    } = lexicon;
    format!(
        "static BUILT_IN: Lexicon = {{
    use MarkerClass::*;
    Lexicon {{
        rules: &{rules:?},
        nodes: &{nodes:?},
        ends: &{ends:?},
        words: &{words:?},
        letters: &{letters:?},
        postings: &{postings:?},
        affixes: &{affixes:?},
        foreign: &{foreign:?},
        addresses: &{addresses:?},
        table: &{table:?},
    }}
}};
"
    )
}
