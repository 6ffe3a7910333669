//! `holdpoint incident drill`: measures how long a switch takes to reach every gateway on a store.
//! Nothing is stopped: the command raises a number in the store, and each process that follows the
//! store reports having read it.

use crate::approver;
use crate::arguments::Options;
use crate::failure::{Exit, Failure};
use crate::screen::{self, BOLD, DIM, GREEN, RED, styled};
use crate::target::Workplace;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use store::{DrillSighting, DrillStore, Home, Location, NodeRegistry, StoreError};

/// The time within which every process must have seen the switch.
const BOUND: Duration = Duration::from_secs(1);
/// `QUIET`: the minimum wait, for processes that are not registered. `PATIENCE`: the maximum wait,
/// for registered ones.
const QUIET: Duration = Duration::from_millis(1_200);
const PATIENCE: Duration = Duration::from_secs(5);
/// The polling interval, which is also the largest error of the measured times.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

#[derive(Debug, Serialize)]
struct DrillDocument {
    drill: i64,
    bound_ms: u64,
    nodes: Vec<NodeDocument>,
}

#[derive(Debug, Serialize)]
struct NodeDocument {
    node: String,
    place: String,
    /// `None` if it did not report in time.
    seen_after_ms: Option<u64>,
}

pub(super) fn run(
    workplace: &mut Workplace,
    location: &Location,
    options: &Options,
) -> Result<Exit, Failure> {
    let expected = expected_nodes(&workplace.home, location)?;
    let name = approver::name();
    let drill = workplace.store.begin_drill(approver::by(&name))?;
    let nodes = measure(&workplace.store, drill, expected)?;
    let document = DrillDocument { drill, bound_ms: milliseconds(BOUND), nodes };
    let is_late =
        |node: &NodeDocument| node.seen_after_ms.is_none_or(|after| after > document.bound_ms);
    let exit = if document.nodes.iter().any(is_late) { Exit::Held } else { Exit::Fine };
    if options.json {
        screen::print_json(&document)?;
    } else {
        print_result(&document, options);
    }
    Ok(exit)
}

/// The nodes that have to report: those registered as running.
fn expected_nodes(
    home: &Home,
    location: &Location,
) -> Result<BTreeMap<String, String>, StoreError> {
    let Location::Postgres(address) = location else { return Ok(BTreeMap::new()) };
    let nodes = NodeRegistry::open(home, address)?.nodes()?;
    let live = nodes.into_iter().filter(|node| node.gone_at.is_none());
    Ok(live.map(|node| (node.id.to_string(), node.address)).collect())
}

fn measure(
    store: &dyn DrillStore,
    drill: i64,
    expected: BTreeMap<String, String>,
) -> Result<Vec<NodeDocument>, StoreError> {
    let begun = Instant::now();
    let mut seen: BTreeMap<DrillSighting, u64> = BTreeMap::new();
    loop {
        for sighting in store.drill_sightings(drill)? {
            seen.entry(sighting).or_insert_with(|| milliseconds(begun.elapsed()));
        }
        let has_all = expected.keys().all(|id| seen.keys().any(|sighting| sighting.node == *id));
        if (has_all && begun.elapsed() >= QUIET) || begun.elapsed() >= PATIENCE {
            break;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let missing =
        expected.into_iter().filter(|(id, _)| !seen.keys().any(|sighting| sighting.node == *id));
    let missing: Vec<NodeDocument> =
        missing.map(|(node, place)| NodeDocument { node, place, seen_after_ms: None }).collect();
    let reported = seen.into_iter().map(|(DrillSighting { node, place }, after)| NodeDocument {
        node,
        place,
        seen_after_ms: Some(after),
    });
    Ok(reported.chain(missing).collect())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn print_result(document: &DrillDocument, options: &Options) {
    for NodeDocument { place, seen_after_ms, .. } in &document.nodes {
        let place = styled(BOLD, screen::readable(place));
        screen::say(match seen_after_ms {
            Some(after) if *after <= document.bound_ms => {
                format!("{}  {place} after {after} ms", styled(GREEN.bold(), "SEEN"))
            }
            Some(after) => format!(
                "{}  {place} after {after} ms: more than {} ms",
                styled(RED.bold(), "LATE"),
                document.bound_ms
            ),
            None => format!("{}  {place} did not report", styled(RED.bold(), "MISSING")),
        });
    }
    if document.nodes.is_empty() {
        screen::say("no gateway follows this store");
    }
    if !options.quiet {
        let words = "nothing was stopped; `holdpoint run` reads the switches before each call, so it is not measured";
        screen::say(styled(DIM, words));
    }
}
