//! What can go wrong with the store.

use std::path::PathBuf;

/// Why the store could not do something.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the data folder.
    #[error("the data folder `{folder}` is in use by another daemon")]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder can't be made or opened.
    #[error("the data folder `{folder}` can't be used: {source}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A reader keeps the log of the database from being emptied.
    #[error("a reader keeps the database busy")]
    Busy,
    /// The disk is full.
    #[error("the disk is full")]
    Full,
    /// The database refused.
    #[error("the database refused: {0}")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A stored row can't be read.
    #[error("a row of `{table}` can't be read: {message}")]
    Row {
        /// Its table.
        table: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The database was written by a newer program.
    #[error("the database has version {found}, this program knows version {known}; use the newer program")]
    Newer {
        /// Version found.
        found: i64,
        /// Version known.
        known: i64,
    },
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            _ => Self::Database(Box::new(error)),
        }
    }
}
