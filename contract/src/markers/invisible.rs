//! Characters without a width. `build.rs` uses this file too, so it uses nothing of the crate.

pub(crate) fn is_variation_selector(character: char) -> bool {
    matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180d}' | '\u{180f}')
}

/// Characters without a width that have their uses.
pub(crate) fn is_zero_width(character: char) -> bool {
    is_variation_selector(character)
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}'
                | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}' | '\u{200b}'..='\u{200d}'
                | '\u{2060}'..='\u{2065}' | '\u{feff}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        )
}

/// Format characters, which folding takes out so that they split no word.
pub(crate) fn is_removed_in_folding(character: char) -> bool {
    is_zero_width(character)
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}
