//! The postures, as one table. `docs/postures.md` explains when to choose which.

use crate::verdict::Verdict;
use contract::change::{ChangeClass, ChangeKind, Finding};
use contract::inert::InertLimits;
use std::fmt;
use std::str::FromStr;

/// How strict a gate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Posture {
    /// Stops nothing, and reports everything.
    Monitor,
    /// Stops what can break or harm a call; new text waits without being shown.
    Shield,
    /// Also stops new text.
    #[default]
    Guard,
    /// Stops any change.
    Strict,
}

impl Posture {
    pub const ALL: [Posture; 4] =
        [Posture::Monitor, Posture::Shield, Posture::Guard, Posture::Strict];

    pub const fn as_str(self) -> &'static str {
        match self {
            Posture::Monitor => "monitor",
            Posture::Shield => "shield",
            Posture::Guard => "guard",
            Posture::Strict => "strict",
        }
    }

    /// The posture that decides whether a server's status is `changed` and what waits for review.
    /// Monitor serves changed entries, but the status must still report the change, so it uses
    /// guard's rules.
    pub const fn for_status(self) -> Posture {
        match self {
            Posture::Monitor => Posture::Guard,
            Posture::Shield | Posture::Guard | Posture::Strict => self,
        }
    }
}

impl fmt::Display for Posture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A word that is not the name of a posture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a posture: it is monitor, shield, guard or strict")]
pub struct UnknownPosture(pub String);

impl FromStr for Posture {
    type Err = UnknownPosture;

    fn from_str(text: &str) -> Result<Self, UnknownPosture> {
        let found = Posture::ALL.into_iter().find(|posture| posture.as_str() == text);
        found.ok_or_else(|| UnknownPosture(text.to_owned()))
    }
}

impl serde::Serialize for Posture {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for Posture {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What a posture does with one finding, ordered by strength.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    /// Proceeds. The change is accepted and pinned automatically if it is inert, and deferred
    /// otherwise.
    AcceptIfInert,
    /// Proceeds with the approved definition; the new one waits for review.
    Defer,
    /// Proceeds with a note.
    Note,
    /// Each call is decided separately, by what it uses. The client continues to see the approved
    /// definition.
    ByTheCall,
    Inconclusive,
    Hold,
}

impl Ruling {
    /// A change that is decided by the call holds some calls, so its verdict is HOLD.
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Ruling::AcceptIfInert | Ruling::Defer | Ruling::Note => Verdict::Proceed,
            Ruling::Inconclusive => Verdict::Inconclusive,
            Ruling::ByTheCall | Ruling::Hold => Verdict::Hold,
        }
    }
}

/// Settings that refine the posture.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    pub posture: Posture,
    pub inert: InertLimits,
    /// `guard.new_tools = "accept"`: an inert new tool is pinned immediately.
    pub accept_new_tools: bool,
    /// `shield.parameter_text = "defer"`: new text of a parameter is deferred on every tool.
    pub defer_parameter_text: bool,
    /// `origin.detail = "hold"`: a change of version, argument, file digest or TLS key holds.
    pub hold_origin_detail: bool,
}

/// Other facts about an entry that affect a ruling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circumstances {
    /// There is an approved definition to judge calls by.
    pub is_approved: bool,
    /// The approved definition declares that the tool only reads.
    pub is_approved_read_only: bool,
}

impl Settings {
    pub fn with_posture(posture: Posture) -> Settings {
        Settings { posture, ..Settings::default() }
    }

    /// The table of posture × class.
    pub fn rule(&self, finding: &Finding, circumstances: Circumstances) -> Ruling {
        let class = match finding.kind {
            ChangeKind::OriginDetailChanged if self.hold_origin_detail => ChangeClass::Breaking,
            _ => finding.class,
        };
        match (self.posture, class) {
            // Monitor stops and hides nothing. It also pins automatically what guard would pin.
            (
                Posture::Monitor,
                ChangeClass::Additive | ChangeClass::Widening | ChangeClass::Metadata,
            ) => match self.guard_benign(finding) {
                Ruling::Defer => Ruling::Note,
                ruling => ruling,
            },
            (
                Posture::Monitor,
                ChangeClass::Text
                | ChangeClass::Behavioral
                | ChangeClass::Breaking
                | ChangeClass::FailSafe
                | ChangeClass::Marker,
            ) => Ruling::Note,
            // A value meant as cents may now be interpreted as something else.
            (Posture::Shield, ChangeClass::Widening)
                if circumstances.is_approved && is_of_format(finding) =>
            {
                Ruling::ByTheCall
            }
            (
                Posture::Shield,
                ChangeClass::Additive | ChangeClass::Widening | ChangeClass::Metadata,
            ) => Ruling::Defer,
            (Posture::Shield, ChangeClass::Text) => self.shield_text(finding, circumstances),
            (
                Posture::Guard,
                ChangeClass::Additive | ChangeClass::Widening | ChangeClass::Metadata,
            ) => self.guard_benign(finding),
            (Posture::Guard, ChangeClass::Text) => Ruling::Hold,
            (
                Posture::Strict,
                ChangeClass::Additive
                | ChangeClass::Widening
                | ChangeClass::Metadata
                | ChangeClass::Text,
            ) => Ruling::Hold,
            // Every promise still holds, and the client continues to see the approved definition.
            (Posture::Shield, ChangeClass::Behavioral) if finding.keeps_promises() => Ruling::Defer,
            (Posture::Shield | Posture::Guard | Posture::Strict, ChangeClass::Behavioral) => {
                Ruling::Inconclusive
            }
            (Posture::Shield, ChangeClass::Breaking)
                if circumstances.is_approved && is_of_input(finding.kind) =>
            {
                Ruling::ByTheCall
            }
            (
                Posture::Shield | Posture::Guard | Posture::Strict,
                ChangeClass::Breaking | ChangeClass::FailSafe | ChangeClass::Marker,
            ) => Ruling::Hold,
        }
    }

    /// The posture's ruling on an entry: the strongest ruling on any of its findings.
    pub(crate) fn strongest(&self, findings: &[Finding], circumstances: Circumstances) -> Ruling {
        let rulings = findings.iter().map(|finding| self.rule(finding, circumstances));
        match rulings.max().unwrap_or(Ruling::Hold) {
            Ruling::ByTheCall if describes_itself_differently(findings, circumstances) => {
                Ruling::Hold
            }
            ruling => ruling,
        }
    }

    /// The verdict on an entry: the strongest verdict of its findings.
    pub(crate) fn verdict(&self, findings: &[Finding], circumstances: Circumstances) -> Verdict {
        let rulings = findings.iter().map(|finding| self.rule(finding, circumstances));
        rulings.map(Ruling::verdict).max().unwrap_or(Verdict::Hold)
    }

    fn guard_benign(&self, finding: &Finding) -> Ruling {
        match finding.kind {
            ChangeKind::ToolAdded if !self.accept_new_tools => Ruling::Defer,
            // It claims less risk than was approved, so it is never accepted unreviewed.
            ChangeKind::AnnotationLoosened => Ruling::Defer,
            // An identifier can still be worded as an instruction, so the approved one stays in the
            // list.
            ChangeKind::MetadataChanged if is_generated_title(finding) => Ruling::Defer,
            _ => Ruling::AcceptIfInert,
        }
    }

    /// A parameter's text tells a model what to put into a call, so it can only wait if the tool is
    /// known to be read-only. Otherwise it affects the calls that use the parameter.
    fn shield_text(&self, finding: &Finding, circumstances: Circumstances) -> Ruling {
        let is_parameter_text = finding.kind == ChangeKind::DescriptionOnly
            && finding.path.starts_with("/inputSchema/");
        if is_parameter_text && !circumstances.is_approved_read_only && !self.defer_parameter_text {
            Ruling::ByTheCall
        } else {
            Ruling::Defer
        }
    }
}

/// Whether a finding is about the title of a whole input or output schema, which frameworks
/// generate.
fn is_generated_title(finding: &Finding) -> bool {
    matches!(finding.path.as_str(), "/inputSchema/title" | "/outputSchema/title")
}

/// Whether a breaking change is about a tool's input, so that single calls can be judged by it.
fn is_of_input(kind: ChangeKind) -> bool {
    matches!(
        kind,
        ChangeKind::AddedRequiredParam
            | ChangeKind::RequiredSetExpanded
            | ChangeKind::RemovedParam
            | ChangeKind::TypeChanged
            | ChangeKind::EnumValuesRemoved
            | ChangeKind::ConstraintNarrowed
            | ChangeKind::DefaultChanged
    )
}

/// Whether a finding is that a parameter's `format`, which says how its values are interpreted, was
/// removed.
pub(crate) fn is_of_format(finding: &Finding) -> bool {
    finding.kind == ChangeKind::ConstraintWidened
        && finding.path.starts_with("/inputSchema/")
        && finding.path.ends_with("/format")
        && finding.before.is_some()
}

/// Whether a tool that may write changed its own description together with a breaking change. The
/// effect of every call may have changed with it.
fn describes_itself_differently(findings: &[Finding], circumstances: Circumstances) -> bool {
    const OWN: [&str; 3] = ["/description", "/title", "/annotations/title"];
    let is_own = |finding: &Finding| {
        finding.kind == ChangeKind::DescriptionOnly && OWN.contains(&finding.path.as_str())
    };
    !circumstances.is_approved_read_only
        && findings.iter().any(is_own)
        && findings.iter().any(|finding| finding.class == ChangeClass::Breaking)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_counts_under_monitor_what_guard_would_hold() {
        assert_eq!(
            Posture::ALL.map(Posture::for_status),
            [Posture::Guard, Posture::Shield, Posture::Guard, Posture::Strict]
        );
    }
}
