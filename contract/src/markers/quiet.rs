//! Short texts in which nothing was found. The same names, types and descriptions come back in the tools of one server: two
//! of three of its strings were scanned before.
//!
//! The memory is fixed, whatever the texts are: a text that falls on the place of another one takes it.

/// How many texts are remembered, as a power of two.
const PLACES_BITS: u32 = 10;
/// The longest text that is remembered, in bytes.
const MAX_BYTES: usize = 64;

/// Remembers texts in which nothing is found, wherever they stand and whatever the tools of the server are called.
#[derive(Debug, Default)]
pub(super) struct QuietTexts {
    /// Empty where a single entry is scanned, for which remembering costs more than it saves.
    places: Vec<QuietText>,
}

#[derive(Debug, Clone, Copy)]
struct QuietText {
    /// Past the longest text where there is none.
    length: usize,
    bytes: [u8; MAX_BYTES],
}

/// Where a text can be remembered that is not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(usize);

impl QuietTexts {
    pub(super) fn of_many_entries() -> QuietTexts {
        let none = QuietText { length: usize::MAX, bytes: [0; MAX_BYTES] };
        QuietTexts { places: vec![none; 1 << PLACES_BITS] }
    }

    /// Looks a text up. Returns `Err` with its place if it is not remembered, and with none if it cannot be.
    #[inline(always)]
    pub(super) fn find(&self, text: &[u8]) -> Result<(), Option<Place>> {
        if self.places.is_empty() || text.len() > MAX_BYTES {
            return Err(None);
        }
        let place = place(text);
        match self.places.get(place) {
            Some(known) if known.is(text) => Ok(()),
            _ => Err(Some(Place(place))),
        }
    }

    pub(super) fn remember(&mut self, text: &[u8], place: Place) {
        if let Some(known) = self.places.get_mut(place.0)
            && let Some(bytes) = known.bytes.get_mut(..text.len())
        {
            bytes.copy_from_slice(text);
            known.length = text.len();
        }
    }
}

impl QuietText {
    #[inline(always)]
    fn is(&self, text: &[u8]) -> bool {
        let known = self.bytes.get(..text.len()).unwrap_or_default();
        self.length == text.len() && words(known).eq(words(text))
    }
}

#[inline(always)]
fn place(text: &[u8]) -> usize {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(MIX).rotate_left(29);
    let hash = words(text).fold(text.len() as u64, mix);
    (hash.wrapping_mul(MIX) >> (u64::BITS - PLACES_BITS)) as usize
}

/// The bytes of a text as numbers, the last ones twice where they fill none: with its length they tell it from all others.
#[inline(always)]
fn words(text: &[u8]) -> impl Iterator<Item = u64> {
    let (chunks, _) = text.as_chunks::<8>();
    let last = match (text.last_chunk::<8>(), text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (Some(last), ..) => u64::from_le_bytes(*last),
        (None, Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => text.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    };
    chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).chain(std::iter::once(last))
}

#[cfg(test)]
mod tests;
