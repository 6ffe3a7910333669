//! Compares two entries, or two whole surfaces. Pure and deterministic: the same input gives the
//! same findings.

use crate::canonical::{self, Position, bounded_text, canonical_text};
use crate::change::{ChangeClass, ChangeKind, Finding, Meaning};
use crate::detail::Detail;
use crate::json::{Document, Node};
use crate::schema;
use crate::sorted::{SortedMap, SortedSet};
use crate::surface::{Entry, EntryId, EntryType, Surface};
use std::borrow::Cow;

mod annotations;
mod extras;

/// An entry that changed, with the findings between its two versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryDiff {
    pub id: EntryId,
    pub before: Option<Entry>,
    pub after: Option<Entry>,
    pub findings: Vec<Finding>,
    /// For a removed tool: an added tool with the same input, which may be its new name. Only a
    /// hint: the removal still counts.
    pub renamed_to: Option<String>,
}

/// The work allowed for comparing all entries of a surface: at most two seconds, whatever a server
/// sends. Real servers need a hundredth of it. Once it is spent, the remaining entries are
/// undiffable, and undiffable entries are held.
#[derive(Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// One unit is about the work of visiting one JSON value: 0.2 to 0.4 µs.
    pub const SURFACE: u64 = 1_500_000;
    /// Reading, canonicalizing and scanning an entry costs one unit for this many bytes.
    const BYTES_PER_UNIT: u64 = 8;

    /// A budget of this many units.
    pub fn of(units: u64) -> Budget {
        Budget { left: units }
    }

    /// The units left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns `asked`, or all that is left if that is less.
    pub(crate) fn grant(&self, asked: u64) -> u64 {
        asked.min(self.left)
    }

    pub(crate) fn spend(&mut self, work: u64) {
        self.left = self.left.saturating_sub(work);
    }

    fn spend_on(&mut self, entry: Option<&Entry>) {
        self.spend(entry.map_or(0, |entry| entry.raw().len() as u64 / Self::BYTES_PER_UNIT));
    }

    /// Spends the cost of working through some values. Returns whether the budget was sufficient.
    fn affords<'a>(&mut self, nodes: impl Iterator<Item = Node<'a>>) -> bool {
        self.spend(nodes.map(Node::weight).sum());
        self.left > 0
    }
}

impl Default for Budget {
    fn default() -> Self {
        Budget::of(Self::SURFACE)
    }
}

/// All entries that differ between two surfaces, in the order of their ids.
pub fn diff_surfaces(old: &Surface, new: &Surface) -> Vec<EntryDiff> {
    let ids: SortedSet<&EntryId> = old.entries().chain(new.entries()).map(Entry::id).collect();
    let mut budget = Budget::default();
    let mut diffs: Vec<EntryDiff> = ids
        .into_iter()
        .filter_map(|id| diff_entry_within(old.entry(id), new.entry(id), &mut budget))
        .collect();
    let changed = diffs.iter().map(|diff| (&diff.id, diff.before.as_ref(), diff.after.as_ref()));
    let renames = mark_renames(changed);
    for diff in &mut diffs {
        diff.renamed_to = renames.get(&diff.id).cloned();
    }
    diffs
}

/// The changes of one entry. Returns `None` if the hashes are equal.
pub fn diff_entry(old: Option<&Entry>, new: Option<&Entry>) -> Option<EntryDiff> {
    diff_entry_within(old, new, &mut Budget::default())
}

/// Like [`diff_entry`], with the work that is left in `budget`.
pub fn diff_entry_within(
    old: Option<&Entry>,
    new: Option<&Entry>,
    budget: &mut Budget,
) -> Option<EntryDiff> {
    if old.map(Entry::entry_hash) == new.map(Entry::entry_hash) {
        return None;
    }
    let id = new.or(old)?.id().clone();
    budget.spend_on(old);
    budget.spend_on(new);
    let findings = match budget.left {
        0 => vec![too_much()],
        _ => findings(id.entry_type, old, new, budget),
    };
    Some(EntryDiff { id, before: old.cloned(), after: new.cloned(), findings, renamed_to: None })
}

fn findings(
    entry_type: EntryType,
    old: Option<&Entry>,
    new: Option<&Entry>,
    budget: &mut Budget,
) -> Vec<Finding> {
    let old_document = old.map(Entry::document);
    let new_document = new.map(Entry::document);
    let (Ok(old), Ok(new)) = (old_document.transpose(), new_document.transpose()) else {
        return vec![unexplained()];
    };
    let (old, new) = (old.as_ref().map(Document::root), new.as_ref().map(Document::root));
    if !budget.affords(old.into_iter().chain(new)) {
        return vec![too_much()];
    }
    let mut findings = match entry_type {
        EntryType::Tool => tool(old, new, budget),
        EntryType::Prompt => plain(
            old,
            new,
            [ChangeKind::PromptAdded, ChangeKind::PromptRemoved, ChangeKind::PromptChanged],
        ),
        EntryType::Resource => plain(
            old,
            new,
            [ChangeKind::ResourceAdded, ChangeKind::ResourceRemoved, ChangeKind::ResourceChanged],
        ),
        EntryType::Template => plain(
            old,
            new,
            [ChangeKind::TemplateAdded, ChangeKind::TemplateRemoved, ChangeKind::TemplateChanged],
        ),
        EntryType::Instructions => vec![finding(ChangeKind::InstructionsChanged, "", old, new)],
        EntryType::Identity => identity(old, new),
        EntryType::Origin => origin(old, new),
    };
    if findings.is_empty() {
        findings.push(unexplained());
    }
    findings.sort();
    findings.dedup();
    if findings.len() > MOST_FINDINGS {
        findings.truncate(MOST_FINDINGS);
        let reason = Some("more changed than is listed");
        findings.push(Finding::new(ChangeKind::DeepSchemaUndiffable, "", None, reason));
    }
    findings
}

/// The most findings for one entry: those from comparing its input schema, and twice as many
/// others.
const MOST_FINDINGS: usize = 3 * schema::MAX_FINDINGS;

/// The hashes differ and no rule explains why. This must never be ignored.
fn unexplained() -> Finding {
    let reason = Some("the entries differ in a way that no rule explains");
    Finding::new(ChangeKind::DeepSchemaUndiffable, "", None, reason)
}

/// Too much changed at once, so this entry was not compared.
fn too_much() -> Finding {
    let reason = Some("more changed at once than can be compared");
    Finding::new(ChangeKind::DeepSchemaUndiffable, "", None, reason)
}

fn finding(kind: ChangeKind, path: &str, old: Option<Node<'_>>, new: Option<Node<'_>>) -> Finding {
    let text = |node: Node<'_>| bounded_text(node, Position::Plain);
    Finding::new(kind, path, old.map(text).as_deref(), new.map(text).as_deref())
}

fn tool(old: Option<Node<'_>>, new: Option<Node<'_>>, budget: &mut Budget) -> Vec<Finding> {
    match (old, new) {
        (None, None) => Vec::new(),
        (Some(old), None) => vec![finding(ChangeKind::ToolRemoved, "", old.get("name"), None)],
        (None, Some(new)) => new_tool(new, budget),
        (Some(old), Some(new)) => changed_tool(old, new, budget),
    }
}

/// A new tool is compared with an empty contract, so that the parameters it requires are reported
/// too.
fn new_tool(new: Node<'_>, budget: &mut Budget) -> Vec<Finding> {
    let mut findings = vec![finding(ChangeKind::ToolAdded, "", None, new.get("name"))];
    if let Some(schema) = new.get("inputSchema") {
        let kind = ChangeKind::AddedRequiredParam;
        match schema::required_parameters(schema, "/inputSchema", MOST_FINDINGS + 1, budget) {
            Some(required) => findings.extend(
                required
                    .into_iter()
                    .map(|(name, path)| of_new_tool(Finding::new(kind, path, None, Some(&name)))),
            ),
            None => findings.push(too_much()),
        }
    }
    if annotations::declares_destructive(new) {
        let path = "/annotations/destructiveHint";
        let kind = ChangeKind::AnnotationFlipToDestructive;
        findings.push(of_new_tool(Finding::new(kind, path, None, Some("true"))));
    }
    findings
}

fn of_new_tool(finding: Finding) -> Finding {
    Finding { detail: Some(Detail::NewTool), ..finding }
}

fn changed_tool(old: Node<'_>, new: Node<'_>, budget: &mut Budget) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = new.get("name").and_then(Node::as_str);
    for (member, (before, after)) in paired(Some(old), Some(new)) {
        if findings.len() > MOST_FINDINGS {
            break;
        }
        if member == "inputSchema" {
            findings.extend(input_schema(before, after, budget));
            continue;
        }
        let position = match member.as_ref() {
            "outputSchema" => Position::Schema,
            _ => Position::Plain,
        };
        if is_same((before, after), position) {
            continue;
        }
        let path = format!("/{}", schema::pointer_step(&member));
        match member.as_ref() {
            "outputSchema" => findings.extend(output_schema(before, after, budget)),
            "description" => {
                findings.push(finding(ChangeKind::DescriptionOnly, &path, before, after));
            }
            "title" => {
                let kind = schema::title_change(before, after, name.as_deref());
                findings.push(finding(kind, &path, before, after));
            }
            "annotations" => {
                findings.extend(annotations::compare(before, after, name.as_deref()));
            }
            "execution" => findings.extend(extras::execution(before, after)),
            "_meta" => findings.extend(extras::meta(before, after)),
            _ => findings.push(finding(ChangeKind::MetadataChanged, &path, before, after)),
        }
    }
    findings
}

fn input_schema(old: Option<Node<'_>>, new: Option<Node<'_>>, budget: &mut Budget) -> Vec<Finding> {
    // A tool without an input schema accepts anything, as an empty schema does.
    let empty = Document::parse("{}");
    let Ok(empty) = empty.as_ref().map(Document::root) else { return vec![unexplained()] };
    let (old_schema, new_schema) = (old.unwrap_or(empty), new.unwrap_or(empty));
    let findings = schema::compare_within(old_schema, new_schema, "/inputSchema", budget);
    // The schemas are equivalent, so the only change is that one side has no schema.
    if findings.is_empty() && old.is_some() != new.is_some() {
        return vec![finding(ChangeKind::MetadataChanged, "/inputSchema", old, new)];
    }
    findings
}

/// Compares output schemas: texts and metadata one by one, and the allowed results as a single
/// change.
fn output_schema(
    old: Option<Node<'_>>,
    new: Option<Node<'_>>,
    budget: &mut Budget,
) -> Vec<Finding> {
    let path = "/outputSchema";
    let (before, after) = match (old, new) {
        (None, _) => return vec![finding(ChangeKind::OutputSchemaAdded, path, old, new)],
        (Some(_), None) => {
            let gone = finding(ChangeKind::OutputSchemaChanged, path, old, new);
            return vec![gone.meaning(Some(Meaning::ResultsOutside))];
        }
        (Some(before), Some(after)) => (before, after),
    };
    let compared = schema::compare_results_within(before, after, path, budget);
    let mut findings = compared.said;
    if let Some(meaning) = compared.change {
        let changed = finding(ChangeKind::OutputSchemaChanged, path, old, new);
        findings.push(Finding { detail: compared.detail, ..changed.meaning(Some(meaning)) });
    }
    findings
}

/// Compares entries member by member, where every member has the same weight.
fn plain(old: Option<Node<'_>>, new: Option<Node<'_>>, kinds: [ChangeKind; 3]) -> Vec<Finding> {
    let [added, removed, changed] = kinds;
    let (old, new) = match (old, new) {
        (None, None) => return Vec::new(),
        (None, Some(new)) => return vec![finding(added, "", None, Some(new))],
        (Some(old), None) => return vec![finding(removed, "", Some(old), None)],
        (Some(old), Some(new)) => (old, new),
    };
    let is_resource = matches!(changed, ChangeKind::ResourceChanged | ChangeKind::TemplateChanged);
    let mut findings = Vec::new();
    for (member, (before, after)) in paired(Some(old), Some(new)) {
        if is_resource && !["name", "title", "description", "mimeType"].contains(&member.as_ref()) {
            continue;
        }
        if findings.len() > MOST_FINDINGS {
            break;
        }
        if !is_same((before, after), Position::Plain) {
            let path = format!("/{}", schema::pointer_step(&member));
            findings.push(finding(changed, &path, before, after));
        }
    }
    findings
}

fn identity(old: Option<Node<'_>>, new: Option<Node<'_>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let member = |node: Option<Node<'_>>, name: &str| {
        node.and_then(|node| node.get(name)).map(|node| canonical_text(node, Position::Plain))
    };
    for name in ["attestedId", "capabilities", "name", "signer"] {
        let (before, after) = (member(old, name), member(new, name));
        if before == after {
            continue;
        }
        let kind = match name {
            "capabilities" => ChangeKind::CapabilitiesChanged,
            _ => ChangeKind::IdentityChanged,
        };
        let path = format!("/{name}");
        let mut found = Finding::new(kind, path, before.as_deref(), after.as_deref());
        if name == "name" {
            // The name is self-reported: report the change, but never decide on it.
            found.class = ChangeClass::Metadata;
        }
        findings.push(found);
    }
    findings
}

/// Members of the origin that identify the server. All other members are details of the same
/// server.
const ORIGIN_IDENTITY: [&str; 4] = ["kind", "package", "program", "url"];

fn origin(old: Option<Node<'_>>, new: Option<Node<'_>>) -> Vec<Finding> {
    let (Some(old), Some(new)) = (old, new) else {
        return vec![finding(ChangeKind::OriginDetailChanged, "", old, new)];
    };
    let mut findings = Vec::new();
    // The same package started by a launcher at another path is the same server.
    let package = |node: Node<'_>| node.get("package").and_then(Node::as_str).map(String::from);
    let is_same_package = package(old).is_some() && package(old) == package(new);
    for (member, (before, after)) in paired(Some(old), Some(new)) {
        if is_same((before, after), Position::Plain) {
            continue;
        }
        let is_detail =
            !ORIGIN_IDENTITY.contains(&member.as_ref()) || member == "program" && is_same_package;
        let kind =
            if is_detail { ChangeKind::OriginDetailChanged } else { ChangeKind::OriginChanged };
        let path = format!("/{}", schema::pointer_step(&member));
        findings.push(finding(kind, &path, before, after));
    }
    findings
}

/// Pairs the members of two objects, in order of name. Looking each name up instead would take
/// quadratic time on hostile entries.
fn paired<'a>(old: Option<Node<'a>>, new: Option<Node<'a>>) -> SortedMap<Cow<'a, str>, Pair<'a>> {
    let mut pairs: SortedMap<Cow<'a, str>, Pair<'a>> = SortedMap::new();
    for (name, value) in old.into_iter().flat_map(Node::members) {
        pairs.get_or_default(name.as_str().unwrap_or_default()).0 = Some(value);
    }
    for (name, value) in new.into_iter().flat_map(Node::members) {
        pairs.get_or_default(name.as_str().unwrap_or_default()).1 = Some(value);
    }
    pairs
}

type Pair<'a> = (Option<Node<'a>>, Option<Node<'a>>);

fn is_same(pair: Pair<'_>, position: Position) -> bool {
    match pair {
        (None, None) => true,
        (Some(before), Some(after)) => canonical::is_same(before, after, position),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

/// The most bytes of added and removed tools that are searched for renames, which are only a hint.
const MAX_RENAME_BYTES: usize = 4 * 1024 * 1024;

/// For each removed tool, by id, the added tool that it was probably renamed to: one with an equal
/// input schema that has at least one property.
pub fn mark_renames<'a>(
    entries: impl Iterator<Item = (&'a EntryId, Option<&'a Entry>, Option<&'a Entry>)>,
) -> SortedMap<EntryId, String> {
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    for (_, before, after) in entries.filter(|(id, ..)| id.entry_type == EntryType::Tool) {
        match (before, after) {
            (None, Some(entry)) => added.push(entry),
            (Some(entry), None) => removed.push(entry),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }
    let bytes: usize = added.iter().chain(&removed).map(|entry| entry.raw().len()).sum();
    if added.is_empty() || removed.is_empty() || bytes > MAX_RENAME_BYTES {
        return SortedMap::new();
    }
    let mut names: SortedMap<Vec<u8>, &str> = SortedMap::new();
    for entry in added {
        if let Some(input) = input_form(entry) {
            // If several tools match, the first by id wins.
            names.get_or_insert_with(input, || entry.key());
        }
    }
    let renamed = removed.into_iter().filter_map(|entry| {
        let name = names.get(&input_form(entry)?)?;
        Some((entry.id().clone(), (*name).to_owned()))
    });
    renamed.collect()
}

/// The canonical form of a tool's input schema. Returns `None` if the schema has no properties.
fn input_form(tool: &Entry) -> Option<Vec<u8>> {
    let document = tool.document().ok()?;
    let schema = document.root().get("inputSchema")?;
    schema::has_properties(schema).then(|| canonical::canonical(schema, Position::Schema))
}

#[cfg(test)]
mod tests;
