//! From bytes of an agent's standard output to lines.
//!
//! Output arrives in chunks that respect neither lines nor characters. The
//! assembler joins them, keeps memory bounded when a line does not end, and
//! says after each line how far into the current chunk it reached, so that a
//! caller can store a cursor that always stands at the border of a line.
//! Whatever way the same bytes are cut, the same lines come out.

use std::borrow::Cow;

mod head;

/// How much of an oversized line is looked at to tell what it may have been.
/// Envelope members come first in practice; their values may be long.
const HEAD_BYTES: usize = 1024;

/// What a line turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line without its end, never blank; bytes that are no UTF-8 are replaced.
    Whole(Cow<'a, str>),
    /// A line over the cap, thrown away.
    Oversized {
        /// Its length in bytes, without the line end.
        bytes: u64,
        /// Whether it may have answered a request of ours, which then stays open for ever.
        may_be_answer: bool,
    },
}

/// One line, and how far it reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssembledLine<'a> {
    /// The line.
    pub line: Line<'a>,
    /// Bytes of the current push up to and with the end of this line.
    pub consumed: usize,
}

/// Joins chunks to lines.
#[derive(Clone, Debug)]
pub struct LineAssembler {
    cap: usize,
    /// Bytes of the line in progress that earlier pushes brought.
    held: Held,
}

#[derive(Clone, Debug)]
enum Held {
    Within(Vec<u8>),
    Over { bytes: u64, head: Vec<u8> },
}

impl LineAssembler {
    /// An assembler that throws away lines longer than this many bytes.
    pub fn new(line_bytes_cap: usize) -> Self {
        Self { cap: line_bytes_cap, held: Held::Within(Vec::new()) }
    }

    /// Takes a chunk and gives each line that ends in it.
    ///
    /// Returns the bytes of this chunk that lie before the last line border in
    /// it, blank lines included; everything after is held for the next push.
    pub fn push(&mut self, bytes: &[u8], mut on_line: impl FnMut(AssembledLine<'_>)) -> usize {
        let mut border = 0;
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (piece, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            border += end + 1;
            self.end_line(piece, border, &mut on_line);
        }
        self.hold(rest);
        border
    }

    /// Gives the last line, when the output ended without a line end.
    pub fn finish(&mut self, mut on_line: impl FnMut(AssembledLine<'_>)) {
        self.end_line(&[], 0, &mut on_line);
    }

    /// Bytes of the line in progress, those already thrown away included.
    pub fn pending_bytes(&self) -> u64 {
        match &self.held {
            Held::Within(held) => held.len() as u64,
            Held::Over { bytes, .. } => *bytes,
        }
    }

    /// Length so far of a line that is over the cap and has not ended yet.
    ///
    /// A line without end is never reported; a caller that must act on one asks here.
    pub fn overrun_bytes(&self) -> Option<u64> {
        match &self.held {
            Held::Within(_) => None,
            Held::Over { bytes, .. } => Some(*bytes),
        }
    }

    fn end_line(&mut self, piece: &[u8], consumed: usize, on_line: &mut impl FnMut(AssembledLine<'_>)) {
        let nothing_held = matches!(&self.held, Held::Within(held) if held.is_empty());
        if nothing_held && piece.len() <= self.cap {
            give_whole(piece, consumed, on_line);
            return;
        }
        self.hold(piece);
        match std::mem::replace(&mut self.held, Held::Within(Vec::new())) {
            Held::Within(held) => give_whole(&held, consumed, on_line),
            Held::Over { bytes, head } => {
                let may_be_answer = head::may_be_answer(&head);
                on_line(AssembledLine { line: Line::Oversized { bytes, may_be_answer }, consumed });
            }
        }
    }

    fn hold(&mut self, piece: &[u8]) {
        match &mut self.held {
            Held::Within(held) if held.len() + piece.len() <= self.cap => held.extend_from_slice(piece),
            Held::Within(held) => {
                let bytes = (held.len() + piece.len()) as u64;
                let mut head = std::mem::take(held);
                head.truncate(HEAD_BYTES);
                head.shrink_to_fit();
                fill_head(&mut head, piece);
                self.held = Held::Over { bytes, head };
            }
            Held::Over { bytes, head } => {
                *bytes += piece.len() as u64;
                fill_head(head, piece);
            }
        }
    }
}

fn fill_head(head: &mut Vec<u8>, piece: &[u8]) {
    let room = HEAD_BYTES.saturating_sub(head.len());
    head.extend(piece.iter().take(room));
}

fn give_whole(bytes: &[u8], consumed: usize, on_line: &mut impl FnMut(AssembledLine<'_>)) {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    on_line(AssembledLine { line: Line::Whole(String::from_utf8_lossy(bytes)), consumed });
}

#[cfg(test)]
mod tests;
