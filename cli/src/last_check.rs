//! How the last check of a server's admission ended, as the ledger recorded it.

use crate::failure::Failure;
use crate::target::Workplace;
use gate::server::ServerId;
use ledger::receipt::{Filter, Item, newest};
use serde::Serialize;
use store::receipts::DiskFolder;

/// The outcome of the last check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LastCheck {
    /// `ok`, `warn` or `deny`, as in receipts.
    verdict: &'static str,
    reason: Option<String>,
    note: Option<String>,
    signer: Option<String>,
}

impl LastCheck {
    /// Reads the newest outcome. Returns `None` if the configuration requires no attestation of the
    /// server, or no gate has checked it yet.
    pub(crate) fn of(workplace: &Workplace, id: &ServerId) -> Result<Option<LastCheck>, Failure> {
        if !workplace.configuration.requires_attestation(id) {
            return Ok(None);
        }
        let path = workplace.home.receipts_path();
        if !path.exists() {
            return Ok(None);
        }
        let folder = DiskFolder::new(&path);
        let filter = Filter { server: Some(id.to_string()), ..Filter::default() };
        let is_outcome = |item: &Item| verdict_of(item).is_some();
        let found = newest(&folder, &filter, &is_outcome, 1)?;
        Ok(found.items.last().and_then(LastCheck::read))
    }

    /// Whether the server was not admitted.
    pub(crate) fn is_denied(&self) -> bool {
        self.verdict == "deny"
    }

    fn read(item: &Item) -> Option<LastCheck> {
        let Item::Event(event) = item else { return None };
        let text = |name: &str| Some(event.data.as_ref()?.get(name)?.as_str()?.to_owned());
        let verdict = verdict_of(item)?;
        Some(LastCheck {
            verdict,
            reason: text("reason"),
            note: text("note"),
            signer: text("signer"),
        })
    }

    /// A warning for a person; `None` if the server is attested.
    pub(crate) fn warning(&self) -> Option<String> {
        let reason = self.reason.as_deref().unwrap_or("unattested");
        match (self.verdict, &self.note) {
            ("ok", _) => None,
            ("deny", _) => Some(format!("not attested, so it is not admitted: {reason}")),
            (_, Some(note)) => Some(format!("not attested ({note}): {reason}")),
            (_, None) => Some(format!("not attested: {reason}")),
        }
    }
}

fn verdict_of(item: &Item) -> Option<&'static str> {
    let Item::Event(event) = item else { return None };
    match event.name.as_str() {
        "mcp.connect.allow" => Some("ok"),
        "mcp.connect.warn" => Some("warn"),
        "mcp.connect.deny" => Some("deny"),
        _ => None,
    }
}
