//! Starter policies.

/// Name and text of each starter policy file.
pub const STARTER_POLICIES: [(&str, &str); 5] = [
    ("readers.cedar", include_str!("../starter/readers.cedar")),
    ("server-team.cedar", include_str!("../starter/server-team.cedar")),
    ("incident.cedar", include_str!("../starter/incident.cedar")),
    ("approval.cedar", include_str!("../starter/approval.cedar")),
    ("admins.cedar", include_str!("../starter/admins.cedar")),
];
