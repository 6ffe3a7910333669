//! How far a server is trusted, and how much harm one of its tools can do. The operator sets both;
//! the server sets neither.

use std::fmt;
use std::str::FromStr;

/// A word that is not the name of a class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of {1}")]
pub struct BadClass(String, &'static str);

/// How much harm a call can do, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Risk {
    Low,
    Medium,
    /// The default for anything unclassified.
    #[default]
    High,
    Critical,
}

impl Risk {
    pub fn as_str(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
            Risk::Critical => "critical",
        }
    }

    /// The rank that policies compare, from 0 (low) to 3 (critical).
    pub fn rank(self) -> u8 {
        match self {
            Risk::Low => 0,
            Risk::Medium => 1,
            Risk::High => 2,
            Risk::Critical => 3,
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Risk {
    type Err = BadClass;

    fn from_str(word: &str) -> Result<Risk, BadClass> {
        let all = [Risk::Low, Risk::Medium, Risk::High, Risk::Critical];
        let found = all.into_iter().find(|risk| risk.as_str() == word);
        found.ok_or_else(|| BadClass(word.to_owned(), "low, medium, high, critical"))
    }
}

/// How far a server is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Trust {
    Internal,
    Verified,
    Community,
    #[default]
    Unknown,
}

impl Trust {
    pub fn as_str(self) -> &'static str {
        match self {
            Trust::Internal => "internal",
            Trust::Verified => "verified",
            Trust::Community => "community",
            Trust::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Trust {
    type Err = BadClass;

    fn from_str(word: &str) -> Result<Trust, BadClass> {
        let all = [Trust::Internal, Trust::Verified, Trust::Community, Trust::Unknown];
        let found = all.into_iter().find(|trust| trust.as_str() == word);
        found.ok_or_else(|| BadClass(word.to_owned(), "internal, verified, community, unknown"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_classes_agree_and_others_are_refused() {
        for word in ["low", "medium", "high", "critical"] {
            assert_eq!(word.parse::<Risk>().unwrap().as_str(), word);
        }
        for word in ["internal", "verified", "community", "unknown"] {
            assert_eq!(word.parse::<Trust>().unwrap().as_str(), word);
        }
        let error = "High".parse::<Risk>().unwrap_err().to_string();
        assert_eq!(error, "`High` is not one of low, medium, high, critical");
        assert!("".parse::<Trust>().is_err());
    }

    #[test]
    fn what_nobody_classified_is_unknown_and_of_high_risk() {
        assert_eq!(Trust::default(), Trust::Unknown);
        assert_eq!(Risk::default(), Risk::High);
        assert!(Risk::Low < Risk::Medium && Risk::High < Risk::Critical);
    }
}
