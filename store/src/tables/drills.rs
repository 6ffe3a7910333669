//! Rows of drills. They are not sealed: no decision depends on them.

use super::events::Event;
use super::switch_seal;
use crate::act::within;
use crate::by::By;
use crate::database::{Backend, Transaction};
use crate::drill::{DrillSighting, DrillStore, MAX_DRILL_PLACE_BYTES, MAX_DRILL_SIGHTINGS};
use crate::error::StoreError;
use std::cell::Cell;

impl<B: Backend> DrillStore for B {
    fn begin_drill(&mut self, by: By<'_>) -> Result<i64, StoreError> {
        by.check()?;
        let begun = Cell::new(0);
        // The event belongs to incident mode, whose seal covers the number of the last event.
        switch_seal::change(self, |rows| {
            let number = last(rows)?.saturating_add(1);
            begun.set(number);
            rows.execute("DELETE FROM drill_sightings", &[])?;
            rows.execute("DELETE FROM drills", &[])?;
            let insert = "INSERT INTO drills (number, at) VALUES ($1, $2)";
            rows.execute(insert, &[number.into(), by.at.0.into()])?;
            Event { action: "incident.drill", subject: None, detail: None }.write(rows, by)
        })?;
        Ok(begun.get())
    }

    fn last_drill(&self) -> Result<i64, StoreError> {
        self.read(last)
    }

    fn note_drill(&mut self, drill: i64, seen_by: &DrillSighting) -> Result<(), StoreError> {
        let DrillSighting { node, place } = seen_by;
        within("the place of a process", place.len(), MAX_DRILL_PLACE_BYTES)?;
        within("the name of a process", node.len(), MAX_DRILL_PLACE_BYTES)?;
        self.write(|rows, _| {
            let count = rows.count("SELECT count(*) FROM drill_sightings", &[])?;
            within("the number of processes in a drill", count, MAX_DRILL_SIGHTINGS)?;
            rows.execute(
                "INSERT INTO drill_sightings (number, node, place) VALUES ($1, $2, $3)
                 ON CONFLICT (number, node) DO NOTHING",
                &[drill.into(), node.into(), place.into()],
            )?;
            Ok(())
        })
    }

    fn drill_sightings(&self, drill: i64) -> Result<Vec<DrillSighting>, StoreError> {
        let query =
            "SELECT node, place FROM drill_sightings WHERE number = $1 ORDER BY place, node";
        self.read(|rows| {
            rows.all(query, &[drill.into()], |row| {
                let text = |index| row.cell(index).lossy_text().unwrap_or_default();
                Ok(DrillSighting { node: text(0), place: text(1) })
            })
        })
    }
}

fn last(rows: &dyn Transaction) -> Result<i64, StoreError> {
    let newest =
        rows.first("SELECT max(number) FROM drills", &[], |row| Ok(row.cell(0).integer()))?;
    Ok(newest.flatten().unwrap_or_default())
}
