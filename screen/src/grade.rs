//! The strength of the evidence behind a verdict, and how long the verdict is valid.

use crate::word::closed_words;
use contract::time::Timestamp;

const DAY_MILLISECONDS: i64 = 86_400_000;

closed_words! {
    /// Ordered by strength; the last three are equally strong.
    Grade ("evidence grade") {
        /// There is no evidence.
        Unverified => "unverified",
        /// A file was given; its origin is unknown.
        Scanned => "scanned",
        /// We listed the server ourselves.
        CrawlL0 => "crawl-l0",
        /// Our battery ran with the operator's credentials.
        CredL1 => "cred-l1",
        /// Our battery ran in our sandbox.
        SandboxL1 => "sandbox-l1",
        /// Our battery ran with the owner's permission.
        OwnerAuthorizedL1 => "owner-authorized-l1",
    }
}

impl Grade {
    /// Whether the battery ran.
    pub const fn is_l1(self) -> bool {
        match self {
            Grade::Unverified | Grade::Scanned | Grade::CrawlL0 => false,
            Grade::CredL1 | Grade::SandboxL1 | Grade::OwnerAuthorizedL1 => true,
        }
    }

    pub const fn lifetime_days(self) -> u32 {
        match self {
            Grade::Unverified => 0,
            Grade::Scanned => 7,
            Grade::CrawlL0 => 30,
            Grade::CredL1 | Grade::SandboxL1 | Grade::OwnerAuthorizedL1 => 90,
        }
    }

    /// When a verdict of this grade expires, if it was given at this moment.
    pub fn expires_at(self, at: Timestamp) -> Timestamp {
        Timestamp(at.0.saturating_add(i64::from(self.lifetime_days()) * DAY_MILLISECONDS))
    }
}
