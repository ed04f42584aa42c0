//! The segment files of a spool: their names, which there are, and removing those that are understood.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::spool::SpoolError;

const SUFFIX: &str = ".spool";

/// Removes the segments that end at or before `position`; the newest always stays. Returns how many were removed.
pub fn remove_segments_before(folder: &Path, position: u64) -> Result<usize, SpoolError> {
    let starts = list_segments(folder)?;
    let mut removed = 0;
    // A segment ends where the next one starts.
    for (start, end) in starts.iter().zip(starts.iter().skip(1)) {
        if *end > position {
            break;
        }
        let path = segment_path(folder, *start);
        match fs::remove_file(&path) {
            Ok(()) => removed += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(SpoolError::Io { path, source }),
        }
    }
    Ok(removed)
}

/// Bytes from `position` to the end of the spool, headers and a torn tail included; 0 when there is no spool yet.
pub fn unread_bytes(folder: &Path, position: u64) -> Result<u64, SpoolError> {
    Ok(spool_end(folder)?.saturating_sub(position))
}

/// The position after the last byte written; 0 when there is no spool yet.
pub fn spool_end(folder: &Path) -> Result<u64, SpoolError> {
    let Some(newest) = list_segments(folder)?.last().copied() else {
        return Ok(0);
    };
    let path = segment_path(folder, newest);
    let metadata = fs::metadata(&path).map_err(|source| SpoolError::Io { path, source })?;
    Ok(newest + metadata.len())
}

pub(super) fn segment_path(folder: &Path, start: u64) -> PathBuf {
    folder.join(format!("{start:020}{SUFFIX}"))
}

/// Where the segments start, in order; empty when the folder does not exist.
pub(crate) fn list_segments(folder: &Path) -> Result<Vec<u64>, SpoolError> {
    let failed = |source| SpoolError::Io { path: folder.to_path_buf(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut starts = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        starts.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
    }
    starts.sort_unstable();
    Ok(starts)
}
