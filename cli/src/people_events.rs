//! The ledger's index of a workplace: people's acts and what gates found.

use crate::failure::Failure;
use crate::target::Workplace;
use ledger::receipt::EventReceipt;

/// The events of the index, oldest first; none where there are no receipts yet.
pub(crate) fn people_events(workplace: &Workplace) -> Result<Vec<EventReceipt>, Failure> {
    Ok(engine::people_events::people_events(workplace.store.journal().folder())?)
}
