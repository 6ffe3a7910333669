//! `[receipts]` of the configuration.

use super::retention::Keep;
use ledger::chain::Rotation;
use ledger::record::ArgsHashKind;

/// What has to survive the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fsync {
    /// Every line, before the call is made. Lines that come at the same time share one sync.
    Always,
    /// All but the newest second.
    #[default]
    Interval,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFull {
    #[default]
    Refuse,
    DropOldest,
}

/// `[receipts]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub fsync: Fsync,
    pub on_full: OnFull,
    pub rotation: Rotation,
    pub keep: Keep,
    pub args_hash: ArgsHashKind,
}

impl Settings {
    pub const USUAL_SEGMENT_BYTES: u64 = 8 * 1024 * 1024;
    pub const USUAL_SEGMENT_AGE_MILLISECONDS: i64 = 24 * 60 * 60 * 1_000;
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            fsync: Fsync::default(),
            on_full: OnFull::default(),
            rotation: Rotation {
                bytes: Settings::USUAL_SEGMENT_BYTES,
                age_milliseconds: Settings::USUAL_SEGMENT_AGE_MILLISECONDS,
            },
            keep: Keep::default(),
            args_hash: ArgsHashKind::Keyed,
        }
    }
}
