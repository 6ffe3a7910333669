//! `holdpoint stats`: counts from this machine. Sends nothing.

mod period;

use crate::arguments::Options;
use crate::arguments::stats::StatsCommand;
use crate::failure::{Exit, Failure};
use crate::observation::now;
use crate::people_events::people_events;
use crate::report::count;
use crate::screen::{self, BOLD, DIM, styled};
use crate::target::Workplace;
use contract::surface::EntryType;
use gate::posture::Posture;
use gate::time::Timestamp;
use period::{Bound, Days, Period};
use serde::Serialize;
use store::{Day, StatisticsStore, Store};

/// `stats --json`.
#[derive(Debug, Serialize)]
struct Card {
    days: u64,
    from: String,
    to: String,
    pinned: Pinned,
    this: Period,
    before: Period,
}

#[derive(Debug, Default, Serialize)]
struct Pinned {
    servers: usize,
    tools: usize,
    entries: usize,
}

pub(crate) fn run(command: &StatsCommand, options: &Options) -> Result<Exit, Failure> {
    let workplace = Workplace::open(options)?;
    let days = Days::up_to(Day::of(now()), command.days);
    let (pinned, [this, before]) = gather(&workplace, [days, days.before()])?;
    let card =
        Card { days: command.days, from: date(days.from), to: date(days.to), pinned, this, before };
    if options.json {
        screen::print_json(&card)?;
    } else {
        print_result(&card, options);
    }
    Ok(Exit::Fine)
}

/// Formats a day as a date.
pub(crate) fn date(day: Day) -> String {
    let moment = Timestamp(day.0.saturating_mul(86_400_000)).to_string();
    moment.split('T').next().unwrap_or_default().to_owned()
}

/// The counts of several periods.
fn gather<const N: usize>(
    workplace: &Workplace,
    spans: [Days; N],
) -> Result<(Pinned, [Period; N]), Failure> {
    let mut periods = [(); N].map(|()| Period::default());
    for (period, days) in periods.iter_mut().zip(spans) {
        for count in workplace.store.counts(days.from, days.to)? {
            period.count(&count);
        }
    }
    let mut pinned = Pinned::default();
    for server in workplace.store.servers()? {
        let history = workplace.store.history(&server.id)?;
        for (period, days) in periods.iter_mut().zip(spans) {
            period.acts(&history, days);
        }
        let pins = workplace.store.pins(&server.id)?;
        let entries: Vec<_> = pins.iter().filter(|(_, pins)| !pins.is_gone()).collect();
        pinned.servers += usize::from(!entries.is_empty());
        pinned.entries += entries.len();
        pinned.tools += entries.iter().filter(|(id, _)| id.entry_type == EntryType::Tool).count();
    }
    for event in people_events(workplace)? {
        for (period, _) in periods.iter_mut().zip(spans).filter(|(_, days)| days.has(event.ts)) {
            period.event(&event);
        }
    }
    Ok((pinned, periods))
}

fn print_result(card: &Card, options: &Options) {
    let pinned = format!(
        "{} pinned on {}",
        count(card.pinned.tools, "tool", "tools"),
        count(card.pinned.servers, "server", "servers")
    );
    let is_empty = card.this.is_empty() && card.before.is_empty();
    if is_empty {
        screen::say(format!("no calls were checked from {} to {}", card.from, card.to));
        screen::say(pinned);
        if !options.quiet {
            screen::say(styled(DIM, "put the gate in front of a server: holdpoint run -- CMD…"));
        }
        return;
    }
    // Two columns of 16 if there is room.
    let column = if screen::width() < 66 { 13 } else { 16 };
    let heading =
        format!("{:<34}{:>column$}{:>column$}", pinned, days_words(card.days), "before that");
    screen::say(styled(BOLD, heading));
    for row in rows(card) {
        let is_nothing = row.this == "0" && row.before == "0";
        if row.is_always || options.verbose || !is_nothing {
            screen::say(format!("{:<34}{:>column$}{:>column$}", row.name, row.this, row.before));
        }
    }
    if card.this.servers.len() > 1 {
        screen::say(styled(BOLD, "by server"));
        for (id, calls) in &card.this.servers {
            let checked = format!("{} checked", calls.checked);
            let held = format!("{} held", calls.held);
            screen::say(format!("  {id:<32}{checked:>column$}{held:>column$}"));
        }
    }
    if !options.quiet {
        screen::say(styled(DIM, "counted on this machine; nothing is sent anywhere"));
    }
}

fn days_words(days: u64) -> String {
    if days == 1 { "today".to_owned() } else { format!("last {days} days") }
}

/// One line of the card.
struct Row {
    name: String,
    this: String,
    before: String,
    /// Whether the row is shown even if it is zero.
    is_always: bool,
}

fn rows(card: &Card) -> Vec<Row> {
    let row = |name: &str, is_always: bool, value: &dyn Fn(&Period) -> String| Row {
        name: name.to_owned(),
        this: value(&card.this),
        before: value(&card.before),
        is_always,
    };
    let number = |name: &str, is_always: bool, value: fn(&Period) -> u64| {
        row(name, is_always, &|period| value(period).to_string())
    };
    let mut rows = vec![
        number("calls checked", true, |period| period.calls.checked),
        number("  held", true, |period| period.calls.held),
        number("  denied", false, |period| period.calls.denied),
        number("  failed", false, |period| period.calls.failed),
        number("other requests", false, |period| period.requests),
        number("lists asked for by the gate", false, |period| period.relists),
        number("changes held", true, |period| period.changes.held),
        number("benign changes accepted", true, |period| period.changes.repinned),
        number("changes noted", false, |period| period.changes.noted),
        number("approvals", true, |period| period.people.approvals),
        number("quarantines", false, |period| period.people.quarantines),
        number("releases", false, |period| period.people.releases),
        number("rollbacks", false, |period| period.people.rollbacks),
        number("held changes approved (overridden)", true, |period| period.outcomes.overridden),
        number("held changes stopped (confirmed)", false, |period| period.outcomes.confirmed),
    ];
    for posture in Posture::ALL {
        let name = format!("{posture} would have held");
        rows.push(row(&name, true, &|period| period.would_hold.of(posture).to_string()));
    }
    let mut tiers: Vec<u8> =
        card.this.tiers.keys().chain(card.before.tiers.keys()).copied().collect();
    tiers.sort_unstable();
    tiers.dedup();
    for tier in tiers {
        let reached = |period: &Period| period.tiers.get(&tier).copied().unwrap_or(0).to_string();
        rows.push(row(&format!("changed calls settled at tier {tier}"), false, &reached));
    }
    for (name, percent) in
        [("added time, 50 of 100 calls", 50), ("added time, 99 of 100 calls", 99)]
    {
        rows.push(row(name, true, &|period| bound(period.added_latency_us.percentile(percent))));
    }
    rows
}

/// A bound in words, rounded up so that it stays true.
fn bound(bound: Option<Bound>) -> String {
    match bound {
        None => "—".to_owned(),
        Some(Bound::Unbounded) => "8 minutes or more".to_owned(),
        Some(Bound::Below(microseconds @ 0..10_000)) => format!("< {microseconds} µs"),
        Some(Bound::Below(microseconds @ 10_000..10_000_000)) => {
            format!("< {} ms", microseconds.div_ceil(1_000))
        }
        Some(Bound::Below(microseconds)) => format!("< {} s", microseconds.div_ceil(1_000_000)),
    }
}
