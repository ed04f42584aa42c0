//! The append-only record of one generation.
//!
//! The shim appends what the agent said and what was said to it; the daemon reads by position and stores how far it
//! has understood. A position is a byte offset into the whole spool, segment headers included: a segment's file is
//! named by the position it starts at, so a position finds its file and the offset in it without an index.
//!
//! There is no fsync: a record survives the death of every process, not the loss of power. A record that ends too
//! early at the very end is not there yet; damage anywhere else is an error, never skipped.

mod format;
mod reader;
mod segments;
mod writer;

use std::io;
use std::path::PathBuf;

pub use crate::spool::format::{FORMAT_VERSION, OLDEST_READABLE_VERSION, OUTPUT_MAX_BYTES, RecordKind};
pub use crate::spool::reader::{SpoolReader, SpoolRecord};
pub use crate::spool::segments::{remove_segments_before, spool_end, unread_bytes};
pub use crate::spool::writer::{SEGMENT_BYTES_DEFAULT, SpoolWriter};

/// Why a spool could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error("spool file `{path}`: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Damage at this position; nothing after it is trustworthy.
    #[error("the spool is damaged at byte {position}: {reason}")]
    Corrupt { position: u64, reason: &'static str },
    /// Written by another version of this program.
    #[error(
        "the spool segment at byte {position} has format {version} and was written by {} program; this one reads \
         formats {OLDEST_READABLE_VERSION} to {FORMAT_VERSION}",
        if *version > FORMAT_VERSION { "a newer" } else { "a much older" }
    )]
    UnsupportedVersion { position: u64, version: u32 },
    /// The position lies in a segment that is gone.
    #[error("byte {position} of the spool is gone; the oldest that is left is {oldest:?}")]
    Removed { position: u64, oldest: Option<u64> },
    /// The position lies after everything written, as after a loss of power.
    #[error("byte {position} lies after the spool's end at {end}")]
    BeyondEnd { position: u64, end: u64 },
    #[error("a record of {bytes} bytes exceeds the limit of {limit}")]
    RecordTooLong { bytes: usize, limit: usize },
}

impl SpoolError {
    /// Whether the disk or a quota is full, so that trying again later is right.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self, SpoolError::Io { source, .. } if matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        ))
    }
}
