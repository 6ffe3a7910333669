//! Panics on request, so that tests can show the effect of a bug in each part of the program. This
//! exists only in builds with debug assertions, and therefore in no release.

/// Panics if a test requested it for this part of the program and the handled bytes contain the
/// given word.
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

    /// Requests panics: `PART:WORD[*COUNT]` names the part of the program, a word in what it
    /// handles, and how often to panic. Only the first request in a process counts; a malformed one
    /// is ignored.
    pub fn arm(asked: &str) {
        arm_with(asked, fall);
    }

    /// Like [`arm`], with a function to call instead of panicking: the caller may end the process,
    /// which this crate must not.
    pub fn arm_with(asked: &str, fall: fn(&str)) {
        let Some((part, word)) = asked.split_once(':') else { return };
        let (word, count) = word.split_once('*').unwrap_or((word, "1"));
        let Ok(count) = count.parse() else { return };
        let (part, word) = (part.to_owned(), word.to_owned());
        let _ = ASKED.set(Wire { part, word, left: AtomicUsize::new(count), fall });
    }

    /// Panics if a test requested it for this part of the program and the handled bytes contain the
    /// given word.
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
