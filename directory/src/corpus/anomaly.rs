//! Reports keys that contribute unusually much, contradict others, or contribute in bursts. The
//! report accuses no one: the operator reads it, checks the contributions, and decides.

use super::Adjudication;
use gate::network::CorpusVerdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// The number of days that the report covers.
pub const WINDOW_DAYS: i64 = 30;
/// `much`: at least this many contributions in the window, and more than [`MUCH_TIMES`] those of
/// the median owner.
pub const MUCH_AT_LEAST: u64 = 100;
pub const MUCH_TIMES: u64 = 4;
/// `burst`: at least this many in one hour, and more than [`BURST_TIMES`] the mean of the key's
/// other hours.
pub const BURST_AT_LEAST: u64 = 50;
pub const BURST_TIMES: u64 = 10;
/// `contradicts`: at least this many contradictions, and at least one in [`CONTRADICTS_ONE_IN`] of
/// the comparable verdicts.
pub const CONTRADICTS_AT_LEAST: u64 = 3;
pub const CONTRADICTS_ONE_IN: u64 = 5;

/// The activity of a key in one hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourOfKey {
    pub key: String,
    pub owner: String,
    /// Hours since 1970-01-01.
    pub hour: i64,
    pub contributions: u64,
    pub reports: u64,
    /// Messages refused because the daily quota was used up.
    pub refused: u64,
}

/// All verdicts on one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub voices: Vec<(String, CorpusVerdict)>,
    pub adjudication: Option<Adjudication>,
}

/// Why a line deserves attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    Much,
    Burst,
    Contradicts,
}

impl Flag {
    pub const fn as_str(self) -> &'static str {
        match self {
            Flag::Much => "much",
            Flag::Burst => "burst",
            Flag::Contradicts => "contradicts",
        }
    }
}

/// A key in the report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct KeyLine {
    pub key: String,
    pub owner: String,
    pub contributions: u64,
    pub reports: u64,
    pub refused: u64,
    /// The most contributions in any hour.
    pub busiest_hour: u64,
    /// The owner's contributions on definitions that the operator or other owners judged as well.
    pub comparable: u64,
    pub contradictions: u64,
    pub flags: Vec<Flag>,
}

/// The lines of all active keys, flagged ones first.
pub fn report(hours: &[HourOfKey], said: impl IntoIterator<Item = Said>) -> Vec<KeyLine> {
    let mut lines: BTreeMap<&str, KeyLine> = BTreeMap::new();
    let mut by_key: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let mut by_owner: BTreeMap<&str, u64> = BTreeMap::new();
    for hour in hours {
        let line = lines.entry(&hour.key).or_insert_with(|| KeyLine {
            key: hour.key.clone(),
            owner: hour.owner.clone(),
            ..KeyLine::default()
        });
        line.contributions += hour.contributions;
        line.reports += hour.reports;
        line.refused += hour.refused;
        line.busiest_hour = line.busiest_hour.max(hour.contributions);
        by_key.entry(&hour.key).or_default().push(hour.contributions);
        *by_owner.entry(&hour.owner).or_default() += hour.contributions;
    }
    let compared = compared(said);
    let usual = median(by_owner.values().copied().filter(|count| *count > 0).collect());
    let mut lines: Vec<KeyLine> = lines.into_values().collect();
    for line in &mut lines {
        let (comparable, contradictions) = compared.get(&line.owner).copied().unwrap_or_default();
        (line.comparable, line.contradictions) = (comparable, contradictions);
        let all = by_owner.get(line.owner.as_str()).copied().unwrap_or(0);
        if all >= MUCH_AT_LEAST && all > MUCH_TIMES * usual {
            line.flags.push(Flag::Much);
        }
        if by_key.get(line.key.as_str()).is_some_and(|hours| is_burst(hours)) {
            line.flags.push(Flag::Burst);
        }
        if contradictions >= CONTRADICTS_AT_LEAST
            && contradictions * CONTRADICTS_ONE_IN >= comparable
        {
            line.flags.push(Flag::Contradicts);
        }
    }
    lines.sort_by(|a, b| {
        (b.flags.len(), b.contributions, &a.key).cmp(&(a.flags.len(), a.contributions, &b.key))
    });
    lines
}

fn is_burst(hours: &[u64]) -> bool {
    let most = hours.iter().copied().max().unwrap_or(0);
    let others = hours.len().saturating_sub(1) as u64;
    let rest: u64 = hours.iter().sum::<u64>() - most;
    // most > BURST_TIMES · rest / others, without a division.
    most >= BURST_AT_LEAST && most * others.max(1) > BURST_TIMES * rest
}

/// The lower median: of two owners, the one with fewer contributions is typical.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// For each owner: the number of definitions that others judged as well, and how often the owner
/// was contradicted.
fn compared(said: impl IntoIterator<Item = Said>) -> BTreeMap<String, (u64, u64)> {
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for Said { voices, adjudication } in said {
        let dangerous = voices.iter().filter(|(_, it)| *it == CorpusVerdict::Dangerous).count();
        let cleared = voices.len() - dangerous;
        for (owner, verdict) in voices {
            let (same, other) = match verdict {
                CorpusVerdict::Dangerous => (dangerous - 1, cleared),
                CorpusVerdict::Cleared => (cleared - 1, dangerous),
            };
            let contradicts = match adjudication {
                Some(Adjudication::Said(said, _)) => Some(said != verdict),
                Some(Adjudication::Invalidated) => None,
                None if same + other == 0 => None,
                None => Some(other > same),
            };
            if let Some(contradicts) = contradicts {
                let count = all.entry(owner).or_default();
                count.0 += 1;
                count.1 += u64::from(contradicts);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use gate::network::ReasonClass;

    fn hours(key: &str, owner: &str, counts: &[u64]) -> Vec<HourOfKey> {
        let hour = |(at, count): (usize, &u64)| HourOfKey {
            key: key.to_owned(),
            owner: owner.to_owned(),
            hour: at as i64,
            contributions: *count,
            reports: 0,
            refused: 0,
        };
        counts.iter().enumerate().map(hour).collect()
    }

    fn flags(lines: &[KeyLine], owner: &str) -> Vec<Flag> {
        lines.iter().find(|line| line.owner == owner).unwrap().flags.clone()
    }

    #[test]
    fn a_key_that_contributes_much_more_than_the_others_is_flagged_and_an_ordinary_one_is_not() {
        let mut all = Vec::new();
        for owner in ["a", "b", "c"] {
            all.extend(hours(owner, owner, &[10, 10, 5]));
        }
        all.extend(hours("k", "loud", &[40; 20]));
        let lines = report(&all, []);
        assert_eq!(flags(&lines, "loud"), [Flag::Much]);
        assert!(["a", "b", "c"].iter().all(|owner| flags(&lines, owner).is_empty()));
        assert_eq!(lines[0].owner, "loud", "flagged keys come first");
        let modest = report(&hours("k", "one", &[40; 2]), []);
        assert!(flags(&modest, "one").is_empty());
    }

    #[test]
    fn an_hour_far_above_the_others_is_a_burst() {
        for (counts, is_flagged) in [
            (&[60][..], true),
            (&[49], false),
            (&[60, 5, 5, 5], true),
            (&[60, 50, 55, 52], false),
            (&[5, 5, 5], false),
        ] {
            let lines = report(&hours("k", "o", counts), []);
            assert_eq!(lines[0].flags.contains(&Flag::Burst), is_flagged, "{counts:?}");
        }
    }

    #[test]
    fn an_owner_who_contradicts_the_operator_or_most_owners_is_flagged() {
        let voice = |owner: &str, verdict| (owner.to_owned(), verdict);
        let against = |adjudication| Said {
            voices: vec![
                voice("odd", CorpusVerdict::Cleared),
                voice("a", CorpusVerdict::Dangerous),
                voice("b", CorpusVerdict::Dangerous),
            ],
            adjudication,
        };
        let said = CorpusVerdict::Dangerous;
        let decided = Some(Adjudication::Said(said, ReasonClass::Injection));
        let alone = Said { voices: vec![voice("odd", said)], adjudication: None };
        let mut all = hours("k", "odd", &[4]);
        all.extend(hours("l", "a", &[4]));
        let lines = report(&all, [against(None), against(decided), against(None), alone]);
        let line = lines.iter().find(|line| line.owner == "odd").unwrap();
        assert_eq!((line.comparable, line.contradictions), (3, 3));
        assert_eq!(line.flags, [Flag::Contradicts]);
        assert!(flags(&lines, "a").is_empty());
    }
}
