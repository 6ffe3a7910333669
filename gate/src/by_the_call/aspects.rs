//! The ways in which a place of a call changed between two definitions.

use contract::change::ChangeKind;

/// A set of changes to one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Aspects(u8);

impl Aspects {
    pub(super) const NONE: Aspects = Aspects(0);
    pub(super) const TEXT: Aspects = Aspects(1);
    pub(super) const DEFAULT: Aspects = Aspects(2);
    /// A previously accepted type is no longer accepted, or the types are different ones.
    pub(super) const TYPE: Aspects = Aspects(4);
    /// Additional types are accepted.
    pub(super) const WIDER_TYPE: Aspects = Aspects(8);
    /// `format`, or one of the `content` keywords.
    pub(super) const FORMAT: Aspects = Aspects(16);
    pub(super) const GONE: Aspects = Aspects(32);
    /// Branches or conditions differ; these are not compared in detail.
    pub(super) const BRANCHES: Aspects = Aspects(64);
    /// It was marked as deprecated, or no longer is.
    pub(super) const DEPRECATED: Aspects = Aspects(128);

    pub(super) fn with(self, other: Aspects) -> Aspects {
        Aspects(self.0 | other.0)
    }

    pub(super) fn without(self, other: Aspects) -> Aspects {
        Aspects(self.0 & !other.0)
    }

    pub(super) fn when(self, is_so: bool) -> Aspects {
        if is_so { self } else { Aspects::NONE }
    }

    pub(super) fn has(self, other: Aspects) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_none(self) -> bool {
        self == Aspects::NONE
    }

    /// The kinds of change that these are reported as.
    pub(super) fn kinds(self) -> impl Iterator<Item = ChangeKind> {
        const KINDS: [(Aspects, ChangeKind); 8] = [
            (Aspects::TEXT, ChangeKind::DescriptionOnly),
            (Aspects::DEFAULT, ChangeKind::DefaultChanged),
            (Aspects::TYPE, ChangeKind::TypeChanged),
            (Aspects::WIDER_TYPE, ChangeKind::TypeWidened),
            (Aspects::FORMAT, ChangeKind::ConstraintNarrowed),
            (Aspects::GONE, ChangeKind::RemovedParam),
            (Aspects::BRANCHES, ChangeKind::ConstraintNarrowed),
            (Aspects::DEPRECATED, ChangeKind::DescriptionOnly),
        ];
        KINDS.into_iter().filter(move |(aspect, _)| self.has(*aspect)).map(|(_, kind)| kind)
    }
}
