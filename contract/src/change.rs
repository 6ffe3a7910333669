//! The closed lists of change kinds and classes (`docs/what-is-compared.md`): what a finding can
//! report, and how serious it is.

use crate::detail::Detail;
use std::fmt;

/// How serious a change is. Postures decide by class (the table is in `gate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeClass {
    Metadata,
    Widening,
    Additive,
    Text,
    Behavioral,
    Breaking,
    FailSafe,
    Marker,
}

impl ChangeClass {
    pub const ALL: [ChangeClass; 8] = [
        ChangeClass::Metadata,
        ChangeClass::Widening,
        ChangeClass::Additive,
        ChangeClass::Text,
        ChangeClass::Behavioral,
        ChangeClass::Breaking,
        ChangeClass::FailSafe,
        ChangeClass::Marker,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            ChangeClass::Metadata => "metadata",
            ChangeClass::Widening => "widening",
            ChangeClass::Additive => "additive",
            ChangeClass::Text => "text",
            ChangeClass::Behavioral => "behavioral",
            ChangeClass::Breaking => "breaking",
            ChangeClass::FailSafe => "fail-safe",
            ChangeClass::Marker => "marker",
        }
    }

    /// The only definition of which changes are relevant to safety.
    pub const fn is_safety_relevant(self) -> bool {
        match self {
            ChangeClass::Metadata | ChangeClass::Widening | ChangeClass::Additive => false,
            ChangeClass::Text
            | ChangeClass::Behavioral
            | ChangeClass::Breaking
            | ChangeClass::FailSafe
            | ChangeClass::Marker => true,
        }
    }
}

impl fmt::Display for ChangeClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl serde::Serialize for ChangeClass {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

macro_rules! change_kinds {
    ($($kind:ident = $name:literal, $class:ident;)*) => {
        /// What changed. The names are part of the wire format and never change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ChangeKind {
            $($kind,)*
        }

        impl ChangeKind {
            pub const ALL: &[ChangeKind] = &[$(ChangeKind::$kind,)*];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ChangeKind::$kind => $name,)*
                }
            }

            /// The class of this kind. A single `identity-changed` finding may have a weaker class:
            /// see [`Finding::class`].
            pub const fn class(self) -> ChangeClass {
                match self {
                    $(ChangeKind::$kind => ChangeClass::$class,)*
                }
            }
        }
    };
}

change_kinds! {
    // The core taxonomy, fixed.
    AddedRequiredParam = "added-required-param", Breaking;
    RequiredSetExpanded = "required-set-expanded", Breaking;
    RemovedParam = "removed-param", Breaking;
    TypeChanged = "type-changed", Breaking;
    EnumValuesRemoved = "enum-values-removed", Breaking;
    ConstraintNarrowed = "constraint-narrowed", Breaking;
    ToolRemoved = "tool-removed", Breaking;
    AnnotationFlipToDestructive = "annotation-flip-to-destructive", Behavioral;
    OutputSchemaChanged = "output-schema-changed", Behavioral;
    AddedOptionalParam = "added-optional-param", Additive;
    OutputSchemaAdded = "output-schema-added", Additive;
    ToolAdded = "tool-added", Additive;
    DescriptionOnly = "description-only", Text;
    DeepSchemaUndiffable = "deep-schema-undiffable", FailSafe;
    // Extensions. Each one names a change that would otherwise be reported as
    // `deep-schema-undiffable`.
    EnumValuesAdded = "enum-values-added", Widening;
    TypeWidened = "type-widened", Widening;
    ConstraintWidened = "constraint-widened", Widening;
    RequiredSetReduced = "required-set-reduced", Widening;
    DefaultChanged = "default-changed", Breaking;
    AnnotationChanged = "annotation-changed", Behavioral;
    AnnotationLoosened = "annotation-loosened", Additive;
    HeaderBindingChanged = "header-binding-changed", Breaking;
    ExecutionChanged = "execution-changed", Breaking;
    MetadataChanged = "metadata-changed", Metadata;
    InstructionsChanged = "instructions-changed", Text;
    PromptAdded = "prompt-added", Additive;
    PromptRemoved = "prompt-removed", Breaking;
    PromptChanged = "prompt-changed", Text;
    ResourceChanged = "resource-changed", Text;
    TemplateChanged = "template-changed", Text;
    ResourceAdded = "resource-added", Metadata;
    ResourceRemoved = "resource-removed", Metadata;
    TemplateAdded = "template-added", Metadata;
    TemplateRemoved = "template-removed", Metadata;
    CapabilitiesChanged = "capabilities-changed", Metadata;
    IdentityChanged = "identity-changed", Breaking;
    OriginChanged = "origin-changed", Breaking;
    OriginDetailChanged = "origin-detail-changed", Metadata;
    MarkerFound = "marker-found", Marker;
}

impl ChangeKind {
    /// The kinds of the core taxonomy.
    pub const CORE_COUNT: usize = 14;

    pub fn is_core(self) -> bool {
        ChangeKind::ALL.iter().take(Self::CORE_COUNT).any(|&kind| kind == self)
    }
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl serde::Serialize for ChangeKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What a behavioral change means for callers that rely on the approved definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Meaning {
    /// A hint changed, but its effective value did not, once MCP's defaults for absent hints are
    /// applied.
    EffectiveSame,
    /// The old output schema allows every result that the new one allows.
    ResultsWithin,
    /// The new output schema may allow results that the old one does not, or a declared member is
    /// gone.
    ResultsOutside,
}

impl Meaning {
    /// The finding's `effective` member in JSON documents.
    pub const fn effective(self) -> Option<&'static str> {
        match self {
            Meaning::EffectiveSame => Some("same"),
            Meaning::ResultsWithin | Meaning::ResultsOutside => None,
        }
    }

    /// The finding's `results` member in JSON documents.
    pub const fn results(self) -> Option<&'static str> {
        match self {
            Meaning::ResultsWithin => Some("within"),
            Meaning::ResultsOutside => Some("outside"),
            Meaning::EffectiveSame => None,
        }
    }

    /// Whether every promise of the approved definition still holds.
    pub const fn keeps_promises(self) -> bool {
        match self {
            Meaning::EffectiveSame | Meaning::ResultsWithin => true,
            Meaning::ResultsOutside => false,
        }
    }
}

/// One change: what, where, and bounded excerpts of before and after.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// A JSON Pointer into the new entry, or into the old entry if the finding is about something
    /// removed.
    pub path: String,
    pub kind: ChangeKind,
    /// The kind's class, except that `identity-changed` is weaker if only the self-reported name
    /// changed.
    pub class: ChangeClass,
    /// Set for `annotation-flip-to-destructive` and `output-schema-changed` if the comparison could
    /// tell.
    pub meaning: Option<Meaning>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub detail: Option<Detail>,
}

impl Finding {
    pub fn new(
        kind: ChangeKind,
        path: impl Into<String>,
        before: Option<&str>,
        after: Option<&str>,
    ) -> Finding {
        Finding {
            path: path.into(),
            kind,
            class: kind.class(),
            meaning: None,
            before: before.map(excerpt),
            after: after.map(excerpt),
            detail: None,
        }
    }

    /// Whether neither `before` nor `after` was truncated.
    pub fn is_whole(&self) -> bool {
        let is_cut = |text: &String| text.chars().count() > EXCERPT_CHARACTERS;
        !self.before.iter().chain(&self.after).any(is_cut)
    }

    pub(crate) fn meaning(self, meaning: Option<Meaning>) -> Finding {
        Finding { meaning, ..self }
    }

    /// Whether every promise of the approved definition still holds.
    pub fn keeps_promises(&self) -> bool {
        self.meaning.is_some_and(Meaning::keeps_promises)
    }
}

/// The longest `before` or `after` that a finding carries.
pub const EXCERPT_CHARACTERS: usize = 240;

/// Truncates a long text.
pub fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT_CHARACTERS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or("")),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn kinds_have_names_of_their_own_and_fourteen_are_core() {
        let names: BTreeSet<_> = ChangeKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(names.len(), ChangeKind::ALL.len());
        let core: Vec<_> = ChangeKind::ALL.iter().filter(|kind| kind.is_core()).collect();
        assert_eq!(core.len(), 14);
        assert_eq!(core.last().unwrap().as_str(), "deep-schema-undiffable");
    }

    #[test]
    fn excerpts_are_bounded_and_short_texts_whole() {
        assert_eq!(
            excerpt("é".repeat(EXCERPT_CHARACTERS).as_str()),
            "é".repeat(EXCERPT_CHARACTERS)
        );
        let long = excerpt("é".repeat(EXCERPT_CHARACTERS + 1).as_str());
        assert_eq!(long.chars().count(), EXCERPT_CHARACTERS + 1);
        assert!(long.ends_with('…'));
    }
}
