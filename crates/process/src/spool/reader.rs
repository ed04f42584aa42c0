//! Reading a spool by position, while it may still be written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::spool::SpoolError;
use crate::spool::format::{
    FORMAT_VERSION, OLDEST_READABLE_VERSION, RECORD_HEADER_BYTES, RECORD_MAX_BYTES, RecordHeader, RecordKind,
    SEGMENT_HEADER_BYTES, decode_segment_header,
};
use crate::spool::segments::{list_segments, segment_path};

/// Bytes asked for in one read: many small records, or a full output record in two reads.
const READ_AHEAD_BYTES: usize = 64 * 1024;

/// One record and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolRecord {
    /// Where this record starts.
    pub position: u64,
    /// Where the next one starts: the cursor to store once this record is understood.
    pub next_position: u64,
    pub kind: RecordKind,
    /// The input sequence number of an `In` record; 0 for every other kind.
    pub seq: u64,
    /// Unix milliseconds.
    pub at_ms: i64,
    pub bytes: Vec<u8>,
}

/// Reads records in order from a position. Blocking file reads, no waiting: an end that is not final is `None`.
#[derive(Debug)]
pub struct SpoolReader {
    folder: PathBuf,
    position: u64,
    segment: Option<Segment>,
}

#[derive(Debug)]
struct Segment {
    file: File,
    start: u64,
    /// What was read ahead is `consumed..filled` of it, the first byte of that stands at the reader's position. Empty
    /// while there is nothing to read: a reader waits far longer than it reads, and a daemon has one per agent.
    buffer: Vec<u8>,
    consumed: usize,
    filled: usize,
}

impl SpoolReader {
    /// A reader from `position` on: 0, or a `next_position` that was stored.
    ///
    /// Fails when the position is in a segment that is gone or after everything written; a spool that does not exist
    /// yet is fine for position 0.
    pub fn open(folder: &Path, position: u64) -> Result<Self, SpoolError> {
        let mut reader = SpoolReader { folder: folder.to_path_buf(), position, segment: None };
        reader.find_segment()?;
        Ok(reader)
    }

    /// Where the next record is expected: everything before it was returned.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next record; `None` when there is none yet. After an error the reader stays where it is.
    #[expect(
        clippy::should_implement_trait,
        reason = "`None` is not the end here: a later call may return a record"
    )]
    pub fn next(&mut self) -> Result<Option<SpoolRecord>, SpoolError> {
        loop {
            if self.segment.is_none() && !self.find_segment()? {
                return Ok(None);
            }
            let record = match self.read_record() {
                // What was read ahead may be half of a write that failed and half of its repetition.
                Err(SpoolError::Corrupt { .. }) => {
                    self.segment.iter_mut().for_each(Segment::forget);
                    self.read_record()?
                }
                outcome => outcome?,
            };
            if record.is_some() {
                return Ok(record);
            }
            if !self.move_to_next_segment()? {
                return Ok(None);
            }
        }
    }

    /// Opens the segment that holds the position and skips its header; `false` when it is not written yet.
    fn find_segment(&mut self) -> Result<bool, SpoolError> {
        let starts = list_segments(&self.folder)?;
        let Some(start) = starts.iter().rev().find(|start| **start <= self.position).copied() else {
            return if self.position == 0 && starts.is_empty() {
                Ok(false)
            } else {
                Err(SpoolError::Removed { position: self.position, oldest: starts.first().copied() })
            };
        };
        let is_newest = starts.last() == Some(&start);
        self.open_segment(start, is_newest)
    }

    fn open_segment(&mut self, start: u64, is_newest: bool) -> Result<bool, SpoolError> {
        let path = segment_path(&self.folder, start);
        let failed = |source| SpoolError::Io { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let mut header = [0; SEGMENT_HEADER_BYTES];
        match file.read_exact_at(&mut header, 0) {
            Ok(()) => {}
            Err(error)
                if error.kind() == io::ErrorKind::UnexpectedEof && is_newest && self.position == start =>
            {
                return Ok(false);
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(corrupt(start, "the segment has no header"));
            }
            Err(error) => return Err(failed(error)),
        }
        match decode_segment_header(&header) {
            Some(version) if (OLDEST_READABLE_VERSION..=FORMAT_VERSION).contains(&version) => {}
            Some(version) => {
                return Err(SpoolError::UnsupportedVersion { position: start, version });
            }
            None => return Err(corrupt(start, "not a spool segment")),
        }
        let first = start + SEGMENT_HEADER_BYTES as u64;
        if self.position == start {
            self.position = first;
        }
        let end = start + file.metadata().map_err(failed)?.len();
        if self.position < first {
            return Err(corrupt(self.position, "the position lies in a segment's header"));
        }
        if self.position > end {
            return Err(SpoolError::BeyondEnd { position: self.position, end });
        }
        self.segment = Some(Segment { file, start, buffer: Vec::new(), consumed: 0, filled: 0 });
        Ok(true)
    }

    /// `None` when the segment does not hold a whole record at the position.
    fn read_record(&mut self) -> Result<Option<SpoolRecord>, SpoolError> {
        let position = self.position;
        let Some(segment) = self.segment.as_mut() else {
            return Ok(None);
        };
        let (folder, start) = (&self.folder, segment.start);
        let failed = |source| SpoolError::Io { path: segment_path(folder, start), source };
        let header = segment.peek(position, RECORD_HEADER_BYTES).map_err(failed)?;
        let Some(header) = header.and_then(RecordHeader::decode) else {
            return Ok(None);
        };
        let Some(kind) = RecordKind::from_number(header.kind) else {
            // A file that was made longer but not filled before power went is a torn tail like any other.
            return if segment.rest_is_zero(position).map_err(failed)? {
                Ok(None)
            } else {
                Err(corrupt(position, "unknown kind of record"))
            };
        };
        if header.length > RECORD_MAX_BYTES {
            return Err(corrupt(position, "impossible length"));
        }
        let size = RECORD_HEADER_BYTES + header.length;
        let Some(record) = segment.peek(position, size).map_err(failed)? else {
            return Ok(None);
        };
        let bytes = record.get(RECORD_HEADER_BYTES..).unwrap_or_default().to_vec();
        if !header.fits(&bytes) {
            return if segment.ends_at(position + size as u64) {
                // Whatever comes last may be a write that power or a crash of the machine cut short.
                segment.forget();
                Ok(None)
            } else {
                Err(corrupt(position, "checksum does not match"))
            };
        }
        segment.consume(size);
        self.position += size as u64;
        Ok(Some(SpoolRecord {
            position,
            next_position: self.position,
            kind,
            seq: header.seq,
            at_ms: header.at_ms,
            bytes,
        }))
    }

    /// Called when the current segment holds no whole record at the position.
    ///
    /// A segment is only ever started where the one before it ends, so the next one exists exactly when this one is
    /// final. Anything left unread in it is then damage.
    fn move_to_next_segment(&mut self) -> Result<bool, SpoolError> {
        let Some(segment) = self.segment.as_mut() else {
            return Ok(false);
        };
        segment.forget();
        let path = segment_path(&self.folder, segment.start);
        let length = segment.file.metadata().map_err(|source| SpoolError::Io { path, source })?.len();
        let end = segment.start + length;
        if !segment_path(&self.folder, end).exists() {
            return Ok(false);
        }
        if self.position == end {
            return self.open_segment(end, true);
        }
        if segment.has_record_at(self.position, end) {
            return Ok(true);
        }
        Err(corrupt(self.position, "a final segment ends within a record"))
    }
}

impl Segment {
    /// The `count` bytes at `position`, or `None` when the file ends before.
    fn peek(&mut self, position: u64, count: usize) -> io::Result<Option<&[u8]>> {
        while self.filled - self.consumed < count {
            self.buffer.copy_within(self.consumed..self.filled, 0);
            self.filled -= self.consumed;
            self.consumed = 0;
            if self.buffer.len() < count.max(READ_AHEAD_BYTES) {
                self.buffer.resize(count.max(READ_AHEAD_BYTES), 0);
            }
            let offset = position - self.start + self.filled as u64;
            let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
            match self.file.read_at(room, offset) {
                Ok(0) => return Ok(None),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.buffer.get(self.consumed..self.consumed + count))
    }

    fn consume(&mut self, count: usize) {
        self.consumed += count;
        if self.buffer.len() > READ_AHEAD_BYTES && self.filled - self.consumed <= READ_AHEAD_BYTES {
            // A long input was read: its room goes back.
            self.buffer = self.buffer.get(self.consumed..self.filled).unwrap_or_default().to_vec();
            self.filled = self.buffer.len();
            self.consumed = 0;
        }
    }

    /// Drops what was read ahead, so that bytes the writer cut off and wrote anew are read anew.
    fn forget(&mut self) {
        self.consumed = 0;
        self.filled = 0;
        self.buffer = Vec::new();
    }

    fn ends_at(&self, position: u64) -> bool {
        self.file.metadata().is_ok_and(|metadata| self.start + metadata.len() <= position)
    }

    /// Whether a record that was not whole a moment ago is whole now that the segment is final.
    fn has_record_at(&mut self, position: u64, end: u64) -> bool {
        let header = self.peek(position, RECORD_HEADER_BYTES).ok().flatten().and_then(RecordHeader::decode);
        header.is_some_and(|header| {
            let whole = position + (RECORD_HEADER_BYTES + header.length) as u64 <= end;
            whole
                && matches!(self.peek(position, RECORD_HEADER_BYTES + header.length), Ok(Some(record))
                if header.fits(record.get(RECORD_HEADER_BYTES..).unwrap_or_default()))
        })
    }

    fn rest_is_zero(&mut self, position: u64) -> io::Result<bool> {
        let mut offset = position - self.start;
        let mut chunk = [0; 4096];
        loop {
            let read = self.file.read_at(&mut chunk, offset)?;
            if read == 0 {
                self.forget();
                return Ok(true);
            }
            if chunk.get(..read).unwrap_or_default().iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            offset += read as u64;
        }
    }
}

fn corrupt(position: u64, reason: &'static str) -> SpoolError {
    SpoolError::Corrupt { position, reason }
}
