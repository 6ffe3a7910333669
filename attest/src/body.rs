//! The contents of a document, and its canonical bytes, which are signed.
//!
//! Version 1 has the same bytes as the reference implementation. Version 2 has a body in which
//! every member is always present, so that no reader has to guess how an absent one is written.

use crate::digest::Digest;
use crate::key_id::KeyId;
use crate::limits::{MAX_CAPABILITIES, MAX_HOSTS, MAX_TOOLS};
use crate::shape::{Fields, Moment, ShapeError};
use contract::json::{escape_into, utf16_order};
use std::collections::BTreeMap;

/// The members of version 1 that are signed.
pub(crate) const MEMBERS: [&str; 9] = [
    "v",
    "id",
    "publisher",
    "version",
    "clearance",
    "capabilities",
    "signerKeyId",
    "netAllowedHosts",
    "verification",
];
/// The members that version 2 adds.
pub(crate) const ADDED_MEMBERS: [&str; 5] =
    ["notBefore", "expires", "toolClearance", "toolDigests", "packageDigest"];
pub(crate) const SIGNATURE: &str = "signature";

/// The capability that marks a document as one for an MCP server.
pub(crate) const MCP_SERVER: &str = "mcp-server";

/// The signed part of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) id: String,
    pub(crate) publisher: String,
    pub(crate) version: String,
    pub(crate) clearance: String,
    pub(crate) capabilities: Vec<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) signer: Option<KeyId>,
    pub(crate) verification: Option<String>,
    /// `None` in version 1.
    pub(crate) added: Option<Added>,
}

/// The members that version 2 adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Added {
    pub(crate) not_before: Option<Moment>,
    pub(crate) expires: Option<Moment>,
    pub(crate) package_digest: Option<Digest>,
    pub(crate) tool_clearance: BTreeMap<String, String>,
    /// Entry hashes as written, in lower-case digits.
    pub(crate) tool_digests: BTreeMap<String, String>,
}

impl Body {
    pub(crate) fn read(fields: Fields<'_>) -> Result<Body, ShapeError> {
        let added = if fields.is_spelled("v", "1") {
            None
        } else if fields.is_spelled("v", "2") {
            Some(Added::read(fields)?)
        } else {
            return Err(ShapeError::Unexpected { member: "v", expected: "1 or 2" });
        };
        let signer = fields.text("signerKeyId")?;
        let signer = signer.map(|id| KeyId::parse(&id)).transpose();
        Ok(Body {
            id: fields.required_text("id")?,
            publisher: fields.required_text("publisher")?,
            version: fields.required_text("version")?,
            clearance: fields.required_text("clearance")?,
            capabilities: fields.texts("capabilities", MAX_CAPABILITIES)?.unwrap_or_default(),
            hosts: fields.texts("netAllowedHosts", MAX_HOSTS)?.unwrap_or_default(),
            signer: signer.map_err(|_| ShapeError::Unexpected {
                member: "signerKeyId",
                expected: "the id of a key",
            })?,
            verification: fields.text("verification")?,
            added,
        })
    }

    pub(crate) fn document_version(&self) -> u8 {
        if self.added.is_some() { 2 } else { 1 }
    }

    /// The bytes that are signed.
    pub(crate) fn canonical(&self) -> Vec<u8> {
        match &self.added {
            None => self.canonical_1(self.verification.as_deref().map(Verification::Text)),
            Some(added) => self.canonical_2(added),
        }
    }

    /// The bytes that the reference implementation signs if `verification` is absent: it prints the
    /// bare word `undefined`. There is a second spelling only in that case.
    pub(crate) fn canonical_of_reference(&self) -> Option<Vec<u8>> {
        let differs = self.added.is_none() && self.verification.is_none();
        differs.then(|| self.canonical_1(Some(Verification::Undefined)))
    }

    fn canonical_1(&self, verification: Option<Verification<'_>>) -> Vec<u8> {
        let mut out = Object::new(self.room());
        out.list("capabilities", &self.capabilities);
        out.text("clearance", &self.clearance);
        out.text("id", &self.id);
        out.list("netAllowedHosts", &self.hosts);
        out.text("publisher", &self.publisher);
        out.optional("signerKeyId", self.signer.as_ref().map(KeyId::as_str));
        out.raw("v", b"1");
        match verification {
            Some(Verification::Text(text)) => out.text("verification", text),
            Some(Verification::Undefined) => out.raw("verification", b"undefined"),
            None => {}
        }
        out.text("version", &self.version);
        out.finish()
    }

    fn canonical_2(&self, added: &Added) -> Vec<u8> {
        let digest = added.package_digest.as_ref().map(ToString::to_string);
        let moment = |moment: &Option<Moment>| moment.as_ref().map(|moment| moment.text.clone());
        let mut out = Object::new(self.room());
        out.list("capabilities", &self.capabilities);
        out.text("clearance", &self.clearance);
        out.optional("expires", moment(&added.expires).as_deref());
        out.text("id", &self.id);
        out.list("netAllowedHosts", &self.hosts);
        out.optional("notBefore", moment(&added.not_before).as_deref());
        out.optional("packageDigest", digest.as_deref());
        out.text("publisher", &self.publisher);
        out.optional("signerKeyId", self.signer.as_ref().map(KeyId::as_str));
        out.table("toolClearance", added.tool_clearance.iter());
        out.table("toolDigests", added.tool_digests.iter());
        out.raw("v", b"2");
        out.optional("verification", self.verification.as_deref());
        out.text("version", &self.version);
        out.finish()
    }

    /// Approximately the size of the canonical body.
    fn room(&self) -> usize {
        let lists = self.capabilities.iter().chain(&self.hosts).map(|text| text.len() + 3);
        let tools = self.added.as_ref().map_or(0, |added| {
            added.tool_clearance.len().saturating_mul(48)
                + added.tool_digests.len().saturating_mul(96)
        });
        256 + self.id.len() + self.publisher.len() + lists.sum::<usize>() + tools
    }
}

impl Added {
    fn read(fields: Fields<'_>) -> Result<Added, ShapeError> {
        let digest = fields.filled_text("packageDigest")?.map(|text| {
            // Only one spelling is accepted, so that the body is unique.
            let digest = Digest::parse(&text).ok().filter(|digest| digest.to_string() == text);
            digest.ok_or(ShapeError::Unexpected {
                member: "packageDigest",
                expected: "a digest like `sha512-` and base64",
            })
        });
        let tool_digests = fields.table("toolDigests", MAX_TOOLS)?;
        if !tool_digests.values().all(|text| is_hash(text)) {
            return Err(ShapeError::Unexpected {
                member: "toolDigests",
                expected: "an object of tools' names and 64 hexadecimal digits in lower case",
            });
        }
        let added = Added {
            not_before: fields.moment("notBefore")?,
            expires: fields.moment("expires")?,
            package_digest: digest.transpose()?,
            tool_clearance: fields.table("toolClearance", MAX_TOOLS)?,
            tool_digests,
        };
        match (&added.not_before, &added.expires) {
            (Some(from), Some(to)) if to.at <= from.at => {
                Err(ShapeError::Unexpected { member: "expires", expected: "after `notBefore`" })
            }
            _ => Ok(added),
        }
    }
}

/// Only one spelling is accepted, so that the body is unique.
fn is_hash(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 64 && text.bytes().all(is_digit)
}

#[derive(Clone, Copy)]
enum Verification<'a> {
    Text(&'a str),
    Undefined,
}

/// A JSON object written member by member, in the caller's order.
pub(crate) struct Object(Vec<u8>);

impl Object {
    pub(crate) fn new(room: usize) -> Object {
        let mut out = Vec::with_capacity(room);
        out.push(b'{');
        Object(out)
    }

    pub(crate) fn raw(&mut self, member: &str, value: &[u8]) {
        self.name(member);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, member: &str, value: &str) {
        self.name(member);
        escape_into(value, &mut self.0);
    }

    pub(crate) fn optional(&mut self, member: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(member, value),
            None => self.raw(member, b"null"),
        }
    }

    /// Writes the elements in the order of their UTF-16 code units.
    pub(crate) fn list(&mut self, member: &str, values: &[String]) {
        self.name(member);
        let mut sorted: Vec<&String> = values.iter().collect();
        sorted.sort_by(|left, right| utf16_order(left, right));
        self.0.push(b'[');
        for (number, value) in sorted.into_iter().enumerate() {
            if number > 0 {
                self.0.push(b',');
            }
            escape_into(value, &mut self.0);
        }
        self.0.push(b']');
    }

    fn table<'a>(&mut self, member: &str, values: impl Iterator<Item = (&'a String, &'a String)>) {
        self.name(member);
        let mut sorted: Vec<_> = values.collect();
        sorted.sort_by(|left, right| utf16_order(left.0, right.0));
        let mut inner = Object::new(sorted.len().saturating_mul(96));
        for (name, value) in sorted {
            inner.text(name, value);
        }
        self.0.extend_from_slice(&inner.finish());
    }

    fn name(&mut self, member: &str) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        escape_into(member, &mut self.0);
        self.0.push(b':');
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

#[cfg(test)]
mod tests;
