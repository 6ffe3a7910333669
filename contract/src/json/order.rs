//! Member names in the order of RFC 8785, sorted by their first bytes: a list may have millions of names.

use super::strings::utf16_order;
use std::borrow::Cow;
use std::cmp::Ordering;

/// A name by its index, behind its first bytes.
type Keyed = (u64, u32);

/// Sorts names by their text, each given as an index that `text` knows.
#[cfg_attr(holdpoint_small, optimize(speed))]
pub(crate) fn sorted_names<'a>(
    names: impl Iterator<Item = u32>,
    text: impl Fn(u32) -> Cow<'a, str>,
) -> Vec<u32> {
    let mut has_escapes = false;
    let mut keyed: Vec<Keyed> = names
        .map(|index| {
            let text = text(index);
            has_escapes |= matches!(text, Cow::Owned(_));
            (first_bytes(&text), index)
        })
        .collect();
    let order = |left: &Keyed, right: &Keyed| -> Ordering {
        let by_text = || utf16_order(&text(left.1), &text(right.1));
        left.0.cmp(&right.0).then_with(by_text)
    };
    if !keyed.is_sorted_by(|left, right| order(left, right).is_le()) {
        match has_escapes {
            false => keyed.sort_unstable_by(order),
            true => sort_unescaped(&mut keyed, text),
        }
    }
    keyed.into_iter().map(|(_, index)| index).collect()
}

/// Sorts names of which some have to be unescaped, each of them once.
fn sort_unescaped<'a>(keyed: &mut [Keyed], text: impl Fn(u32) -> Cow<'a, str>) {
    let mut texts: Vec<(Cow<'a, str>, Keyed)> =
        keyed.iter().map(|&keyed| (text(keyed.1), keyed)).collect();
    texts.sort_unstable_by(|(left, left_key), (right, right_key)| {
        left_key.0.cmp(&right_key.0).then_with(|| utf16_order(left, right))
    });
    for (place, (_, sorted)) in keyed.iter_mut().zip(texts) {
        *place = sorted;
    }
}

/// The first eight bytes as a number that is ordered like [`utf16_order`]: UTF-16 puts U+E000 to U+FFFF, which begin with
/// 0xEE and 0xEF, behind what begins with 0xF0 and above.
#[cfg_attr(holdpoint_small, optimize(speed))]
fn first_bytes(text: &str) -> u64 {
    let mut key = [0; 8];
    for (place, &byte) in key.iter_mut().zip(text.as_bytes()) {
        *place = if matches!(byte, 0xee | 0xef) { byte | 0x10 } else { byte };
    }
    u64::from_be_bytes(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_as_their_utf16_is() {
        let starts = ["", "a", "abcdefg", "abcdefgh", "abcdefghi", "\u{e000}", "\u{1f600}"];
        let ends = ["", "\0", "b", "z", "é", "\u{d7ff}", "\u{e000}", "\u{ffff}", "\u{10000}"];
        let names: Vec<String> =
            starts.iter().flat_map(|start| ends.map(|end| format!("{start}{end}"))).collect();
        let mut expected: Vec<&String> = names.iter().collect();
        expected.sort_by_key(|name| name.encode_utf16().collect::<Vec<u16>>());
        for is_owned in [false, true] {
            let text = |index: u32| match (is_owned, &names[index as usize]) {
                (false, name) => Cow::Borrowed(name.as_str()),
                (true, name) => Cow::Owned(name.clone()),
            };
            let sorted = sorted_names((0..names.len() as u32).rev(), text);
            let sorted: Vec<&String> =
                sorted.into_iter().map(|index| &names[index as usize]).collect();
            assert_eq!(sorted, expected);
        }
    }
}
