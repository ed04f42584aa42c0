//! Output of programs: whole characters out of bytes, a bounded head and tail, and safe quoting.

use std::collections::VecDeque;

/// How much of the beginning of an output is kept for a message.
const HEAD_BYTES: usize = 2 * 1024;
/// How much of its end is kept; errors come last.
const TAIL_BYTES: usize = 4 * 1024;

/// Joins bytes to text without cutting characters.
#[derive(Debug, Default)]
pub(crate) struct TextJoiner {
    /// Beginning of a character whose rest has not come yet, at most 3 bytes.
    begun: Vec<u8>,
}

impl TextJoiner {
    /// Adds these bytes to the text; bytes that are no UTF-8 are replaced.
    pub(crate) fn push(&mut self, bytes: &[u8], text: &mut String) {
        let mut joined = std::mem::take(&mut self.begun);
        joined.extend_from_slice(bytes);
        for chunk in joined.utf8_chunks() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if !invalid.is_empty() && at_end(&joined, invalid) && may_go_on(invalid) {
                self.begun = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// What is left when nothing more comes.
    pub(crate) fn finish(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.begun).is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Whether this is the chunk at the very end, and not an equal one before it.
fn at_end(all: &[u8], chunk: &[u8]) -> bool {
    chunk.as_ptr_range().end == all.as_ptr_range().end
}

/// Whether these bytes are the beginning of a character.
fn may_go_on(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Cuts off the longest beginning of at most this many bytes, but at least one character.
pub(crate) fn split_front(text: &str, bytes: usize) -> (&str, &str) {
    if text.len() <= bytes {
        return (text, "");
    }
    let mut end = bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end == 0 {
        end = text.chars().next().map_or(0, char::len_utf8);
    }
    text.split_at(end)
}

/// Beginning and end of an output of any length.
#[derive(Debug, Default)]
pub(crate) struct HeadTail {
    head: String,
    tail: VecDeque<char>,
    tail_bytes: usize,
    /// Bytes of the whole.
    pub(crate) bytes: u64,
}

impl HeadTail {
    /// Takes further output.
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        let (to_head, rest) = if self.tail.is_empty() {
            let room = HEAD_BYTES.saturating_sub(self.head.len());
            if text.len() <= room { (text, "") } else { floor_split(text, room) }
        } else {
            ("", text)
        };
        self.head.push_str(to_head);
        // Only the last piece can stay, whatever its length.
        let skip = rest.len().saturating_sub(TAIL_BYTES);
        for character in rest.char_indices().filter(|(at, _)| *at >= skip).map(|(_, character)| character) {
            self.tail.push_back(character);
            self.tail_bytes += character.len_utf8();
        }
        while self.tail_bytes > TAIL_BYTES {
            let Some(first) = self.tail.pop_front() else { break };
            self.tail_bytes -= first.len_utf8();
        }
    }

    /// Beginning and end, with a note of what lies between.
    pub(crate) fn shown(&self) -> String {
        let tail: String = self.tail.iter().collect();
        let left_out = self.bytes.saturating_sub((self.head.len() + tail.len()) as u64);
        if left_out == 0 {
            return format!("{}{tail}", self.head);
        }
        format!("{}\n[{left_out} bytes left out]\n{tail}", self.head)
    }

    /// The last lines, at most this many.
    pub(crate) fn last_lines(&self, count: usize) -> String {
        let shown = self.shown();
        let lines: Vec<&str> = shown.trim_end().lines().collect();
        let from = lines.len().saturating_sub(count);
        lines.get(from..).unwrap_or_default().join("\n")
    }
}

fn floor_split(text: &str, at: usize) -> (&str, &str) {
    let mut end = at.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.split_at(end)
}

/// A command or another text as one short line.
pub(crate) fn one_line(text: &str, characters: usize) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let more = lines.next().is_some();
    match first.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None if more => format!("{first} …"),
        None => first.to_owned(),
    }
}

/// A text in backticks, with more of them where it has some itself.
pub(crate) fn code(text: &str) -> String {
    if !text.contains('`') {
        return format!("`{text}`");
    }
    format!("`` {text} ``")
}

/// Output as quoted lines. The bar keeps a fence in the output from opening
/// one in our message, which would hide the report behind it.
pub(crate) fn quoted(output: &str) -> String {
    output.trim_end().lines().flat_map(|line| ["    | ", line, "\n"]).collect()
}

/// Follows whether text leaves a fence open, in the simplest reading that a
/// reader of reports may have: each line that begins with three backticks toggles.
#[derive(Debug, Default)]
pub(crate) struct OpenFence {
    line: String,
    is_open: bool,
}

impl OpenFence {
    /// Takes further text.
    pub(crate) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            // The beginning of a line decides; the rest of a long one is not kept.
            if self.line.len() < 64 {
                self.line.push_str(split_front(piece, 64).0);
            }
            if piece.ends_with('\n') {
                self.is_open ^= self.line.trim_start().starts_with("```");
                self.line.clear();
            }
        }
    }

    /// What has to be said first, so that a new fence is read as one.
    pub(crate) fn closing(&self) -> &'static str {
        let last_toggles = self.line.trim_start().starts_with("```");
        if self.is_open ^ last_toggles { "\n```\n\n" } else { "\n\n" }
    }
}

#[cfg(test)]
mod tests;
