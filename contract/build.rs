//! Compiles the phrases of the marker scan (`src/markers.toml`) and the character folding tables
//! into static data, so that a gate neither computes them at startup nor keeps them on its heap.
#![allow(clippy::print_stdout, reason = "a build script speaks to cargo on its standard output")]

use class::MarkerClass;
use runs::Runs;
use std::error::Error;
use std::path::PathBuf;
use tree::Lexicon;

#[path = "src/markers/class.rs"]
#[allow(unreachable_pub, reason = "the library exports it")]
mod class;
#[path = "src/markers/confusable.rs"]
mod confusable;
#[path = "src/markers/fold/source.rs"]
mod folds;
#[path = "src/markers/invisible.rs"]
#[allow(dead_code, reason = "the library uses the rest of it")]
mod invisible;
#[path = "src/markers/letters.rs"]
mod letters;
#[path = "src/markers/fold/pack.rs"]
mod packed_folds;
#[path = "src/markers/lexicon/pack.rs"]
mod packed_lexicon;
#[path = "src/packing.rs"]
#[allow(dead_code, reason = "the library reads what the build script writes")]
mod packing;
#[path = "src/markers/fold/runs.rs"]
mod runs;
#[path = "src/markers/lexicon/source.rs"]
mod source;
#[path = "src/markers/lexicon/tree.rs"]
#[allow(dead_code, reason = "the build script only prints what the library reads")]
mod tree;

const SOURCE: &str = "src/markers.toml";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    if let Err(error) = compile() {
        // Cargo reads only one line.
        println!("cargo::error={SOURCE}: {}", error.to_string().replace('\n', " "));
    }
}

fn compile() -> Result<(), Box<dyn Error>> {
    let folder =
        |name: &str| std::env::var_os(name).map(PathBuf::from).ok_or("cargo set no folder");
    let source = std::fs::read_to_string(folder("CARGO_MANIFEST_DIR")?.join(SOURCE))?;
    let lexicon = source::parse(&source)?;
    let out = folder("OUT_DIR")?;
    std::fs::write(out.join("lexicon.rs"), as_rust(&lexicon))?;
    let folds = folds::runs();
    let packed = packed_folds::pack(&folds);
    let Runs { runs, bytes, blocks, marks } = folds;
    let folds = format!(
        "#[cfg(not(target_family = \"wasm\"))]
static FOLDS: Runs = {{
    use Fold::*;
    Runs {{ runs: &{runs:?}, bytes: &{bytes:?}, blocks: &{blocks:?}, marks: &{marks:?} }}
}};
#[cfg(any(test, target_family = \"wasm\"))]
static PACKED_FOLDS: &[u8] = &{packed:?};
"
    );
    std::fs::write(out.join("folds.rs"), folds)?;
    Ok(())
}

/// The lexicon as Rust source, using the `Debug` form of its parts.
fn as_rust(lexicon: &Lexicon) -> String {
    let packed = packed_lexicon::pack(lexicon);
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
        "#[cfg(not(target_family = \"wasm\"))]
static BUILT_IN: Lexicon = {{
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
#[cfg(any(test, target_family = \"wasm\"))]
static PACKED: &[u8] = &{packed:?};
"
    )
}
