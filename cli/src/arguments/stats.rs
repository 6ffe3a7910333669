//! What can be typed after `holdpoint stats` and `holdpoint digest`.

use clap::Args;
use gate::time::Timestamp;
use store::Day;

/// The longest period that can be shown.
pub(crate) const MAX_DAYS: u64 = 366;

#[derive(Debug, Args)]
pub(crate) struct StatsCommand {
    /// How many days to show, including today, compared with as many days before
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=MAX_DAYS))]
    pub(crate) days: u64,
}

#[derive(Debug, Args)]
pub(crate) struct DigestCommand {
    /// A date in UTC such as 2026-11-16, `today` or `yesterday` [default: today]
    #[arg(long, value_name = "DATE", value_parser = read_day)]
    pub(crate) day: Option<Day>,
}

fn read_day(text: &str) -> Result<Day, String> {
    let today = Day::of(crate::observation::now());
    match text {
        "today" => return Ok(today),
        "yesterday" => return Ok(Day(today.0.saturating_sub(1))),
        _ => {}
    }
    let is_date = text.len() == "2026-11-16".len();
    let moment = Timestamp::parse(text).filter(|_| is_date);
    moment
        .map(Day::of)
        .ok_or_else(|| "expected a date such as 2026-11-16, `today` or `yesterday`".to_owned())
}
