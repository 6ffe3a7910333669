//! The five built-in schemes, as tables.

use super::{Level, Scheme};
use std::collections::BTreeMap;
use std::sync::LazyLock;

struct Table {
    id: &'static str,
    description: &'static str,
    levels: &'static [(&'static str, &'static [&'static str])],
    compartments: &'static [&'static str],
    releasability: &'static [&'static str],
}

const TABLES: [Table; 5] = [
    Table {
        id: "default",
        description: "Six levels for any organization, with the names of government as aliases",
        levels: &[
            ("PUBLIC", &["UNCLASSIFIED", "U", "P"]),
            ("INTERNAL", &["CUI", "I"]),
            ("CONFIDENTIAL", &["C"]),
            ("RESTRICTED", &["SECRET", "S", "R"]),
            ("RESTRICTED-PLUS", &["TOP SECRET", "TS", "R+", "Q-CLEARED", "TOP-SECRET"]),
            ("SCI", &["TOP SECRET//SCI", "TS//SCI", "RESTRICTED-PLUS//SCI"]),
        ],
        compartments: &[],
        releasability: &[],
    },
    Table {
        id: "us-government",
        description: "The levels of the government of the United States",
        levels: &[
            ("UNCLASSIFIED", &["U", "PUBLIC"]),
            ("CUI", &["INTERNAL"]),
            ("CONFIDENTIAL", &["C"]),
            ("SECRET", &["S", "RESTRICTED"]),
            ("TOP SECRET", &["TS", "RESTRICTED-PLUS"]),
            ("TOP SECRET//SCI", &["TS//SCI", "SCI"]),
        ],
        compartments: &[],
        releasability: &["NOFORN", "REL TO USA", "FVEY", "ORCON", "PROPIN"],
    },
    Table {
        id: "healthcare-hipaa",
        description: "Health information under HIPAA",
        levels: &[
            ("PUBLIC", &[]),
            ("INTERNAL", &[]),
            ("PHI", &["PROTECTED-HEALTH-INFORMATION"]),
            ("SENSITIVE-PHI", &["PSYCH", "GENETIC", "HIV-STATUS", "SUD"]),
            ("RESEARCH-EMBARGOED", &["EMBARGO", "PRE-PUBLICATION"]),
        ],
        compartments: &["MENTAL-HEALTH", "GENETICS", "HIV", "SUD", "MINOR", "VIP"],
        releasability: &["NDA", "EYES_ONLY", "DO_NOT_FORWARD", "BAA-COVERED"],
    },
    Table {
        id: "financial-services",
        description: "Banks and markets, with what insiders know above what is confidential",
        levels: &[
            ("PUBLIC", &[]),
            ("INTERNAL", &[]),
            ("CONFIDENTIAL", &[]),
            ("MNPI", &["MATERIAL-NON-PUBLIC-INFORMATION", "INSIDER"]),
            ("PRIVILEGED-COUNSEL", &["ATTORNEY-CLIENT", "LEGAL-PRIVILEGE"]),
        ],
        compartments: &["M_AND_A", "DEAL_TEAM", "RESTRICTED_LIST", "TRADING_DESK", "AUDIT"],
        releasability: &["NDA", "EYES_ONLY", "DO_NOT_FORWARD", "REGULATOR-DISCLOSURE"],
    },
    Table {
        id: "generic-3-tier",
        description: "Three levels",
        levels: &[
            ("PUBLIC", &[]),
            ("INTERNAL", &[]),
            ("RESTRICTED", &["CONFIDENTIAL", "SENSITIVE"]),
        ],
        compartments: &[],
        releasability: &[],
    },
];

static SCHEMES: LazyLock<[Scheme; 5]> = LazyLock::new(|| TABLES.map(|table| table.scheme()));

pub(super) fn all() -> &'static [Scheme] {
    SCHEMES.as_slice()
}

impl Table {
    fn scheme(&self) -> Scheme {
        let level = |(name, aliases): &(&str, &[&str])| Level {
            name: (*name).to_owned(),
            aliases: owned(aliases),
        };
        let scheme = Scheme {
            id: self.id.to_owned(),
            description: self.description.to_owned(),
            levels: self.levels.iter().map(level).collect(),
            compartments: owned(self.compartments),
            releasability: owned(self.releasability),
            ranks: BTreeMap::new(),
        };
        scheme.with_ranks()
    }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
