//! Buckets: an install requests all rows whose hash has the same first few bits, so a lookup does
//! not reveal its contract.

/// The most bits of a hash that an install ever reveals in a lookup.
///
/// A directory reports how many contracts it knows. If it lies about that to make buckets smaller,
/// it learns at most this.
pub const MAX_BUCKET_BITS: u8 = 14;

/// The minimum average number of contracts per bucket.
const CONTRACTS_A_BUCKET: u64 = 1_024;

/// The number of bits that identify a bucket: max(0, ⌊log2(contracts / 1024)⌋), at most
/// [`MAX_BUCKET_BITS`].
///
/// Below 2,048 contracts, a single bucket holds everything.
pub fn bucket_bits(contracts: u64) -> u8 {
    let buckets = contracts / CONTRACTS_A_BUCKET;
    let bits = buckets.checked_ilog2().unwrap_or(0);
    u8::try_from(bits).unwrap_or(MAX_BUCKET_BITS).min(MAX_BUCKET_BITS)
}

/// One bucket: the hashes whose first `bits` bits equal `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bucket {
    bits: u8,
    index: u32,
}

impl Bucket {
    /// Returns `None` if there are too many bits, or the index does not fit into them.
    pub fn new(bits: u8, index: u32) -> Option<Bucket> {
        let is_sound = bits <= MAX_BUCKET_BITS && u64::from(index) < 1 << bits;
        is_sound.then_some(Bucket { bits, index })
    }

    pub const fn bits(self) -> u8 {
        self.bits
    }

    pub const fn index(self) -> u32 {
        self.index
    }

    pub fn contains(self, hash: &[u8; 32]) -> bool {
        bucket_of(hash, self.bits) == self
    }
}

/// The bucket of a hash. More than [`MAX_BUCKET_BITS`] bits are treated as that many.
pub fn bucket_of(hash: &[u8; 32], bits: u8) -> Bucket {
    let bits = bits.min(MAX_BUCKET_BITS);
    let [a, b, c, d, ..] = *hash;
    let first = u32::from_be_bytes([a, b, c, d]);
    Bucket { bits, index: first.checked_shr(32 - u32::from(bits)).unwrap_or(0) }
}
