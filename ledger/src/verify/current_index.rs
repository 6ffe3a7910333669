//! The current state of the index: retention and other writers may continue while a folder is
//! verified.

use super::{index_checkpoint, read_index};
use crate::folder::Folder;
use crate::index::Index;
use crate::note::Keyring;
use std::cell::RefCell;
use std::rc::Rc;

/// The index, read again only after it was signed again. Reading it for each chain would make the
/// cost quadratic in the number of chains.
pub(super) struct CurrentIndex<'a> {
    folder: &'a dyn Folder,
    keys: &'a Keyring,
    /// The checkpoint from before the index was read, and the index.
    read: RefCell<(Option<String>, Rc<Index>)>,
}

impl<'a> CurrentIndex<'a> {
    pub(super) fn new(
        folder: &'a dyn Folder,
        keys: &'a Keyring,
        checkpoint: Option<String>,
        index: Rc<Index>,
    ) -> CurrentIndex<'a> {
        CurrentIndex { folder, keys, read: RefCell::new((checkpoint, index)) }
    }

    pub(super) fn read(&self) -> Rc<Index> {
        let checkpoint = index_checkpoint(self.folder);
        let mut read = self.read.borrow_mut();
        if read.0 != checkpoint {
            let index = read_index(self.folder, self.keys).map(|(index, _)| index);
            *read = (checkpoint, Rc::new(index.unwrap_or_default()));
        }
        read.1.clone()
    }
}
