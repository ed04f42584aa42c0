//! Where a store can be made and opened again: what an implementation brings to the suite.

use rallypoint_store::{JournalStore, KeyEnforcement, Store, StoreError};
use tempfile::TempDir;

/// A place of its own for one store.
pub(crate) trait Place {
    /// An empty one.
    fn empty() -> Self;

    /// Makes the store, or opens it again.
    fn open(&self, keys: KeyEnforcement) -> Result<Box<dyn JournalStore>, StoreError>;
}

/// SQLite in a temporary folder.
#[derive(Debug)]
pub(crate) struct SqliteFolder(pub(crate) TempDir);

impl Place for SqliteFolder {
    fn empty() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn open(&self, keys: KeyEnforcement) -> Result<Box<dyn JournalStore>, StoreError> {
        Ok(Box::new(Store::open(self.0.path(), keys)?))
    }
}
