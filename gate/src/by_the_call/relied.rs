//! What a call that omits something relies on: a default, or a text about being omitted, anywhere
//! in the subschema about it.

use super::Undecided;
use super::applied::Applied;
use super::aspects::Aspects;
use super::omission::mentions_omission;
use super::schema::{Schema, is_reference, parts};
use contract::json::Node;
use std::borrow::Cow;
use std::collections::HashMap;

/// Caches which texts mention being omitted: one text may belong to thousands of places.
#[derive(Debug, Default)]
pub(super) struct OmissionTexts<'a>(HashMap<Cow<'a, str>, bool>);

impl<'a> OmissionTexts<'a> {
    pub(super) fn has(&mut self, text: Cow<'a, str>) -> bool {
        *self.0.entry(text).or_insert_with_key(|text| mentions_omission(text))
    }
}

/// The defaults and texts in each subschema of one schema, following references. All are collected
/// at the first query, because thousands of parameters may refer to one wide definition.
#[derive(Debug, Default)]
pub(super) struct ReliedOn(Option<HashMap<u32, Aspects>>);

impl ReliedOn {
    pub(super) fn of<'a>(
        &mut self,
        schema: &Schema<'a>,
        node: Node<'a>,
        omission_texts: &mut OmissionTexts<'a>,
    ) -> Result<Aspects, Undecided> {
        schema.work.spend(1)?;
        let known = match &mut self.0 {
            Some(known) => known,
            empty => empty.insert(all(schema, omission_texts)?),
        };
        Ok(known.get(&node.index()).copied().unwrap_or(Aspects::NONE))
    }
}

fn all<'a>(
    schema: &Schema<'a>,
    omission_texts: &mut OmissionTexts<'a>,
) -> Result<HashMap<u32, Aspects>, Undecided> {
    let mut found: HashMap<u32, Aspects> = HashMap::new();
    let mut around: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut waiting = Vec::new();
    for node in schema.all() {
        schema.work.spend_on(node)?;
        let alone = Applied { schemas: vec![node], ..Applied::default() };
        let mentions_omission = alone.sentences().into_iter().any(|text| omission_texts.has(text));
        let own = Aspects::DEFAULT
            .when(!alone.defaults().is_empty())
            .with(Aspects::TEXT.when(mentions_omission));
        if !own.is_none() {
            waiting.push((node.index(), own));
        }
        for (name, value) in node.members() {
            let inside = match name.as_str().as_deref() {
                Some("$defs" | "definitions") | None => continue,
                Some(keyword) if is_reference(keyword) => vec![schema.resolve(value)?],
                Some(keyword) => parts(keyword, value),
            };
            for part in inside {
                around.entry(part.index()).or_default().push(node.index());
            }
        }
    }
    // What a subschema contains is also contained in every schema around it and every schema that
    // refers to it.
    while let Some((index, aspects)) = waiting.pop() {
        schema.work.spend(1)?;
        let known = found.entry(index).or_default();
        let together = known.with(aspects);
        if together != *known {
            *known = together;
            let outer = around.get(&index).into_iter().flatten();
            waiting.extend(outer.map(|outer| (*outer, together)));
        }
    }
    Ok(found)
}
