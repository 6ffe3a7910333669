//! Rows of counters.

use crate::act::within;
use crate::database::{Backend, Row};
use crate::error::StoreError;
use crate::statistics::{
    Count, Day, MAX_COUNTER_BYTES, MAX_COUNTS_PER_WRITE, MAX_COUNTS_READ, StatisticsStore,
};

impl<B: Backend> StatisticsStore for B {
    fn add_counts(&mut self, counts: &[Count]) -> Result<(), StoreError> {
        within("the number of counters", counts.len(), MAX_COUNTS_PER_WRITE)?;
        for count in counts {
            within("the name of a counter", count.name.len(), MAX_COUNTER_BYTES)?;
        }
        if counts.is_empty() {
            return Ok(());
        }
        let set = |count: &Count| i64::try_from(count.value).unwrap_or(i64::MAX);
        let sets: Vec<_> = counts
            .iter()
            .map(|count| {
                let server = count.server.as_str();
                vec![count.day.0.into(), server.into(), (&count.name).into(), set(count).into()]
            })
            .collect();
        let sql = format!(
            "INSERT INTO statistics (day, server, name, value) VALUES ($1, $2, $3, $4)
             ON CONFLICT (day, server, name) DO UPDATE SET value =
                 CASE WHEN statistics.value > {largest} - $4 THEN {largest} ELSE statistics.value + $4 END",
            largest = i64::MAX
        );
        self.write(|rows, _| rows.execute_each(&sql, &sets))
    }

    fn counts(&self, from: Day, to: Day) -> Result<Vec<Count>, StoreError> {
        let query = format!(
            "SELECT day, server, name, value FROM statistics WHERE day BETWEEN $1 AND $2
             ORDER BY day, server, name LIMIT {}",
            MAX_COUNTS_READ + 1
        );
        let garbled = || StoreError::Garbled { what: "a counter" };
        let counts = self.read(|rows| {
            rows.all(&query, &[from.0.into(), to.0.into()], |row| from_row(row).ok_or_else(garbled))
        })?;
        within("the number of counters", counts.len(), MAX_COUNTS_READ)?;
        Ok(counts)
    }
}

fn from_row(row: &dyn Row) -> Option<Count> {
    Some(Count {
        day: Day(row.cell(0).integer()?),
        server: row.cell(1).text()?.parse().ok()?,
        name: row.cell(2).text()?.to_owned(),
        value: u64::try_from(row.cell(3).integer()?).ok()?,
    })
}
