//! Panics where a test asks for one, so that tests can show what a bug in each part of the program does. Builds without
//! debug assertions do not have it, and so no release has.

/// Panics if a test asked for it: in this part of the program, over this word of what is handled.
#[cfg(not(debug_assertions))]
#[inline]
pub fn trip(_part: &str, _handled: &[u8]) {}

#[cfg(debug_assertions)]
pub use armed::{arm, arm_with, trip};

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Wire {
        part: String,
        word: String,
        left: AtomicUsize,
        fall: fn(&str),
    }

    static ASKED: OnceLock<Wire> = OnceLock::new();

    /// Asks for panics: `PART:WORD[*COUNT]` names the part of the program, a word of what it handles, and how often. Counts
    /// once in a process; anything else is ignored.
    pub fn arm(asked: &str) {
        arm_with(asked, fall);
    }

    /// The same for something else than a panic: the caller may end the process, which this crate must not.
    pub fn arm_with(asked: &str, fall: fn(&str)) {
        let Some((part, word)) = asked.split_once(':') else { return };
        let (word, count) = word.split_once('*').unwrap_or((word, "1"));
        let Ok(count) = count.parse() else { return };
        let (part, word) = (part.to_owned(), word.to_owned());
        let _ = ASKED.set(Wire { part, word, left: AtomicUsize::new(count), fall });
    }

    /// Panics if a test asked for it: in this part of the program, over this word of what is handled.
    pub fn trip(part: &str, handled: &[u8]) {
        let Some(asked) = ASKED.get() else { return };
        let word = asked.word.as_bytes();
        let is_met = asked.part == part && handled.windows(word.len().max(1)).any(|at| at == word);
        let count = |left: usize| left.checked_sub(1);
        if is_met && asked.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count).is_ok() {
            (asked.fall)(&asked.word);
        }
    }

    #[expect(clippy::panic, reason = "this is what a test asked for")]
    fn fall(word: &str) {
        panic!("a payload that nobody may see: {word}")
    }
}
