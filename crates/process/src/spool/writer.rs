//! Appending to a spool. One writer at a time: the shim, which holds the folder's lock.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::spool::SpoolError;
use crate::spool::format::{
    FORMAT_VERSION, RECORD_HEADER_BYTES, RECORD_MAX_BYTES, RecordKind, SEGMENT_HEADER_BYTES,
    encode_record_header, encode_segment_header,
};
use crate::spool::reader::SpoolReader;
use crate::spool::segments::{list_segments, segment_path};

/// 64 MiB: space comes back in pieces of this size, and a generation rarely has more than a few of them.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;

/// Appends records, rolling over to a new segment when the current one is full.
#[derive(Debug)]
pub struct SpoolWriter {
    folder: PathBuf,
    segment_bytes: u64,
    version: u32,
    file: File,
    segment_start: u64,
    /// Bytes of the current segment that are whole; anything after them in the file is a failed attempt.
    length: u64,
    oldest: u64,
    torn: Torn,
}

/// Whether the file may hold bytes after `length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Torn {
    No,
    Maybe,
}

impl SpoolWriter {
    /// Opens the spool of a folder, or starts one. A torn record at its end is cut off; damage before it is an error.
    pub fn open(folder: &Path, segment_bytes: u64) -> Result<Self, SpoolError> {
        Self::open_as(folder, segment_bytes, FORMAT_VERSION)
    }

    /// The same as a program of another version would, for tests of upgrades under running agents.
    pub(crate) fn open_as(folder: &Path, segment_bytes: u64, version: u32) -> Result<Self, SpoolError> {
        let starts = list_segments(folder)?;
        let Some(newest) = starts.last().copied() else {
            return Ok(SpoolWriter {
                folder: folder.to_path_buf(),
                segment_bytes,
                version,
                file: create_segment(folder, 0, version)?,
                segment_start: 0,
                length: SEGMENT_HEADER_BYTES as u64,
                oldest: 0,
                torn: Torn::No,
            });
        };
        let length = whole_bytes(folder, newest)?;
        let file = if length == 0 {
            create_segment(folder, newest, version)?
        } else {
            let path = segment_path(folder, newest);
            let opened = OpenOptions::new().read(true).write(true).open(&path);
            opened.map_err(|source| SpoolError::Io { path, source })?
        };
        let mut writer = SpoolWriter {
            folder: folder.to_path_buf(),
            segment_bytes,
            version,
            file,
            segment_start: newest,
            length: length.max(SEGMENT_HEADER_BYTES as u64),
            oldest: starts.first().copied().unwrap_or(newest),
            torn: Torn::Maybe,
        };
        writer.cut_torn_tail()?;
        Ok(writer)
    }

    /// Appends one record and returns the spool's end after it. On an error the record is not in the spool, and the
    /// same call may be made again.
    pub fn append(
        &mut self,
        kind: RecordKind,
        seq: u64,
        at_ms: i64,
        bytes: &[u8],
    ) -> Result<u64, SpoolError> {
        if bytes.len() > RECORD_MAX_BYTES {
            return Err(SpoolError::RecordTooLong { bytes: bytes.len(), limit: RECORD_MAX_BYTES });
        }
        self.cut_torn_tail()?;
        let size = (RECORD_HEADER_BYTES + bytes.len()) as u64;
        let has_records = self.length > SEGMENT_HEADER_BYTES as u64;
        if has_records && self.length + size > self.segment_bytes {
            self.roll()?;
        }
        let header = encode_record_header(kind, seq, at_ms, bytes);
        if let Err(source) = write_whole(&self.file, &header, bytes, self.length) {
            self.torn = Torn::Maybe;
            // A reader takes a half record at the end for one that is not there yet, so failing to cut it off now
            // does no harm: the next append tries again first.
            let _ = self.cut_torn_tail();
            return Err(self.failed(source));
        }
        self.length += size;
        Ok(self.end())
    }

    /// The position after the last record.
    pub fn end(&self) -> u64 {
        self.segment_start + self.length
    }

    /// Bytes of this spool that are still on disk. The folder is listed only when `above` might be exceeded.
    pub fn exceeds(&mut self, above: u64) -> Result<bool, SpoolError> {
        if self.end() - self.oldest <= above {
            return Ok(false);
        }
        self.oldest = list_segments(&self.folder)?.first().copied().unwrap_or(self.segment_start);
        Ok(self.end().saturating_sub(self.oldest) > above)
    }

    fn roll(&mut self) -> Result<(), SpoolError> {
        let start = self.end();
        self.file = create_segment(&self.folder, start, self.version)?;
        self.segment_start = start;
        self.length = SEGMENT_HEADER_BYTES as u64;
        Ok(())
    }

    fn cut_torn_tail(&mut self) -> Result<(), SpoolError> {
        if self.torn == Torn::Maybe {
            self.file.set_len(self.length).map_err(|source| self.failed(source))?;
            self.torn = Torn::No;
        }
        Ok(())
    }

    fn failed(&self, source: io::Error) -> SpoolError {
        SpoolError::Io { path: segment_path(&self.folder, self.segment_start), source }
    }
}

fn create_segment(folder: &Path, start: u64, version: u32) -> Result<File, SpoolError> {
    let path = segment_path(folder, start);
    let created =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path);
    let written =
        created.and_then(|file| file.write_all_at(&encode_segment_header(version), 0).map(|()| file));
    written.map_err(|source| {
        // A segment without its header would end the spool for readers that look at the newest file; if it cannot be
        // removed either, the next attempt truncates and rewrites the same file.
        let _ = std::fs::remove_file(&path);
        SpoolError::Io { path, source }
    })
}

/// Bytes of the newest segment up to the end of its last whole record; 0 when not even its header is whole.
fn whole_bytes(folder: &Path, newest: u64) -> Result<u64, SpoolError> {
    let path = segment_path(folder, newest);
    let metadata = std::fs::metadata(&path).map_err(|source| SpoolError::Io { path, source })?;
    if metadata.len() < SEGMENT_HEADER_BYTES as u64 {
        return Ok(0);
    }
    let mut reader = SpoolReader::open(folder, newest)?;
    while reader.next()?.is_some() {}
    Ok(reader.position() - newest)
}

fn write_whole(file: &File, header: &[u8], bytes: &[u8], mut offset: u64) -> io::Result<()> {
    let (mut header, mut bytes) = (header, bytes);
    while !header.is_empty() || !bytes.is_empty() {
        let written = match rustix::io::pwritev(file, &[IoSlice::new(header), IoSlice::new(bytes)], offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => written,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        offset += written as u64;
        let of_header = written.min(header.len());
        header = header.get(of_header..).unwrap_or_default();
        bytes = bytes.get(written - of_header..).unwrap_or_default();
    }
    Ok(())
}
