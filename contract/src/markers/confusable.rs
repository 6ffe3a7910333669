//! Letters and signs of other scripts that pass for Latin ones.
//!
//! Chosen with the confusables of Unicode's UTS #39 in view, kept to what looks like one ASCII character in running
//! text. What compatibility decomposition already opens (full width, mathematical, circled, raised letters) is not here.
//! `build.rs` uses this file, so it uses nothing of the crate.

use std::sync::OnceLock;

/// For an ASCII character, what looks like it once it is in lower case.
const LOOK_ALIKES: &[(u8, &str)] = &[
    (
        b'a',
        "\u{251}\u{3b1}\u{430}\u{4d9}\u{15c5}\u{1d00}\u{2c6d}\u{a4ee}\u{ab64}\u{ab7a}\u{102a0}\u{16f40}",
    ),
    (
        b'b',
        "\u{df}\u{180}\u{183}\u{185}\u{253}\u{299}\u{3b2}\u{432}\u{44c}\u{463}\u{48d}\u{7d5}\u{13fc}\u{1472}\
        \u{1473}\u{15af}\u{15f7}\u{2c83}\u{a4d0}\u{a557}\u{a7b5}\u{ab9f}\u{10282}\u{102a1}\u{10301}\u{1031c}\
        \u{16ed1}",
    ),
    (
        b'c',
        "\u{a9}\u{23c}\u{254}\u{3c2}\u{3f2}\u{441}\u{4ab}\u{1004}\u{105a}\u{1c83}\u{1d04}\u{2ca5}\u{a4da}\
        \u{abaf}\u{102a2}\u{10302}\u{1043d}\u{1051b}\u{118e9}\u{118f2}",
    ),
    (
        b'd',
        "\u{f0}\u{111}\u{18c}\u{256}\u{257}\u{501}\u{146f}\u{15de}\u{15ea}\u{1d05}\u{a4d2}\u{a4d3}\u{ab70}\
        \u{abb7}\u{1018b}",
    ),
    (
        b'e',
        "\u{247}\u{25b}\u{3b5}\u{435}\u{454}\u{4bd}\u{4bf}\u{1d07}\u{212e}\u{2203}\u{2d39}\u{a4f0}\u{a5cb}\
        \u{ab32}\u{ab7c}\u{10286}\u{118ce}",
    ),
    (
        b'f',
        "\u{192}\u{284}\u{3dd}\u{584}\u{7d3}\u{15b4}\u{1d6e}\u{1e9d}\u{a4dd}\u{a730}\u{a799}\u{ab35}\u{10287}\
        \u{102a5}\u{10525}\u{118c2}",
    ),
    (b'g', "\u{18d}\u{1e5}\u{260}\u{261}\u{262}\u{50d}\u{581}\u{13fb}\u{1d83}\u{a4d6}\u{ab90}"),
    (
        b'h',
        "\u{127}\u{266}\u{29c}\u{43d}\u{45b}\u{4a3}\u{4bb}\u{4c8}\u{4ca}\u{570}\u{13fa}\u{157c}\u{2c68}\
        \u{2c8f}\u{2d19}\u{a4e7}\u{a695}\u{ab8b}\u{ab92}\u{102cf}",
    ),
    (
        b'i',
        "\u{131}\u{268}\u{269}\u{26a}\u{3b9}\u{456}\u{582}\u{1d7b}\u{1d7c}\u{2c93}\u{a647}\u{ab75}\u{118c3}",
    ),
    (b'j', "\u{237}\u{249}\u{25f}\u{29d}\u{3f3}\u{458}\u{575}\u{148d}\u{1d0a}\u{a4d9}\u{ab7b}"),
    (
        b'k',
        "\u{199}\u{3ba}\u{43a}\u{49b}\u{49f}\u{16d5}\u{1d0b}\u{2c6a}\u{2c95}\u{a4d7}\u{a741}\u{abb6}\u{10518}",
    ),
    (
        b'l',
        "\u{142}\u{19a}\u{1c0}\u{26b}\u{26d}\u{29f}\u{4cf}\u{14aa}\u{16c1}\u{2cd1}\u{2d4f}\u{a4e1}\u{a4f2}\
        \u{a781}\u{abae}\u{1028a}\u{10309}\u{10320}\u{10443}\u{1050e}\u{10526}\u{16f16}",
    ),
    (
        b'm',
        "\u{3bc}\u{3fb}\u{43c}\u{4ce}\u{15f0}\u{16d6}\u{1d0d}\u{20a5}\u{2c99}\u{a4df}\u{ab87}\u{102b0}\
        \u{10311}\u{10c21}",
    ),
    (
        b'n',
        "\u{14b}\u{19e}\u{272}\u{273}\u{274}\u{3b7}\u{438}\u{572}\u{578}\u{57c}\u{1d70}\u{2c9b}\u{a4e0}\
        \u{10513}\u{11abe}",
    ),
    (
        b'o',
        "\u{f8}\u{275}\u{3b8}\u{3bf}\u{3c3}\u{3ed}\u{43e}\u{473}\u{4e9}\u{585}\u{1c82}\u{1d0f}\u{1d11}\
        \u{2c91}\u{2c9f}\u{2d31}\u{2d41}\u{2d54}\u{3007}\u{a4f3}\u{a6a2}\u{a74b}\u{ab3d}\u{ab3e}\u{ab74}\u{ab8e}\
        \u{abbb}\u{10292}\u{102ab}\u{1030f}\u{1042c}\u{104ea}\u{10516}\u{1051e}\u{118c8}\u{118d7}\u{118e0}",
    ),
    (
        b'p',
        "\u{fe}\u{1a5}\u{1bf}\u{3c1}\u{3f8}\u{440}\u{146d}\u{1d18}\u{1d7d}\u{2ca3}\u{2ccf}\u{a4d1}\u{abb2}\
        \u{10295}",
    ),
    (b'q', "\u{2a0}\u{51b}\u{563}\u{566}\u{2d55}\u{a7af}"),
    (
        b'r',
        "\u{24d}\u{27c}\u{27d}\u{280}\u{433}\u{44f}\u{493}\u{1587}\u{1d26}\u{1d72}\u{2c85}\u{a4e3}\u{ab47}\
        \u{ab48}\u{ab71}\u{ab81}\u{aba2}\u{104dc}\u{16f35}",
    ),
    (
        b's',
        "\u{1bd}\u{282}\u{455}\u{57f}\u{10fd}\u{1d74}\u{2d1d}\u{a4e2}\u{a576}\u{a731}\u{aba5}\u{abaa}\
        \u{10296}\u{10448}\u{118c1}\u{16f3a}",
    ),
    (
        b't',
        "\u{167}\u{1ab}\u{1ad}\u{288}\u{3c4}\u{442}\u{4ad}\u{7e0}\u{1d1b}\u{1d75}\u{2c66}\u{2ca7}\u{3112}\
        \u{a4d4}\u{a50b}\u{a68d}\u{ab72}\u{ab8f}\u{10297}\u{102b1}\u{10315}\u{16f0a}",
    ),
    (
        b'u',
        "\u{289}\u{28b}\u{3c5}\u{446}\u{45f}\u{57d}\u{144c}\u{1d1c}\u{1d7e}\u{a4f4}\u{a79f}\u{ab4e}\u{ab52}\
        \u{ab9c}\u{104f6}\u{118d8}\u{16f42}",
    ),
    (
        b'v',
        "\u{3bd}\u{475}\u{142f}\u{1d20}\u{2d38}\u{a4e6}\u{a6df}\u{aba9}\u{1051d}\u{118c0}\u{16f08}",
    ),
    (
        b'w',
        "\u{26f}\u{3c9}\u{448}\u{461}\u{47d}\u{51d}\u{561}\u{1d21}\u{2cbd}\u{a4ea}\u{a761}\u{a7fa}\u{ab83}\
        \u{aba4}\u{118e6}\u{118ef}",
    ),
    (
        b'x',
        "\u{d7}\u{3c7}\u{445}\u{4b3}\u{1541}\u{157d}\u{16b7}\u{2cad}\u{2d5d}\u{a4eb}\u{ab53}\u{10290}\
        \u{102b4}\u{10317}\u{10322}\u{10527}\u{118ec}",
    ),
    (
        b'y',
        "\u{1b4}\u{24f}\u{263}\u{28f}\u{3b3}\u{443}\u{45e}\u{4af}\u{4b1}\u{7cc}\u{10e7}\u{1d8c}\u{1eff}\
        \u{2ca9}\u{311a}\u{a4ec}\u{a6b2}\u{ab5a}\u{ab79}\u{ab8d}\u{102b2}\u{118c4}\u{118dc}\u{16f43}",
    ),
    (
        b'z',
        "\u{1b6}\u{225}\u{290}\u{3b6}\u{1d22}\u{1d76}\u{2c6c}\u{2c8d}\u{2d2d}\u{a4dc}\u{a6c9}\u{ab93}\
        \u{102f5}\u{10507}\u{118c9}\u{118e5}\u{11abc}",
    ),
    (b'2', "\u{1a8}\u{1bb}"),
    (b'3', "\u{21d}\u{25c}\u{292}\u{437}\u{499}\u{4e1}"),
    (b'<', "\u{2039}\u{2329}\u{276c}\u{276e}\u{27e8}\u{3008}"),
    (b'>', "\u{203a}\u{232a}\u{276d}\u{276f}\u{27e9}\u{3009}"),
    (b'\'', "\u{2b9}\u{2bc}\u{2018}\u{2019}\u{201b}\u{a78c}\u{ff07}"),
    (b'/', "\u{2044}\u{2215}\u{29f8}"),
    (b'.', "\u{2024}"),
    (b'|', "\u{2223}\u{23d0}"),
    (b'[', "\u{27e6}\u{3010}"),
    (b']', "\u{27e7}\u{3011}"),
];

/// The ASCII character that a character passes for.
pub(crate) fn latin_look_alike(character: char) -> Option<u8> {
    if let Some(letter) = enclosed_letter(character) {
        return Some(letter);
    }
    let table = table();
    let at = table.binary_search_by_key(&character, |&(key, _)| key).ok()?;
    table.get(at).map(|&(_, latin)| latin)
}

/// Letters in filled circles and squares and the regional indicators, which Unicode does not decompose.
fn enclosed_letter(character: char) -> Option<u8> {
    let first = match character {
        '\u{1f150}'..='\u{1f169}' => 0x1f150,
        '\u{1f170}'..='\u{1f189}' => 0x1f170,
        '\u{1f1e6}'..='\u{1f1ff}' => 0x1f1e6,
        _ => return None,
    };
    u8::try_from(u32::from(character) - first).ok().map(|letter| b'a' + letter)
}

fn table() -> &'static [(char, u8)] {
    static TABLE: OnceLock<Vec<(char, u8)>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let pairs = LOOK_ALIKES.iter();
        let mut table: Vec<(char, u8)> =
            pairs.flat_map(|&(latin, alike)| alike.chars().map(move |key| (key, latin))).collect();
        table.sort_unstable();
        table
    })
}

#[cfg(test)]
mod tests;
