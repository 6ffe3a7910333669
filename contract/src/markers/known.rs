//! The strings that a document has, names included, to tell what is new in another one.

use crate::json::{Kind, Node};
use std::hash::{DefaultHasher, Hasher};

/// All strings below a value.
///
/// Eight bytes a string: a hash and where it is. A set of texts would cost hostile input many times its bytes. A hash
/// only narrows the search; texts are compared in full, so a collision cannot pass a new string off as known.
#[derive(Debug)]
pub(crate) struct KnownStrings<'a> {
    root: Node<'a>,
    by_hash: Vec<(u32, u32)>,
}

impl<'a> KnownStrings<'a> {
    pub(crate) fn of(root: Node<'a>) -> Self {
        let mut by_hash: Vec<(u32, u32)> = strings(root)
            .map(|node| (hash(&node.as_str().unwrap_or_default()), node.index()))
            .collect();
        by_hash.sort_unstable();
        let mut known = KnownStrings { root, by_hash };
        known.drop_repeated();
        known
    }

    pub(crate) fn contains(&self, text: &str) -> bool {
        let hash = hash(text);
        let first = self.by_hash.partition_point(|&(other, _)| other < hash);
        let candidates = self.by_hash.get(first..).unwrap_or(&[]);
        candidates
            .iter()
            .take_while(|&&(other, _)| other == hash)
            .any(|&(_, index)| self.root.at(index).is_text(text))
    }

    /// Each different string once, the first place of it.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = Node<'a>> + '_ {
        self.by_hash.iter().map(|&(_, index)| self.root.at(index))
    }

    fn drop_repeated(&mut self) {
        let root = self.root;
        self.by_hash.dedup_by(|&mut (later, at), &mut (earlier, kept)| {
            later == earlier
                && root.at(at).as_str().is_some_and(|text| root.at(kept).is_text(&text))
        });
    }
}

/// Every string below a value, names included, in the order of the text.
pub(crate) fn strings(root: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let end = root.index().saturating_add(root.size());
    (root.index()..end).map(move |index| root.at(index)).filter(|node| node.kind() == Kind::String)
}

fn hash(text: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    // The lower half is as good as the whole: it only narrows the search.
    hasher.finish() as u32
}
