//! OpenTimestamps proofs: the codec, and the attestations of a digest.
//!
//! A proof is a tree of operations that starts with the digest of a document and ends in
//! attestations: a calendar's promise, or the height of a Bitcoin block whose header contains the
//! result.

use sha2::{Digest, Sha256};

/// The magic bytes of a proof file.
const MAGIC: &[u8] = b"\x00OpenTimestamps\x00\x00Proof\x00\xbf\x89\xe2\xe8\x84\xe8\x92\x94";
const VERSION: u8 = 1;
const PENDING: [u8; 8] = [0x83, 0xdf, 0xe3, 0x0d, 0x2e, 0xf9, 0x0c, 0x8e];
const BITCOIN: [u8; 8] = [0x05, 0x88, 0x96, 0x0d, 0x73, 0xd7, 0x19, 0x01];

/// The largest proof that is read.
pub const MAX_PROOF_BYTES: usize = 1024 * 1024;
/// The deepest tree of operations.
const MAX_DEPTH: usize = 256;
/// The most operations and attestations of one proof.
const MAX_STEPS: usize = 4_096;
/// The longest operand, and the longest result, of an operation.
const MAX_VALUE_BYTES: usize = 4_096;
/// The longest calendar address.
const MAX_URI_BYTES: usize = 1_000;
const MAX_PAYLOAD_BYTES: usize = 8_192;

const SHA256: u8 = 0x08;
const APPEND: u8 = 0xf0;
const PREPEND: u8 = 0xf1;
const REVERSE: u8 = 0xf2;
const FORK: u8 = 0xff;
const ATTESTATION: u8 = 0x00;

/// Why bytes are not a usable proof.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadProof {
    #[error("it is not an OpenTimestamps proof of version {VERSION} over SHA-256")]
    Header,
    #[error("it is truncated or has trailing bytes")]
    Length,
    #[error("it has more steps, or longer ones, than are read")]
    TooLarge,
    #[error("it uses the operation {0:#04x}, which is not known here")]
    Operation(u8),
    #[error("a calendar address in it is invalid")]
    Uri,
}

/// An operation that transforms a message into the next one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    // In the order of their bytes, by which they are sorted.
    Sha256,
    Append(Vec<u8>),
    Prepend(Vec<u8>),
    Reverse,
}

impl Operation {
    pub fn apply(&self, message: &[u8]) -> Vec<u8> {
        match self {
            Operation::Sha256 => Sha256::digest(message).to_vec(),
            Operation::Reverse => message.iter().rev().copied().collect(),
            Operation::Append(value) => [message, value].concat(),
            Operation::Prepend(value) => [value, message].concat(),
        }
    }
}

/// The end of a branch of a proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attestation {
    /// The calendar at this address promised to include it in a block.
    Pending(String),
    /// It is in the Bitcoin block at this height.
    Bitcoin(u64),
    /// An unknown kind, kept unchanged.
    Unknown([u8; 8], Vec<u8>),
}

/// The attestations of one message, and the operations that continue from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timestamp {
    pub attestations: Vec<Attestation>,
    pub operations: Vec<(Operation, Timestamp)>,
}

/// A proof over the digest of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    pub digest: [u8; 32],
    pub timestamp: Timestamp,
}

impl Proof {
    pub fn read(bytes: &[u8]) -> Result<Proof, BadProof> {
        if bytes.len() > MAX_PROOF_BYTES {
            return Err(BadProof::TooLarge);
        }
        let rest = bytes.strip_prefix(MAGIC).ok_or(BadProof::Header)?;
        let [VERSION, SHA256, rest @ ..] = rest else { return Err(BadProof::Header) };
        let (digest, rest) = rest.split_first_chunk::<32>().ok_or(BadProof::Length)?;
        Ok(Proof { digest: *digest, timestamp: Timestamp::read(rest, digest.len())? })
    }

    pub fn write(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&[VERSION, SHA256]);
        out.extend_from_slice(&self.digest);
        self.timestamp.write_into(&mut out);
        out
    }

    /// Every attestation, with the message that it attests.
    pub fn attestations(&self) -> Vec<(Vec<u8>, &Attestation)> {
        let mut found = Vec::new();
        self.timestamp.walk(&self.digest, &mut |message, attestation| {
            found.push((message.to_vec(), attestation));
        });
        found
    }

    /// The lowest block that attests the digest.
    pub fn bitcoin_height(&self) -> Option<u64> {
        let heights =
            self.attestations().into_iter().filter_map(|(_, attestation)| match attestation {
                Attestation::Bitcoin(height) => Some(*height),
                Attestation::Pending(_) | Attestation::Unknown(..) => None,
            });
        heights.min()
    }
}

impl Timestamp {
    /// Reads a calendar's response: a timestamp of the message that was sent to it.
    pub fn read(bytes: &[u8], message_bytes: usize) -> Result<Timestamp, BadProof> {
        if bytes.len() > MAX_PROOF_BYTES {
            return Err(BadProof::TooLarge);
        }
        let mut reader = Reader { rest: bytes, steps: 0 };
        let timestamp = reader.timestamp(message_bytes, 0)?;
        if reader.rest.is_empty() { Ok(timestamp) } else { Err(BadProof::Length) }
    }

    /// Merges another timestamp of the same message.
    pub fn merge(&mut self, other: Timestamp) {
        for attestation in other.attestations {
            if !self.attestations.contains(&attestation) {
                self.attestations.push(attestation);
            }
        }
        for (operation, timestamp) in other.operations {
            match self.operations.iter_mut().find(|(known, _)| *known == operation) {
                Some((_, known)) => known.merge(timestamp),
                None => self.operations.push((operation, timestamp)),
            }
        }
    }

    /// The timestamp of a message reachable from this one's, if there is one.
    pub fn at_mut(&mut self, message: &[u8], wanted: &[u8]) -> Option<&mut Timestamp> {
        if message == wanted {
            return Some(self);
        }
        self.operations
            .iter_mut()
            .find_map(|(operation, timestamp)| timestamp.at_mut(&operation.apply(message), wanted))
    }

    fn walk<'t>(&'t self, message: &[u8], found: &mut dyn FnMut(&[u8], &'t Attestation)) {
        for attestation in &self.attestations {
            found(message, attestation);
        }
        for (operation, timestamp) in &self.operations {
            timestamp.walk(&operation.apply(message), found);
        }
    }

    fn write_into(&self, out: &mut Vec<u8>) {
        // Sorted like the reference implementation, so that each proof has a single encoding.
        let mut attestations: Vec<&Attestation> = self.attestations.iter().collect();
        attestations.sort_by_key(|attestation| attestation.parts());
        let mut operations: Vec<&(Operation, Timestamp)> = self.operations.iter().collect();
        operations.sort_by(|(a, _), (b, _)| a.cmp(b));
        let all = attestations.len() + operations.len();
        for (at, attestation) in attestations.into_iter().enumerate() {
            if at + 1 < all {
                out.push(FORK);
            }
            out.push(ATTESTATION);
            write_attestation(attestation, out);
        }
        let before = self.attestations.len();
        for (at, (operation, timestamp)) in operations.into_iter().enumerate() {
            if before + at + 1 < all {
                out.push(FORK);
            }
            write_operation(operation, out);
            timestamp.write_into(out);
        }
    }
}

impl Attestation {
    fn parts(&self) -> ([u8; 8], Vec<u8>) {
        match self {
            Attestation::Pending(uri) => (PENDING, prefixed(uri.as_bytes())),
            Attestation::Bitcoin(height) => {
                let mut payload = Vec::new();
                write_number(*height, &mut payload);
                (BITCOIN, payload)
            }
            Attestation::Unknown(tag, payload) => (*tag, payload.clone()),
        }
    }
}

fn write_attestation(attestation: &Attestation, out: &mut Vec<u8>) {
    let (tag, payload) = attestation.parts();
    out.extend_from_slice(&tag);
    out.extend(prefixed(&payload));
}

fn write_operation(operation: &Operation, out: &mut Vec<u8>) {
    match operation {
        Operation::Sha256 => out.push(SHA256),
        Operation::Reverse => out.push(REVERSE),
        Operation::Append(value) => {
            out.push(APPEND);
            out.extend(prefixed(value));
        }
        Operation::Prepend(value) => {
            out.push(PREPEND);
            out.extend(prefixed(value));
        }
    }
}

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_number(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

struct Reader<'b> {
    rest: &'b [u8],
    steps: usize,
}

impl<'b> Reader<'b> {
    fn byte(&mut self) -> Result<u8, BadProof> {
        let (byte, rest) = self.rest.split_first().ok_or(BadProof::Length)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn bytes(&mut self, count: usize) -> Result<&'b [u8], BadProof> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(BadProof::Length)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, BadProof> {
        let (mut number, mut shift) = (0_u64, 0);
        loop {
            let byte = self.byte()?;
            if shift > 56 {
                return Err(BadProof::TooLarge);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn prefixed(&mut self, most: usize) -> Result<&'b [u8], BadProof> {
        let count = usize::try_from(self.number()?).map_err(|_| BadProof::TooLarge)?;
        if count > most {
            return Err(BadProof::TooLarge);
        }
        self.bytes(count)
    }

    fn timestamp(&mut self, message_bytes: usize, depth: usize) -> Result<Timestamp, BadProof> {
        if depth > MAX_DEPTH {
            return Err(BadProof::TooLarge);
        }
        let mut timestamp = Timestamp::default();
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(BadProof::TooLarge);
            }
            let tag = self.byte()?;
            let (tag, is_last) = match tag {
                FORK => (self.byte()?, false),
                tag => (tag, true),
            };
            match tag {
                ATTESTATION => timestamp.attestations.push(self.attestation()?),
                tag => {
                    let (operation, result_bytes) = self.operation(tag, message_bytes)?;
                    let next = self.timestamp(result_bytes, depth + 1)?;
                    timestamp.operations.push((operation, next));
                }
            }
            if is_last {
                return Ok(timestamp);
            }
        }
    }

    fn operation(&mut self, tag: u8, bytes: usize) -> Result<(Operation, usize), BadProof> {
        Ok(match tag {
            SHA256 => (Operation::Sha256, 32),
            REVERSE => (Operation::Reverse, bytes),
            APPEND | PREPEND => {
                let value = self.prefixed(MAX_VALUE_BYTES)?.to_vec();
                let result = bytes + value.len();
                if value.is_empty() || result > MAX_VALUE_BYTES {
                    return Err(BadProof::TooLarge);
                }
                match tag {
                    APPEND => (Operation::Append(value), result),
                    _ => (Operation::Prepend(value), result),
                }
            }
            other => return Err(BadProof::Operation(other)),
        })
    }

    fn attestation(&mut self) -> Result<Attestation, BadProof> {
        let tag: [u8; 8] = self.bytes(8)?.try_into().map_err(|_| BadProof::Length)?;
        let payload = self.prefixed(MAX_PAYLOAD_BYTES)?;
        let mut inner = Reader { rest: payload, steps: 0 };
        let attestation = match tag {
            PENDING => {
                let uri = std::str::from_utf8(inner.prefixed(MAX_URI_BYTES)?);
                let uri = uri.map_err(|_| BadProof::Uri)?;
                let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:".contains(&byte);
                if !uri.bytes().all(is_known) {
                    return Err(BadProof::Uri);
                }
                Attestation::Pending(uri.to_owned())
            }
            BITCOIN => Attestation::Bitcoin(inner.number()?),
            tag => return Ok(Attestation::Unknown(tag, payload.to_vec())),
        };
        if inner.rest.is_empty() { Ok(attestation) } else { Err(BadProof::Length) }
    }
}

/// The parts of a Bitcoin block header that a proof needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHeader {
    pub merkle_root: [u8; 32],
    /// The hash of the block in its usual notation.
    pub hash: String,
    /// Unix time in seconds, as set by the miner.
    pub seconds: u32,
}

/// Why a header is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBlockHeader {
    #[error("a block's header has 80 bytes, in 160 hexadecimal digits")]
    Length,
    #[error("the header's target is not a number that proof of work uses")]
    Target,
    #[error("the header's hash is above its own target: it carries no proof of work")]
    Work,
}

impl BlockHeader {
    /// Parses a header and checks its proof of work against its own target. Whether the block is in
    /// Bitcoin's chain cannot be seen from the header.
    pub fn read(hexadecimal: &str) -> Result<BlockHeader, BadBlockHeader> {
        let mut bytes = [0; 80];
        hex::decode_to_slice(hexadecimal.trim(), &mut bytes).map_err(|_| BadBlockHeader::Length)?;
        let part = |from: usize, to: usize| bytes.get(from..to).unwrap_or_default();
        let merkle_root = part(36, 68).try_into().map_err(|_| BadBlockHeader::Length)?;
        let number = |from| {
            let four: [u8; 4] = part(from, from + 4).try_into().unwrap_or_default();
            u32::from_le_bytes(four)
        };
        let mut hash: [u8; 32] = Sha256::digest(Sha256::digest(bytes)).into();
        hash.reverse();
        let target = target(number(72)).ok_or(BadBlockHeader::Target)?;
        if hash > target {
            return Err(BadBlockHeader::Work);
        }
        Ok(BlockHeader { merkle_root, hash: hex::encode(hash), seconds: number(68) })
    }
}

/// The target encoded in a header's four bytes, as 32 bytes in big-endian order.
fn target(bits: u32) -> Option<[u8; 32]> {
    let exponent = (bits >> 24) as usize;
    let mantissa = bits & 0x00ff_ffff;
    // Refuse targets that are negative, zero, or longer than a hash.
    if mantissa & 0x0080_0000 != 0 || mantissa == 0 || !(3..=32).contains(&exponent) {
        return None;
    }
    let mut target = [0; 32];
    let start = 32 - exponent;
    let [_, first, second, third] = mantissa.to_be_bytes();
    target.iter_mut().skip(start).zip([first, second, third]).for_each(|(to, byte)| *to = byte);
    Some(target)
}

#[cfg(test)]
mod tests;
