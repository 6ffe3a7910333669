//! The tools whose definitions ask for arguments in headers, as the client was shown them. Most servers have none, and only
//! those that are reached over HTTP without a session are asked.

use super::Materials;
use contract::surface::ListKind;
use gate::shown::shown;
use std::collections::HashMap;
use wire::envelope::members;
use wire::remote::{BadAnnotation, MirroredParameters};

/// What a tool's definition asks for.
pub type Mirroring = Result<MirroredParameters, BadAnnotation>;

/// Where the server asks for anything, by the names of its tools.
///
/// INVARIANT: the headers of a call are those that the accepted definition asks for, whatever the server says by now.
pub(super) fn mirrorings(materials: &Materials<'_>) -> HashMap<Box<str>, Mirroring> {
    let Materials { book, surface, judgement, mode, .. } = *materials;
    if !materials.mirrors {
        return HashMap::new();
    }
    let tools = shown(book, surface, judgement, ListKind::Tools, mode).into_iter();
    let asked = tools.map(|(id, raw)| (id, MirroredParameters::of_tool(raw)));
    let asked = asked.filter(|(_, mirroring)| !matches!(mirroring, Ok(none) if none.is_empty()));
    asked.map(|(id, mirroring)| (id.key.as_str().into(), mirroring)).collect()
}

/// Whether a server is one of the era without sessions, by what it said of itself. Before that such headers are unknown.
pub(crate) fn is_stateless(handshake: Option<&str>) -> bool {
    let said = handshake.unwrap_or_default().as_bytes();
    !members(said).any(|(name, _)| name == "protocolVersion")
}
