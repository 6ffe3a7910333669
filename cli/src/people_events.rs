//! Reads the ledger's index of a workplace: acts of people, and findings of gates.

use crate::failure::Failure;
use crate::target::Workplace;
use ledger::receipt::EventReceipt;

/// The events of the index, oldest first; empty if there are no receipts yet.
pub(crate) fn people_events(workplace: &Workplace) -> Result<Vec<EventReceipt>, Failure> {
    Ok(engine::people_events::people_events(workplace.store.journal().folder())?)
}
