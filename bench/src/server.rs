//! A server with minimal overhead: it searches a line for the parts it needs, without parsing it.
//!
//! It understands the messages of `peer` and the gate's own requests, and might misread others.

use crate::likeness;
use std::io::{self, IoSlice, Write};

/// The number of tools per page of the list.
pub const PAGE_TOOLS: usize = 1_000;

/// Makes the server change one tool, and announce it before the response.
pub const CHANGE: &str = "bench/change";
/// Asks for the number of calls received.
pub const COUNT: &str = "bench/count";
/// The tool that changes.
pub const CHANGING: usize = 1;

/// How much of a line is searched for the id, the method and the name of the tool.
const HEAD_BYTES: usize = 512;

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// The state of the server.
#[derive(Debug)]
pub struct Server {
    pages: Vec<String>,
    tools: usize,
    edition: u64,
    calls: u64,
}

impl Server {
    /// A server with this many tools, one of which has a description that contains the edition.
    pub fn new(tools: usize, edition: u64) -> Server {
        let mut server = Server { pages: Vec::new(), tools, edition, calls: 0 };
        server.write_pages();
        server
    }

    fn write_pages(&mut self) {
        self.pages = pages_of(self.tools, self.edition);
    }

    /// Answers one line, given without its newline.
    pub fn answer(&mut self, line: &[u8], output: &mut impl Write) -> io::Result<()> {
        let head = line.get(..line.len().min(HEAD_BYTES)).unwrap_or_default();
        let Some(id) = value_after(head, b"\"id\":") else { return Ok(()) };
        match string_after(head, b"\"method\":\"") {
            Some(b"tools/call") => {
                self.calls += 1;
                let text = text_of(line).unwrap_or_default();
                write_parts(
                    output,
                    &[
                        br#"{"jsonrpc":"2.0","id":"#,
                        id,
                        br#","result":{"content":[{"type":"text","text":""#,
                        text,
                        b"\"}]}}\n",
                    ],
                )
            }
            Some(b"tools/list") => {
                let page = string_after(head, b"\"cursor\":\"")
                    .and_then(|cursor| std::str::from_utf8(cursor).ok()?.parse::<usize>().ok());
                let page = self.pages.get(page.unwrap_or(0)).map_or("{}", String::as_str);
                write_result(output, id, page)
            }
            Some(b"initialize") => {
                let hello = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"echo","version":"1"}}"#;
                write_result(output, id, hello)
            }
            Some(method) if method == CHANGE.as_bytes() => {
                self.edition += 1;
                self.write_pages();
                write_parts(output, &[CHANGED.as_bytes(), b"\n"])?;
                write_result(output, id, &self.edition.to_string())
            }
            Some(method) if method == COUNT.as_bytes() => {
                write_result(output, id, &self.calls.to_string())
            }
            _ => write_parts(
                output,
                &[
                    br#"{"jsonrpc":"2.0","id":"#,
                    id,
                    b",\"error\":{\"code\":-32601,\"message\":\"no such method\"}}\n",
                ],
            ),
        }
    }
}

/// The pages of a list in which one tool's description contains the edition.
pub fn pages_of(tools: usize, edition: u64) -> Vec<String> {
    let old = format!("the records of collection {CHANGING}.");
    let new = format!("the records of collection {CHANGING}, edition {edition}.");
    let all = likeness::pages(tools, PAGE_TOOLS).into_iter();
    all.map(|page| page.replace(&old, &new)).collect()
}

fn write_result(output: &mut impl Write, id: &[u8], result: &str) -> io::Result<()> {
    write_parts(
        output,
        &[br#"{"jsonrpc":"2.0","id":"#, id, br#","result":"#, result.as_bytes(), b"}\n"],
    )
}

/// Writes with one system call if possible, as other implementations do.
fn write_parts<const N: usize>(output: &mut impl Write, parts: &[&[u8]; N]) -> io::Result<()> {
    let mut slices = parts.map(IoSlice::new);
    let mut slices = slices.as_mut_slice();
    while !slices.is_empty() {
        match output.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut slices, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The value of a member, up to the next comma or brace.
pub fn value_after<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = after(line, name)?;
    let end = rest.iter().position(|byte| matches!(byte, b',' | b'}'))?;
    rest.get(..end)
}

/// The string value of a member.
pub fn string_after<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = after(line, name)?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    rest.get(..end)
}

/// The text in a call's arguments: the last string of the line.
fn text_of(line: &[u8]) -> Option<&[u8]> {
    let head = line.get(..line.len().min(HEAD_BYTES))?;
    let start = line.len() - (after(head, b"\"query\":\"")?.len() + line.len() - head.len());
    let tail = line.get(start..)?;
    let end = tail.iter().rposition(|byte| *byte == b'"')?;
    tail.get(..end)
}

fn after<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let start = line.windows(name.len()).position(|window| window == name)?;
    line.get(start + name.len()..)
}

#[cfg(test)]
mod tests;
