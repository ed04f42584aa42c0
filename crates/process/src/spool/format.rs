//! How segments and records look on disk. All numbers are little-endian.
//!
//! Segment: 4 bytes magic, version (u32), then records.
//! Record: length of the bytes (u32), kind (u8), sequence number (u64), unix milliseconds (i64), CRC-32 of kind,
//! sequence number, milliseconds and bytes (u32), then the bytes.

use crate::wire::INPUT_MAX_BYTES;

/// The version in every segment's header.
pub const FORMAT_VERSION: u32 = 1;

/// The oldest version that is read. Agents outlive the program that started them, so the version before the newest
/// stays readable.
pub const OLDEST_READABLE_VERSION: u32 = 1;

/// The longest `Out` or `Err` record: one read of the shim's fixed buffer.
pub const OUTPUT_MAX_BYTES: usize = 64 * 1024;

/// The longest record of any kind. Input is the longest there is.
pub(super) const RECORD_MAX_BYTES: usize = INPUT_MAX_BYTES;

pub(super) const SEGMENT_HEADER_BYTES: usize = 8;
pub(super) const RECORD_HEADER_BYTES: usize = 25;

const MAGIC: [u8; 4] = *b"RSPL";

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// The agent was started: JSON with `pid`, `startTime` and `argv0`.
    Start,
    /// Input for the agent with its input sequence number, written before the agent gets it.
    In,
    /// Bytes of the agent's standard output as they were read.
    Out,
    /// Bytes of its standard error as they were read.
    Err,
    /// The agent's standard input was closed.
    StdinClosed,
    /// The agent ended: JSON with `code` and `signal`.
    Exit,
    /// A remark of the shim, for people.
    Note,
}

impl RecordKind {
    const ALL: [RecordKind; 7] = [
        RecordKind::Start,
        RecordKind::In,
        RecordKind::Out,
        RecordKind::Err,
        RecordKind::StdinClosed,
        RecordKind::Exit,
        RecordKind::Note,
    ];

    /// Zero is no kind, so a run of zeros is never a record.
    fn number(self) -> u8 {
        match self {
            RecordKind::Start => 1,
            RecordKind::In => 2,
            RecordKind::Out => 3,
            RecordKind::Err => 4,
            RecordKind::StdinClosed => 5,
            RecordKind::Exit => 6,
            RecordKind::Note => 7,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// A record's header as it was read, not yet checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordHeader {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) seq: u64,
    pub(super) at_ms: i64,
    crc: u32,
}

impl RecordHeader {
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first()?;
        let (seq, rest) = rest.split_first_chunk::<8>()?;
        let (at_ms, rest) = rest.split_first_chunk::<8>()?;
        let (crc, _) = rest.split_first_chunk::<4>()?;
        Some(RecordHeader {
            length: u32::from_le_bytes(*length) as usize,
            kind: *kind,
            seq: u64::from_le_bytes(*seq),
            at_ms: i64::from_le_bytes(*at_ms),
            crc: u32::from_le_bytes(*crc),
        })
    }

    pub(super) fn fits(&self, bytes: &[u8]) -> bool {
        self.crc == checksum(self.kind, self.seq, self.at_ms, bytes)
    }
}

/// The caller has checked that `bytes` is no longer than [`RECORD_MAX_BYTES`], so its length fits.
pub(super) fn encode_record_header(
    kind: RecordKind,
    seq: u64,
    at_ms: i64,
    bytes: &[u8],
) -> [u8; RECORD_HEADER_BYTES] {
    let crc = checksum(kind.number(), seq, at_ms, bytes);
    let mut header = [0; RECORD_HEADER_BYTES];
    let fields = (bytes.len() as u32)
        .to_le_bytes()
        .into_iter()
        .chain([kind.number()])
        .chain(seq.to_le_bytes())
        .chain(at_ms.to_le_bytes())
        .chain(crc.to_le_bytes());
    for (slot, byte) in header.iter_mut().zip(fields) {
        *slot = byte;
    }
    header
}

pub(super) fn encode_segment_header(version: u32) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut header = [0; SEGMENT_HEADER_BYTES];
    for (slot, byte) in header.iter_mut().zip(MAGIC.into_iter().chain(version.to_le_bytes())) {
        *slot = byte;
    }
    header
}

/// The version of a segment, or `None` when this is not the header of one.
pub(super) fn decode_segment_header(bytes: &[u8]) -> Option<u32> {
    let version = bytes.strip_prefix(&MAGIC)?;
    Some(u32::from_le_bytes(version.try_into().ok()?))
}

fn checksum(kind: u8, seq: u64, at_ms: i64, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&seq.to_le_bytes());
    hasher.update(&at_ms.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}
