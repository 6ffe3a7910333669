//! The tools whose definitions require arguments in headers, as the client saw them. Most servers
//! have none, and this only applies to stateless HTTP servers.

use contract::surface::{EntryId, EntryType, ListKind, Surface};
use gate::judge::SurfaceJudgement;
use gate::method::Target;
use gate::pins::PinBook;
use gate::shown::{ListMode, shown};
use std::collections::HashMap;
use wire::envelope::members;
use wire::remote::{BadAnnotation, MirroredParameters};

/// What a tool's definition requires.
pub type Mirroring = Result<MirroredParameters, BadAnnotation>;

/// The tools that require headers, by name.
#[derive(Debug, Clone, Default)]
pub struct Mirrorings(HashMap<Box<str>, Mirroring>);

impl Mirrorings {
    /// INVARIANT: the headers of a call are those that the accepted definition requires, whatever
    /// the server shows now.
    pub(crate) fn of(
        book: &PinBook,
        surface: &Surface,
        judgement: &SurfaceJudgement,
        mode: ListMode,
    ) -> Mirrorings {
        let tools = shown(book, surface, judgement, ListKind::Tools, mode).into_iter();
        let asked = tools.map(|(id, raw)| (id, MirroredParameters::of_tool(raw)));
        let asked =
            asked.filter(|(_, mirroring)| !matches!(mirroring, Ok(none) if none.is_empty()));
        Mirrorings(asked.map(|(id, mirroring)| (id.key.as_str().into(), mirroring)).collect())
    }

    /// What a tool's definition requires, if anything.
    pub fn get(&self, target: Target<'_>) -> Option<&Mirroring> {
        let is_tool = target.entry_type == EntryType::Tool;
        self.0.get(target.key).filter(|_| is_tool)
    }

    /// Whether an entry can be called as its definition requires. A tool that cannot be is not
    /// offered.
    pub(crate) fn can_be_called(&self, id: &EntryId) -> bool {
        id.entry_type != EntryType::Tool || !matches!(self.0.get(id.key.as_str()), Some(Err(_)))
    }
}

/// Whether a server is stateless, according to its handshake. Before the handshake it is assumed
/// not to be.
pub(crate) fn is_stateless(handshake: Option<&str>) -> bool {
    let said = handshake.unwrap_or_default().as_bytes();
    !members(said).any(|(name, _)| name == "protocolVersion")
}
