//! Keeping the start and the end of a stream of any length.

use std::collections::VecDeque;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

const READ_BYTES: usize = 16 * 1024;

/// The start and the end of what a command wrote. Bytes that are no UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    pub head: String,
    /// Empty unless something was cut out before it.
    pub tail: String,
    /// Bytes that were written between the two and not kept.
    pub cut_bytes: u64,
}

impl Captured {
    /// Head and tail as one text, with a line in between that says what is missing.
    pub fn text(&self) -> String {
        if self.cut_bytes == 0 {
            format!("{}{}", self.head, self.tail)
        } else {
            format!("{}\n[{} bytes cut]\n{}", self.head, self.cut_bytes, self.tail)
        }
    }
}

/// One stream while it is read.
#[derive(Debug)]
pub(super) struct Capture {
    reader: Option<Receiver>,
    kept: Kept,
}

#[derive(Debug)]
struct Kept {
    head: Vec<u8>,
    head_max: usize,
    tail: VecDeque<u8>,
    tail_max: usize,
    cut_bytes: u64,
}

impl Capture {
    pub(super) fn new(reader: Receiver, keep_bytes: usize) -> Self {
        Capture { reader: Some(reader), kept: Kept::new(keep_bytes) }
    }

    /// May be dropped half-way and called again; nothing is lost in between.
    pub(super) async fn read_to_end(&mut self) {
        let mut buffer = vec![0; READ_BYTES];
        while let Some(reader) = &mut self.reader {
            match reader.read(&mut buffer).await {
                Ok(count) if count > 0 => self.kept.push(buffer.get(..count).unwrap_or_default()),
                Ok(_) | Err(_) => self.reader = None,
            }
        }
    }

    pub(super) fn finish(self) -> Captured {
        self.kept.finish()
    }
}

impl Kept {
    fn new(keep_bytes: usize) -> Self {
        let head_max = keep_bytes.div_ceil(2);
        Kept {
            head: Vec::new(),
            head_max,
            tail: VecDeque::new(),
            tail_max: keep_bytes - head_max,
            cut_bytes: 0,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let to_head = bytes.len().min(self.head_max - self.head.len());
        let (first, rest) = bytes.split_at_checked(to_head).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.tail_max);
        self.tail.drain(..excess);
        self.cut_bytes += excess as u64;
    }

    fn finish(mut self) -> Captured {
        let tail = self.tail.make_contiguous();
        if self.cut_bytes == 0 {
            // Decoded as one, or a character on the border between the two would be replaced twice.
            self.head.extend_from_slice(tail);
            return Captured {
                head: String::from_utf8_lossy(&self.head).into_owned(),
                tail: String::new(),
                cut_bytes: 0,
            };
        }
        Captured {
            tail: String::from_utf8_lossy(tail).into_owned(),
            head: String::from_utf8_lossy(&self.head).into_owned(),
            cut_bytes: self.cut_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_are_kept_and_the_rest_is_counted() {
        let mut kept = Kept::new(6);
        for piece in [b"abc".as_slice(), b"defg", b"hij"] {
            kept.push(piece);
        }
        let captured = kept.finish();
        assert_eq!((captured.head.as_str(), captured.tail.as_str(), captured.cut_bytes), ("abc", "hij", 4));
        assert_eq!(captured.text(), "abc\n[4 bytes cut]\nhij");
    }

    #[test]
    fn a_character_on_the_border_survives_when_nothing_is_cut() {
        let mut kept = Kept::new(5);
        kept.push("aaé".as_bytes());
        let captured = kept.finish();
        assert_eq!((captured.head.as_str(), captured.tail.as_str(), captured.cut_bytes), ("aaé", "", 0));
    }
}
