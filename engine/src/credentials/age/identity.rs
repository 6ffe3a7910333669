//! Identities in the format of `age-keygen`: `AGE-SECRET-KEY-1…`, which is upper-case Bech32.

use super::AgeError;
use curve25519_dalek::montgomery::MontgomeryPoint;
use zeroize::Zeroizing;

const PREFIX: &str = "age-secret-key-";
const ALPHABET: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
/// The number of five-bit groups for 32 bytes, and for the checksum.
const DATA_GROUPS: usize = 52;
const CHECK_GROUPS: usize = 6;
/// The most identities in one file.
const MAX_IDENTITIES: usize = 16;

pub(super) struct AgeIdentity {
    pub(super) secret: Zeroizing<[u8; 32]>,
    pub(super) public: [u8; 32],
}

impl AgeIdentity {
    /// All identities in a file. Lines starting with `#` are comments.
    pub(super) fn read_all(text: &str) -> Result<Vec<AgeIdentity>, AgeError> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let keys = lines.filter(|line| !line.starts_with('#')).take(MAX_IDENTITIES);
        let read: Option<Vec<AgeIdentity>> = keys.map(AgeIdentity::read).collect();
        read.filter(|keys| !keys.is_empty()).ok_or(AgeError::BadIdentity)
    }

    fn read(line: &str) -> Option<AgeIdentity> {
        // Bech32 allows either case but no mixture, and age writes upper case.
        if line.bytes().any(|byte| byte.is_ascii_lowercase()) {
            return None;
        }
        let line = Zeroizing::new(line.to_ascii_lowercase());
        let data = line.strip_prefix(PREFIX)?.strip_prefix('1')?;
        let groups: Option<Vec<u8>> = data
            .chars()
            .map(|letter| u8::try_from(ALPHABET.chars().position(|known| known == letter)?).ok())
            .collect();
        let groups = Zeroizing::new(groups?);
        if groups.len() != DATA_GROUPS + CHECK_GROUPS || checksum(&groups) != 1 {
            return None;
        }
        let mut secret = Zeroizing::new([0_u8; 32]);
        let bits = groups
            .iter()
            .take(DATA_GROUPS)
            .flat_map(|group| (0..5).rev().map(move |place| group >> place & 1));
        for (place, bit) in bits.enumerate() {
            match secret.get_mut(place / 8) {
                Some(byte) => *byte = *byte << 1 | bit,
                // The padding bits of the last group must be zero.
                None if bit != 0 => return None,
                None => {}
            }
        }
        let public = MontgomeryPoint::mul_base_clamped(*secret).to_bytes();
        Some(AgeIdentity { secret, public })
    }
}

/// Bech32's checksum over the prefix and the groups: 1 if it is correct.
fn checksum(groups: &[u8]) -> u32 {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let high = PREFIX.bytes().map(|byte| byte >> 5);
    let low = PREFIX.bytes().map(|byte| byte & 31);
    let mut sum = 1_u32;
    for value in high.chain([0]).chain(low).chain(groups.iter().copied()) {
        let top = sum >> 25;
        sum = (sum & 0x01ff_ffff) << 5 ^ u32::from(value);
        for (place, generator) in GENERATOR.iter().enumerate() {
            if top >> place & 1 == 1 {
                sum ^= generator;
            }
        }
    }
    sum
}
