//! The bundled cases of `conformance/drift/battery`: a surface before the change, one after it, and
//! the predicted verdict.

use crate::failure::Failure;
use serde_json::Value;

macro_rules! battery {
    ($($name:literal),* $(,)?) => {
        const BATTERY: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../conformance/drift/battery/", $name, ".json")))),*];
    };
}

battery![
    "benign_noop",
    "added_optional",
    "added_required",
    "removed_param",
    "type_changed",
    "enum_reduced",
    "constraint_narrowed",
    "annotation_flip",
    "output_added",
    "output_changed",
    "description_change",
    "new_tool",
    "marker_input",
    "marker_output",
];

/// Stories for `demo` that are not part of the battery.
const STORIES: &[(&str, &str)] =
    &[("poisoned_description", include_str!("poisoned_description.json"))];

/// The name of the tool in most cases.
const USUAL_TOOL: &str = "make_report";

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) before: Value,
    pub(crate) after: Value,
    /// The verdict under the posture guard.
    pub(crate) predicted: String,
    /// The tool that changes, or the tool that stays the same.
    pub(crate) tool: String,
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BATTERY.iter().map(|(name, _)| *name)
}

pub(crate) fn find(name: &str) -> Result<Option<Case>, Failure> {
    let mut known = BATTERY.iter().chain(STORIES);
    let Some((name, text)) = known.find(|(known, _)| *known == name) else {
        return Ok(None);
    };
    let mut document: Value = serde_json::from_str(text)?;
    let text = |path: &str| document.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let predicted = text("/expect/verdict/guard").unwrap_or_default();
    let tool = text("/expect/entries/0/key").unwrap_or_else(|| USUAL_TOOL.to_owned());
    let mut take = |member: &str| document.get_mut(member).map(Value::take).unwrap_or_default();
    Ok(Some(Case { name, before: take("old"), after: take("new"), predicted, tool }))
}
