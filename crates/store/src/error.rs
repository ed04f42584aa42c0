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
    /// The disk did not take what was to be kept. Nobody can tell what of it is there, so the program has to end.
    #[error("the disk failed to keep what was written: {0}")]
    Unsynced(#[source] Box<dyn std::error::Error + Send + Sync>),
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
        /// Extended codes of SQLite for a failed `fsync` of a file or of a folder.
        const FSYNC_FAILED: [i32; 2] = [1034, 1290];
        let code = error.sqlite_error();
        match code.map(|code| (code.code, code.extended_code)) {
            Some((rusqlite::ErrorCode::DiskFull, _)) => Self::Full,
            Some((_, code)) if FSYNC_FAILED.contains(&code) => Self::Unsynced(Box::new(error)),
            _ => Self::Database(Box::new(error)),
        }
    }
}
