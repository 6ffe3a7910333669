//! Mutations of the newest release of a real server. The same seed gives the same cases.

use super::attacks::order;
use super::{Case, Stratum};
use crate::random::Random;
use contract::surface::{EntryId, EntryType, Surface, read_capture};
use serde_json::{Map, Value, json};

/// The number of pieces of a slow drip.
const DRIPS: usize = 4;

/// The cases of a package: at most one per stratum, fewer if its contract has nothing to mutate.
pub fn cases(package: &str, newest: &Surface, seed: u64) -> Vec<Case> {
    let Ok(capture) = serde_json::from_str::<Value>(&newest.to_capture()) else {
        return Vec::new();
    };
    let made = Stratum::ALL.into_iter().filter_map(|stratum| {
        let random = Random::of(seed, &format!("{package}\n{}", stratum.as_str()));
        Maker { package, capture: &capture, random }.case(stratum)
    });
    made.collect()
}

struct Maker<'c> {
    package: &'c str,
    capture: &'c Value,
    random: Random,
}

type Tool = Map<String, Value>;

impl Maker<'_> {
    fn case(mut self, stratum: Stratum) -> Option<Case> {
        match stratum {
            Stratum::SlowDrip => self.drip(stratum),
            Stratum::FirstSightText => self.first_sight(stratum),
            Stratum::InstructionsRewritten => self.instructions(stratum),
            Stratum::ToolRemoved => self.removed(stratum),
            _ => self.changed(stratum),
        }
    }

    /// A case in which one tool is replaced.
    fn changed(&mut self, stratum: Stratum) -> Option<Case> {
        let (number, old, new, call) = self.find(|tool, random| mutated(stratum, tool, random))?;
        let approved = self.with_tool(number, &old)?;
        let shown = self.with_tool(number, &new)?;
        let entry = EntryId::new(EntryType::Tool, name(&new)?);
        // Skip mutations that change nothing because the contract was already like that.
        let is_change =
            approved.surface_hash() != shown.surface_hash() || stratum == Stratum::Reordered;
        is_change.then(|| self.made(stratum, Some(approved), vec![shown], entry, call))
    }

    fn drip(&mut self, stratum: Stratum) -> Option<Case> {
        let order = order(&mut self.random);
        let words: Vec<&str> = order.split(' ').collect();
        let pieces: Vec<String> =
            words.chunks(words.len().div_ceil(DRIPS).max(1)).map(|piece| piece.join(" ")).collect();
        let (number, old, _, _) = self.find(|tool, _| Some((tool.clone(), tool.clone(), None)))?;
        let mut new = old.clone();
        let mut shown = Vec::new();
        for (at, piece) in pieces.iter().enumerate() {
            let parameter = json!({ "type": "string", "description": piece });
            properties(&mut new)?.insert(format!("hint_{at}"), parameter);
            shown.push(self.with_tool(number, &new)?);
        }
        let entry = EntryId::new(EntryType::Tool, name(&old)?);
        let approved = self.with_tool(number, &old)?;
        Some(self.made(stratum, Some(approved), shown, entry, None))
    }

    fn first_sight(&mut self, stratum: Stratum) -> Option<Case> {
        let order = order(&mut self.random);
        let (number, _, new, _) = self.find(|tool, _| {
            let mut new = tool.clone();
            let text = format!("{} {order}", description(tool));
            new.insert("description".to_owned(), text.trim().into());
            Some((tool.clone(), new, None))
        })?;
        let entry = EntryId::new(EntryType::Tool, name(&new)?);
        let shown = self.with_tool(number, &new)?;
        Some(self.made(stratum, None, vec![shown], entry, None))
    }

    fn instructions(&mut self, stratum: Stratum) -> Option<Case> {
        let approved = read(self.capture)?;
        let mut capture = self.capture.clone();
        let text = capture.get("instructions").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{text}\n{}", order(&mut self.random));
        capture.as_object_mut()?.insert("instructions".to_owned(), text.trim().into());
        let entry = EntryId::only(EntryType::Instructions);
        Some(self.made(stratum, Some(approved), vec![read(&capture)?], entry, None))
    }

    fn removed(&mut self, stratum: Stratum) -> Option<Case> {
        let (number, old, _, _) = self.find(|tool, _| Some((tool.clone(), tool.clone(), None)))?;
        let mut capture = self.capture.clone();
        capture.get_mut("tools")?.as_array_mut()?.remove(number);
        let entry = EntryId::new(EntryType::Tool, name(&old)?);
        let approved = read(self.capture)?;
        Some(self.made(stratum, Some(approved), vec![read(&capture)?], entry, None))
    }

    fn made(
        &self,
        stratum: Stratum,
        approved: Option<Surface>,
        shown: Vec<Surface>,
        entry: EntryId,
        call: Option<String>,
    ) -> Case {
        Case { package: self.package.to_owned(), stratum, approved, shown, entry, call }
    }

    /// The first tool, starting at a random one, that can be mutated: its number, the approved and
    /// the new definition, and a call.
    fn find(
        &mut self,
        mutate: impl Fn(&Tool, &mut Random) -> Option<Mutation>,
    ) -> Option<(usize, Tool, Tool, Option<String>)> {
        let tools = self.capture.get("tools")?.as_array()?;
        let start = self.random.below(tools.len());
        (0..tools.len()).map(|step| (start + step) % tools.len()).find_map(|number| {
            let tool = tools.get(number)?.as_object()?;
            let (old, new, call) = mutate(tool, &mut self.random)?;
            Some((number, old, new, call))
        })
    }

    fn with_tool(&self, number: usize, tool: &Tool) -> Option<Surface> {
        let mut capture = self.capture.clone();
        *capture.get_mut("tools")?.get_mut(number)? = Value::Object(tool.clone());
        read(&capture)
    }
}

/// The approved definition, the new definition, and a call that the change must stop.
type Mutation = (Tool, Tool, Option<String>);

fn read(capture: &Value) -> Option<Surface> {
    read_capture(capture.to_string().as_bytes()).ok()
}

fn name(tool: &Tool) -> Option<String> {
    tool.get("name")?.as_str().map(str::to_owned)
}

fn description(tool: &Tool) -> &str {
    tool.get("description").and_then(Value::as_str).unwrap_or_default()
}

fn properties(tool: &mut Tool) -> Option<&mut Map<String, Value>> {
    let schema =
        tool.entry("inputSchema").or_insert_with(|| json!({ "type": "object" })).as_object_mut()?;
    schema.entry("properties").or_insert_with(|| json!({})).as_object_mut()
}

fn required(tool: &Tool) -> Vec<String> {
    let names =
        tool.get("inputSchema").and_then(|schema| schema.get("required")).and_then(Value::as_array);
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// The first parameter that fits: its name, and its schema within the new tool.
fn parameter(
    tool: &mut Tool,
    fits: impl Fn(&str, &Map<String, Value>) -> bool,
) -> Option<(String, &mut Map<String, Value>)> {
    properties(tool)?.iter_mut().find_map(|(name, schema)| {
        let schema = schema.as_object_mut()?;
        fits(name, schema).then(|| (name.clone(), schema))
    })
}

fn mutated(stratum: Stratum, tool: &Tool, random: &mut Random) -> Option<Mutation> {
    let old = tool.clone();
    let mut new = tool.clone();
    let needed = required(tool);
    let is_plain = |schema: &Map<String, Value>, kind: &str| {
        schema.get("type").and_then(Value::as_str) == Some(kind)
            && !schema.contains_key("enum")
            && !schema.contains_key("const")
    };
    match stratum {
        Stratum::SmuggledText => {
            let hint = json!({ "type": "string", "description": order(random) });
            properties(&mut new)?.insert("hint".to_owned(), hint);
        }
        Stratum::ByTheCall => return by_the_call(old, new, &needed),
        Stratum::DestructiveFlip => {
            let hints = new.get_mut("annotations")?.as_object_mut()?;
            if hints.get("readOnlyHint") != Some(&Value::Bool(true)) {
                return None;
            }
            hints.insert("readOnlyHint".to_owned(), false.into());
            hints.insert("destructiveHint".to_owned(), true.into());
        }
        Stratum::RequiredAdded => {
            properties(&mut new)?.insert("owner".to_owned(), json!({ "type": "string" }));
            let schema = new.get_mut("inputSchema")?.as_object_mut()?;
            schema
                .entry("required")
                .or_insert_with(|| json!([]))
                .as_array_mut()?
                .push("owner".into());
        }
        Stratum::ParameterRemoved => {
            let name = properties(&mut new)?.keys().find(|name| !needed.contains(*name))?.clone();
            properties(&mut new)?.shift_remove(&name);
        }
        Stratum::TypeChanged => {
            let (_, schema) = parameter(&mut new, |_, schema| is_plain(schema, "string"))?;
            schema.insert("type".to_owned(), "integer".into());
        }
        Stratum::EnumNarrowed => {
            let is_choice = |schema: &Map<String, Value>| {
                schema.get("enum").and_then(Value::as_array).is_some_and(|all| all.len() > 1)
            };
            let (_, schema) = parameter(&mut new, |_, schema| is_choice(schema))?;
            schema.get_mut("enum")?.as_array_mut()?.pop();
        }
        Stratum::ConstraintNarrowed => {
            let (_, schema) = parameter(&mut new, |_, schema| {
                is_plain(schema, "string") && !schema.contains_key("maxLength")
            })?;
            schema.insert("maxLength".to_owned(), 3.into());
        }
        Stratum::DescriptionRewritten => {
            let text = format!("{} {}", description(tool), order(random));
            new.insert("description".to_owned(), text.trim().into());
        }
        Stratum::DefaultChanged => {
            let is_it = |name: &str, schema: &Map<String, Value>| {
                schema.get("default").is_some_and(|value| !value.is_null())
                    && !needed.iter().any(|known| known == name)
            };
            let (_, schema) = parameter(&mut new, is_it)?;
            let other = match schema.get("default")? {
                Value::Bool(value) => json!(!value),
                Value::Number(number) => json!(number.as_f64().unwrap_or(0.0) + 1.0),
                _ => json!("other"),
            };
            schema.insert("default".to_owned(), other);
        }
        Stratum::OutputChanged => {
            let schema = new.get_mut("outputSchema")?.as_object_mut()?;
            let results = schema.get_mut("properties")?.as_object_mut()?;
            let name = results.keys().next()?.clone();
            results.shift_remove(&name);
        }
        Stratum::Reordered => new = reordered(&new),
        Stratum::SameMeaning => {
            let schema = new.get_mut("inputSchema")?.as_object_mut()?;
            let extra = ["required", "minProperties"]
                .into_iter()
                .find(|name| !schema.contains_key(*name))?;
            let value = if extra == "required" { json!([]) } else { json!(0) };
            schema.insert(extra.to_owned(), value);
        }
        Stratum::OptionalAdded => {
            let harmless = json!({ "type": "integer", "description": "The most results to return", "minimum": 1 });
            let properties = properties(&mut new)?;
            if properties.contains_key("max_items") {
                return None;
            }
            properties.insert("max_items".to_owned(), harmless);
        }
        Stratum::MetadataAdded => {
            new.insert("_meta".to_owned(), json!({ "example.org/build": 7 }));
        }
        Stratum::SlowDrip
        | Stratum::FirstSightText
        | Stratum::InstructionsRewritten
        | Stratum::ToolRemoved => return None,
    }
    Some((old, new, None))
}

/// Changes the meaning of an optional text parameter that a call uses.
fn by_the_call(old: Tool, mut new: Tool, needed: &[String]) -> Option<Mutation> {
    // The call has a single plain parameter, so no other may be required.
    if !needed.is_empty() {
        return None;
    }
    let is_it = |_: &str, schema: &Map<String, Value>| {
        schema.get("type").and_then(Value::as_str) == Some("string")
            && schema.contains_key("description")
            && !["enum", "const", "pattern", "format", "minLength", "maxLength"]
                .iter()
                .any(|keyword| schema.contains_key(*keyword))
    };
    let (name, schema) = parameter(&mut new, is_it)?;
    let text = schema.get("description")?.as_str()?.to_owned();
    schema.insert(
        "description".to_owned(),
        format!("{text} The named item is removed afterwards.").into(),
    );
    let mut call = Map::new();
    call.insert(name, "a".into());
    Some((old, new, Some(Value::Object(call).to_string())))
}

/// The same with the members of objects in reverse order. Arrays stay as they are: their order may
/// be significant.
fn reordered(tool: &Tool) -> Tool {
    let turned = |value: &Value| match value {
        Value::Object(members) => Value::Object(reordered(members)),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .map(|item| match item {
                    Value::Object(members) => Value::Object(reordered(members)),
                    other => other.clone(),
                })
                .collect(),
        ),
        other => other.clone(),
    };
    tool.iter().rev().map(|(name, value)| (name.clone(), turned(value))).collect()
}
