//! The gate's results: recall and false holds on mutations, and friction over histories.

use super::corpus::Corpus;
use super::peer::{Peer, Said};
use super::table::{Table, at_least, at_most};
use crate::failure::Failure;
use gate::posture::Posture;
use measure::bounds::lower;
use measure::evaluation::{Case, Judged, Role, Stratum, cases, is_held_out, judge};
use measure::friction::Friction;
use measure::plot::{Row, rates};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The postures that can stop anything.
const POSTURES: [Posture; 3] = [Posture::Shield, Posture::Guard, Posture::Strict];
/// The pooled recall to reach, and the minimum number of cases.
const MIN_RECALL: f64 = 0.9;
const MIN_CASES: usize = 100;

/// How many cases of a stratum were judged correctly.
#[derive(Debug, Default, Clone, Copy)]
struct Count {
    right: usize,
    of: usize,
}

#[derive(Debug)]
pub(super) struct GateFigures {
    seed: u64,
    packages: usize,
    held_out: usize,
    strata: BTreeMap<(Stratum, &'static str), Count>,
    /// The outcome of each case, for calibration.
    judged: Vec<(String, Stratum, Posture, Judged)>,
    peer: Option<BTreeMap<Stratum, Count>>,
    friction: Friction,
}

impl GateFigures {
    pub(super) fn of(
        corpus: &Corpus,
        seed: u64,
        peer: Option<&Peer>,
    ) -> Result<GateFigures, Failure> {
        let mut figures = GateFigures {
            seed,
            packages: corpus.packages.len(),
            held_out: 0,
            strata: BTreeMap::new(),
            judged: Vec::new(),
            peer: peer.map(|_| BTreeMap::new()),
            friction: Friction::default(),
        };
        for (package, newest) in corpus.newest().filter(|(package, _)| is_held_out(package)) {
            figures.held_out += 1;
            for case in cases(package, newest, seed) {
                figures.case(&case, peer)?;
            }
        }
        for package in &corpus.packages {
            figures.friction.package(&package.releases);
        }
        Ok(figures)
    }

    fn case(&mut self, case: &Case, peer: Option<&Peer>) -> Result<(), Failure> {
        let (stratum, role) = (case.stratum, case.stratum.role());
        for posture in POSTURES {
            let judged = judge(case, posture);
            let is_right = judged.is_right(role);
            let count = self.strata.entry((stratum, posture.as_str())).or_default();
            count.of += 1;
            count.right += usize::from(is_right);
            self.judged.push((case.package.clone(), stratum, posture, judged));
        }
        if let (Some(peer), Some(counts)) = (peer, &mut self.peer) {
            let judged = match peer.judge(case)? {
                Said::Introduced => Judged::Stopped,
                Said::Nothing => Judged::Passed,
                Said::NotAsked => return Ok(()),
            };
            let count = counts.entry(stratum).or_default();
            count.of += 1;
            count.right += usize::from(judged.is_right(role));
        }
        Ok(())
    }

    fn count(&self, stratum: Stratum, posture: Posture) -> Count {
        self.strata.get(&(stratum, posture.as_str())).copied().unwrap_or_default()
    }

    fn pooled(&self, posture: Posture, is_in: impl Fn(Role) -> bool) -> Count {
        let strata = Stratum::ALL.into_iter().filter(|stratum| is_in(stratum.role()));
        strata.fold(Count::default(), |sum, stratum| {
            let count = self.count(stratum, posture);
            Count { right: sum.right + count.right, of: sum.of + count.of }
        })
    }

    fn misses(&self, posture: Posture) -> usize {
        let safety = self.pooled(posture, |role| role == Role::Safety);
        safety.of - safety.right
    }

    /// Whether no case of a safety stratum was missed and the others reach the recall.
    pub(super) fn passes(&self, posture: Posture) -> bool {
        let pool = self.pooled(posture, |role| role != Role::Harmless);
        let recall = lower(pool.right as f64, pool.of as f64);
        self.misses(posture) == 0 && pool.of >= MIN_CASES && recall >= MIN_RECALL
    }

    pub(super) fn tables(&self) -> Vec<Table> {
        vec![self.strata_table(), self.pooled_table(), self.friction_table(), self.calls_table()]
    }

    fn strata_table(&self) -> Table {
        let mut head = vec!["stratum", "is for", "shield", "guard", "strict"];
        head.extend(self.peer.as_ref().map(|_| "mcp-pin, graded"));
        let rows = Stratum::ALL.into_iter().map(|stratum| {
            let role = match stratum.role() {
                Role::Safety => "safety",
                Role::Drift => "recall",
                Role::Harmless => "false holds",
            };
            let wrong = |count: Count| match count.of {
                0 => "no case".to_owned(),
                of => format!("{} of {of}", of - count.right),
            };
            let mut row = vec![stratum.as_str().to_owned(), role.to_owned()];
            row.extend(POSTURES.map(|posture| wrong(self.count(stratum, posture))));
            row.extend(
                self.peer
                    .as_ref()
                    .map(|peer| wrong(peer.get(&stratum).copied().unwrap_or_default())),
            );
            row
        });
        Table {
            title: "Mutations of held-out contracts: how many were judged wrongly",
            head,
            rows: rows.collect(),
            note: format!(
                "{} of {} packages are held out; one case for each package and stratum, where its contract has something to mutate; seed {}. Wrong is a mutation that was let through, and for false holds a harmless one that was stopped.",
                self.held_out, self.packages, self.seed
            ),
        }
    }

    fn pooled_table(&self) -> Table {
        let rows = POSTURES.map(|posture| {
            let recall = self.pooled(posture, |role| role != Role::Harmless);
            let harmless = self.pooled(posture, |role| role == Role::Harmless);
            vec![
                posture.to_string(),
                at_least(recall.right, recall.of),
                at_most(harmless.of - harmless.right, harmless.of),
                self.misses(posture).to_string(),
                if self.passes(posture) { "passes" } else { "fails" }.to_owned(),
            ]
        });
        Table {
            title: "Recall and false holds, pooled",
            head: vec![
                "posture",
                "stopped what it should",
                "stopped what is harmless",
                "misses in safety strata",
                "gate",
            ],
            rows: rows.into_iter().collect(),
            note: format!(
                "In brackets the one-sided 95 % bound (Clopper-Pearson). The gate asks for a bound of at least {:.0} % over at least {MIN_CASES} cases and for no miss in a safety stratum. Strict holds on any change, harmless ones too: that is what it is for.",
                100.0 * MIN_RECALL
            ),
        }
    }

    fn friction_table(&self) -> Table {
        let of = self.friction.pairs;
        let share =
            |count: usize| format!("{count} ({:.1} %)", 100.0 * count as f64 / of.max(1) as f64);
        let rows = Posture::ALL.map(|posture| {
            let held = self.friction.of(posture);
            vec![
                posture.to_string(),
                share(held.pairs),
                share(held.deferred),
                share(held.stopped_pairs),
                share(held.call_pairs),
            ]
        });
        Table {
            title: "Friction over release histories",
            head: vec![
                "posture",
                "holds something",
                "something waits",
                "stops a tool that is in both",
                "stops a call that worked",
            ],
            rows: rows.into_iter().collect(),
            note: format!(
                "{} releases, {of} pairs of adjacent ones, {} of them changed; the older as approved by a person. Releases have no labels: this is work for people, not a rate of false positives.",
                self.friction.releases, self.friction.changed
            ),
        }
    }

    fn calls_table(&self) -> Table {
        let share = |count: usize, of: usize| {
            format!("{count} of {of} ({:.1} %)", 100.0 * count as f64 / of.max(1) as f64)
        };
        let rows = Posture::ALL.map(|posture| {
            let held = self.friction.of(posture);
            vec![
                posture.to_string(),
                share(held.call_tools, self.friction.tools),
                share(held.calls, self.friction.calls),
            ]
        });
        Table {
            title: "Calls that worked before an update and are stopped after it",
            head: vec!["posture", "tools with such a call", "calls"],
            rows: rows.into_iter().collect(),
            note: "Calls are made from the older release's schemas, seeded, and valid there."
                .to_owned(),
        }
    }

    /// One line per case and posture, in the format of `calibrate report --outcomes`.
    pub(super) fn outcomes(&self) -> String {
        let line = |(package, stratum, posture, judged): &(String, Stratum, Posture, Judged)| {
            let direction = match judged {
                Judged::Stopped => "held",
                Judged::Passed => "cleared",
            };
            // Cases have no timestamps; within a cell they are ordered by package.
            let line = json!({
                "at": "2026-01-01T00:00:00Z",
                "source": "held-out",
                "direction": direction,
                "posture": posture.as_str(),
                "kind": kind(*stratum),
                "server": package,
                "wrong": !judged.is_right(stratum.role()),
            });
            format!("{line}\n")
        };
        self.judged.iter().map(line).collect()
    }

    pub(super) fn document(&self) -> Value {
        let strata: Vec<Value> = Stratum::ALL
            .into_iter()
            .flat_map(|stratum| POSTURES.map(|posture| (stratum, posture)))
            .map(|(stratum, posture)| {
                let Count { right, of } = self.count(stratum, posture);
                json!({ "stratum": stratum.as_str(), "posture": posture.as_str(), "cases": of, "wrong": of - right })
            })
            .collect();
        let postures: Vec<Value> = POSTURES
            .map(|posture| {
                let recall = self.pooled(posture, |role| role != Role::Harmless);
                let harmless = self.pooled(posture, |role| role == Role::Harmless);
                let held = harmless.of - harmless.right;
                json!({
                    "posture": posture.as_str(),
                    "recall": { "right": recall.right, "cases": recall.of, "lower_95": lower(recall.right as f64, recall.of as f64) },
                    "false_holds": { "held": held, "cases": harmless.of, "upper_95": measure::bounds::upper(held as f64, harmless.of as f64) },
                    "safety_misses": self.misses(posture),
                    "passes": self.passes(posture),
                })
            })
            .into_iter()
            .collect();
        json!({ "seed": self.seed, "packages": self.packages, "held_out": self.held_out, "postures": postures, "strata": strata,
            "friction": { "releases": self.friction.releases, "pairs": self.friction.pairs, "changed": self.friction.changed,
                "held_pairs": Posture::ALL.map(|posture| json!({ "posture": posture.as_str(), "pairs": self.friction.of(posture).pairs })) } })
    }

    pub(super) fn plots(&self) -> Vec<(&'static str, String)> {
        let row = |posture: Posture| {
            let Count { right, of } = self.pooled(posture, |role| role != Role::Harmless);
            let (hits, trials) = (right as f64, of as f64);
            Row {
                label: posture.to_string(),
                rate: hits / trials.max(1.0),
                low: lower(hits, trials),
                high: measure::bounds::upper(hits, trials),
                note: format!("{right} of {of}"),
            }
        };
        let pairs = self.friction.pairs.max(1) as f64;
        let held = |posture: Posture| {
            let count = self.friction.of(posture).call_pairs;
            let (hits, rate) = (count as f64, count as f64 / pairs);
            Row {
                label: posture.to_string(),
                rate,
                low: lower(hits, pairs),
                high: measure::bounds::upper(hits, pairs),
                note: format!("{count} of {pairs}"),
            }
        };
        vec![
            (
                "evaluation-recall.svg",
                rates("Mutations stopped, with 95 % bounds", &POSTURES.map(row), Some(MIN_RECALL)),
            ),
            (
                "evaluation-friction.svg",
                rates(
                    "Updates that stop a call that worked, with 95 % bounds",
                    &Posture::ALL.map(held),
                    None,
                ),
            ),
        ]
    }
}

/// The kind of change that a stratum tests.
fn kind(stratum: Stratum) -> &'static str {
    match stratum {
        Stratum::SmuggledText | Stratum::SlowDrip | Stratum::OptionalAdded => {
            "added-optional-param"
        }
        Stratum::ByTheCall | Stratum::DescriptionRewritten => "description-only",
        Stratum::DestructiveFlip => "annotation-flip-to-destructive",
        Stratum::FirstSightText => "marker-found",
        Stratum::RequiredAdded => "added-required-param",
        Stratum::ParameterRemoved => "removed-param",
        Stratum::TypeChanged => "type-changed",
        Stratum::EnumNarrowed => "enum-values-removed",
        Stratum::ConstraintNarrowed => "constraint-narrowed",
        Stratum::DefaultChanged => "default-changed",
        Stratum::OutputChanged => "output-schema-changed",
        Stratum::InstructionsRewritten => "instructions-changed",
        Stratum::ToolRemoved => "tool-removed",
        Stratum::Reordered | Stratum::SameMeaning | Stratum::MetadataAdded => "metadata-changed",
    }
}
