//! Rules for call arguments beyond their schema, and for the rate of calls.
//!
//! Pure: values and times are passed in. An error names a place and a rule, never a value.

mod path;
mod places;
mod rate;
mod sizes;
mod url;

pub use path::{BadWorkspace, MAX_PATH_BYTES, PathFault, Workspace};
pub use places::{ArgumentPlace, BadPlace, CheckText};
pub use rate::{
    BadRate, MAX_BUCKETS, Quota, Rate, RateDecision, RateKey, RateLimiter, RateScope, SharedBucket,
    SharedCount, Throttle, UnreportedCalls,
};
pub use sizes::{SizeLimits, TooBig};
pub use url::{AllowedHost, BadAllowedHost, MAX_URL_BYTES, UrlFault, check_url};

#[cfg(test)]
mod tests;
