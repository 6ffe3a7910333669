use super::*;

#[test]
fn the_lowest_special_byte_of_a_word_is_found() {
    for byte in 0..=u8::MAX {
        for other in [b' ', b'!', b'#', b']', 0x00, b'"', b'\\', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
            for place in 0..8 {
                let mut word = [other; 8];
                word[place] = byte;
                let expected = word.iter().position(|&byte| is_special(byte)).unwrap_or(8);
                let found = specials(u64::from_le_bytes(word)).trailing_zeros() as usize / 8;
                assert_eq!(found, expected, "{word:x?}");
            }
        }
    }
}
