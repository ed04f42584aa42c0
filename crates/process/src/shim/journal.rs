//! The shim's side of the spool: nothing read from the agent is ever dropped, and a full disk is no reason to die.
//!
//! A record that cannot be written is kept, and nothing more is read from the agent until it is written. What is kept
//! is bounded by that: one buffer per stream and a few small records.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::clock::unix_ms;
use crate::spool::{RecordKind, SpoolError, SpoolWriter};

/// Often enough that an agent hardly notices a cleared disk, rarely enough to cost nothing while it is full.
const RETRY: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Journal {
    writer: SpoolWriter,
    max_bytes: u64,
    kept: VecDeque<(RecordKind, i64, Vec<u8>)>,
    /// Set while the spool takes no output.
    retry_at: Option<Instant>,
}

impl Journal {
    pub(super) fn open(
        folder: &Path,
        segment_bytes: u64,
        max_bytes: u64,
        version: u32,
    ) -> Result<Self, SpoolError> {
        Ok(Journal {
            writer: SpoolWriter::open_as(folder, segment_bytes, version)?,
            // Space comes back by whole segments only, and never the newest: below two of them, a spool that is full
            // once would stay full for ever.
            max_bytes: max_bytes.max(segment_bytes.saturating_mul(2)),
            kept: VecDeque::new(),
            retry_at: None,
        })
    }

    /// Appends a record, now or as soon as the spool takes it.
    pub(super) fn record(&mut self, kind: RecordKind, bytes: &[u8]) {
        let at_ms = unix_ms();
        if !self.kept.is_empty() || self.writer.append(kind, 0, at_ms, bytes).is_err() {
            self.kept.push_back((kind, at_ms, bytes.to_vec()));
        }
        self.update_stall();
    }

    /// Appends input, now or not at all. A spool that is merely long takes it: refusing would keep a daemon that is
    /// behind from ever steering the agent that floods it.
    pub(super) fn record_input(&mut self, seq: u64, bytes: &[u8]) -> Result<(), String> {
        if !self.kept.is_empty() {
            return Err("the spool cannot be written".to_owned());
        }
        let appended = self.writer.append(RecordKind::In, seq, unix_ms(), bytes);
        appended.map(|_| ()).map_err(|error| error.to_string())
    }

    pub(super) fn retry(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| now >= at) {
            self.write_kept();
            self.update_stall();
        }
    }

    pub(super) fn write_kept(&mut self) {
        while let Some((kind, at_ms, bytes)) = self.kept.front() {
            if self.writer.append(*kind, 0, *at_ms, bytes).is_err() {
                return;
            }
            self.kept.pop_front();
        }
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.retry_at.is_some()
    }

    pub(super) fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    pub(super) fn end(&self) -> u64 {
        self.writer.end()
    }

    fn update_stall(&mut self) {
        // Where the folder cannot be listed, the last known size counts: reading on would be a guess.
        let too_long = self.writer.exceeds(self.max_bytes).unwrap_or(true);
        self.retry_at = (too_long || !self.kept.is_empty()).then(|| Instant::now() + RETRY);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::spool::SpoolReader;

    #[test]
    fn what_cannot_be_written_is_kept_in_order_and_written_once_it_can_be_and_input_is_refused_meanwhile() {
        let root = TempDir::new().unwrap();
        let (folder, away) = (root.path().join("here"), root.path().join("away"));
        fs::create_dir(&folder).unwrap();
        let mut journal = Journal::open(&folder, 100, u64::MAX, crate::spool::FORMAT_VERSION).unwrap();
        journal.record(RecordKind::Out, &[b'a'; 60]);
        assert!(!journal.is_stalled());
        // A new segment cannot be made in a folder that is not there, just as on a full disk.
        fs::rename(&folder, &away).unwrap();
        journal.record(RecordKind::Out, &[b'b'; 60]);
        journal.record(RecordKind::Exit, b"{}");
        assert!(journal.is_stalled() && journal.has_kept());
        assert!(journal.record_input(1, b"refused").is_err());
        journal.retry(Instant::now() + RETRY);
        assert!(journal.is_stalled());
        fs::rename(&away, &folder).unwrap();
        journal.retry(Instant::now());
        assert!(journal.is_stalled(), "not before its time");
        journal.retry(Instant::now() + RETRY);
        assert!(!journal.is_stalled() && !journal.has_kept());
        journal.record_input(1, b"taken").unwrap();
        let mut reader = SpoolReader::open(&folder, 0).unwrap();
        let first_bytes: Vec<_> = std::iter::from_fn(|| reader.next().unwrap())
            .map(|record| record.bytes.first().copied())
            .collect();
        assert_eq!(first_bytes, [Some(b'a'), Some(b'b'), Some(b'{'), Some(b't')]);
        assert_eq!(reader.position(), journal.end());
    }
}
