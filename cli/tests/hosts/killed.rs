//! A process that is killed at any moment leaves the complete old or new file, and a way back.

use crate::bench::*;
use crate::files::{CURSOR, place};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Each round runs two processes; the kills are spread over the running time of one.
const ROUNDS: u32 = 24;

#[test]
fn killed_at_any_moment_the_file_is_the_old_or_the_new_one() {
    let bench = Bench::new();
    let file = place(&bench, ".cursor/mcp.json", CURSOR);
    let began = Instant::now();
    bench.run(["wire", "--yes"]).exits(0);
    let whole = began.elapsed();
    let wired = fs::read_to_string(&file).unwrap();
    let (mut old, mut new) = (0, 0);
    for round in 0..ROUNDS {
        for (words, from, to) in
            [(["unwire", "--yes"], &wired, CURSOR), (["wire", "--yes"], &CURSOR.to_owned(), &wired)]
        {
            fs::write(&file, from).unwrap();
            let mut command = bench.command(words);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            std::thread::sleep(pause(round, whole));
            child.kill().unwrap();
            child.wait().unwrap();
            let found = fs::read_to_string(&file).unwrap();
            assert!(found == *from || found == to, "{words:?}: {found}");
            if found == to { new += 1 } else { old += 1 }
        }
    }
    assert!(old > 0, "every process was quicker than its death: {new}");
    // Whatever was left behind, unwiring works.
    bench.run(["wire", "--yes"]).exits(0);
    bench.run(["unwire", "--yes"]).exits(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), CURSOR);
}

fn pause(round: u32, whole: Duration) -> Duration {
    whole * round / ROUNDS
}
