//! Plain exports for JavaScript: one session an instance, texts by one buffer in and one out.
//!
//! The host asks for room, writes the arguments into it one after the other, and calls with their lengths. A function
//! returns the length of its text, 0 for none, or the negative length of an error's words; the text lies where `output`
//! says until the next call. A panic is a trap, after which the host does not use the instance any more.
#![cfg_attr(holdpoint_small, feature(optimize_attribute))]
#![allow(
    unsafe_code,
    reason = "an export's name is given by an attribute that counts as unsafe; no block is"
)]

use sdk_core::{Session, checks};
use std::cell::RefCell;
use std::fmt::Display;
use std::mem::ManuallyDrop;

struct Instance {
    /// The host throws an instance away as a whole, so that no code is needed to take a session apart.
    session: Option<ManuallyDrop<Session>>,
    input: Vec<u8>,
    output: Vec<u8>,
}

thread_local! {
    static INSTANCE: RefCell<Instance> =
        const { RefCell::new(Instance { session: None, input: Vec::new(), output: Vec::new() }) };
}

/// The texts that the host wrote, by their lengths. One that is not UTF-8 is refused as a whole.
#[cfg_attr(holdpoint_small, optimize(size))]
fn texts<const N: usize>(input: &[u8], lengths: [usize; N]) -> Option<[&str; N]> {
    let mut texts = [""; N];
    let mut rest = input;
    for (text, length) in texts.iter_mut().zip(lengths) {
        let (part, after) = rest.split_at_checked(length)?;
        *text = std::str::from_utf8(part).ok()?;
        rest = after;
    }
    Some(texts)
}

fn length(text: &str) -> i32 {
    i32::try_from(text.len()).unwrap_or(i32::MAX)
}

/// Calls with texts and hands the outcome over.
#[cfg_attr(holdpoint_small, optimize(size))]
fn run<const N: usize, E: Display>(
    lengths: [usize; N],
    call: impl FnOnce(&mut Option<ManuallyDrop<Session>>, [&str; N]) -> Result<Option<String>, E>,
) -> i32 {
    INSTANCE.with_borrow_mut(|instance| {
        let outcome = match texts(&instance.input, lengths) {
            Some(texts) => call(&mut instance.session, texts).map_err(|error| error.to_string()),
            None => Err("a text that is not UTF-8".to_owned()),
        };
        let (text, sign) = match outcome {
            Ok(text) => (text.unwrap_or_default(), 1),
            Err(words) => (words, -1),
        };
        let length = length(&text) * sign;
        instance.output = text.into_bytes();
        length
    })
}

/// The same for an open session.
#[cfg_attr(holdpoint_small, optimize(size))]
fn with<const N: usize, E: Display>(
    lengths: [usize; N],
    call: impl FnOnce(&mut Session, [&str; N]) -> Result<Option<String>, E>,
) -> i32 {
    run(lengths, |session, texts| match session {
        Some(session) => call(session, texts).map_err(|error| error.to_string()),
        None => Err("no session is open".to_owned()),
    })
}

/// A moment of JavaScript, which counts milliseconds in doubles.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a moment that is out of range is the last one"
)]
fn moment(now: f64) -> i64 {
    now as i64
}

type Never = std::convert::Infallible;

/// Room for so many bytes.
#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn input(bytes: usize) -> *mut u8 {
    INSTANCE.with_borrow_mut(|instance| {
        if instance.input.len() < bytes {
            instance.input.resize(bytes, 0);
        }
        instance.input.as_mut_ptr()
    })
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn output() -> *const u8 {
    INSTANCE.with_borrow(|instance| instance.output.as_ptr())
}

/// `pins` is -1 where the store has none.
#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn open(options: usize, pins: isize, seed: usize) -> i32 {
    let has_pins = pins >= 0;
    run([options, pins.max(0).unsigned_abs(), seed], |session, [options, pins, seed]| {
        Session::open(options, has_pins.then_some(pins), seed).map(|opened| {
            *session = Some(ManuallyDrop::new(opened));
            None
        })
    })
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn greet(handshake: usize) -> i32 {
    with([handshake], |session, [handshake]| match session.greet(handshake) {
        true => Ok(None),
        false => Err("the server's handshake is invalid or ambiguous"),
    })
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn client(ticket: u32, message: usize, now: f64) -> i32 {
    with([message], |session, [message]| {
        Ok::<_, Never>(session.client(ticket, message, moment(now)))
    })
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn server(message: usize, now: f64) -> i32 {
    with([message], |session, [message]| Ok::<_, Never>(session.server(message, moment(now))))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn pins(now: f64) -> i32 {
    with([], |session, []| Ok::<_, Never>(session.pins(moment(now))))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn saved(now: f64) -> i32 {
    with([], |session, []| Ok::<_, Never>(session.saved(moment(now))))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn unsaved() -> i32 {
    with([], |session, []| Ok::<_, Never>(session.unsaved()))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn load(pins: usize, now: f64) -> i32 {
    with([pins], |session, [pins]| session.load(pins, moment(now)))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn tick(now: f64) -> i32 {
    with([], |session, []| Ok::<_, Never>(session.tick(moment(now))))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn lost() -> i32 {
    with([], |session, []| Ok::<_, Never>(session.lost()))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn instructions() -> i32 {
    with([], |session, []| Ok::<_, Never>(session.instructions()))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn review(entry_type: usize, key: usize) -> i32 {
    with([entry_type, key], |session, [entry_type, key]| {
        Ok::<_, Never>(session.review(entry_type, key))
    })
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn waiting() -> i32 {
    with([], |session, []| Ok::<_, Never>(Some(session.waiting())))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn repin(entry_type: usize, key: usize, hash: usize, by: usize, now: f64) -> i32 {
    with([entry_type, key, hash, by], |session, [entry_type, key, hash, by]| {
        session.repin(entry_type, key, hash, by, moment(now))
    })
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn hash(capture: usize) -> i32 {
    run([capture], |_, [capture]| checks::hash(capture).map(Some))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn diff(old: usize, new: usize, posture: usize) -> i32 {
    run([old, new, posture], |_, [old, new, posture]| checks::diff(old, new, posture).map(Some))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn canonical(text: usize, position: usize) -> i32 {
    run([text, position], |_, [text, position]| checks::canonical(text, position).map(Some))
}

#[unsafe(no_mangle)]
#[cfg_attr(holdpoint_small, optimize(size))]
pub extern "C" fn markers(entry: usize, tools: usize) -> i32 {
    run([entry, tools], |_, [entry, tools]| checks::markers(entry, tools).map(Some))
}
