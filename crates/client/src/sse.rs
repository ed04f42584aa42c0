//! Reads server-sent events out of bytes that come in pieces of any size.

use crate::ClientError;

/// Longest line taken. A row of the journal holds a prompt or a plan at most; large texts stand in the store.
const LINE_MAX_BYTES: usize = 64 * 1024 * 1024;

/// One frame that carries data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) data: String,
}

/// What is left of the bytes so far.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    line: Vec<u8>,
    frame: Frame,
    has_data: bool,
}

impl Reader {
    /// Takes in more bytes and gives the frames that they complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, ClientError> {
        let mut frames = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = rest.split_at(end);
            self.line.extend_from_slice(head);
            rest = tail.get(1..).unwrap_or_default();
            let line = std::mem::take(&mut self.line);
            frames.extend(self.take_line(&line)?);
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > LINE_MAX_BYTES {
            return Err(ClientError::Protocol(format!("an event is longer than {LINE_MAX_BYTES} bytes")));
        }
        Ok(frames)
    }

    fn take_line(&mut self, line: &[u8]) -> Result<Option<Frame>, ClientError> {
        let text = std::str::from_utf8(line)
            .map_err(|_| ClientError::Protocol("an event is not UTF-8".to_owned()))?
            .trim_end_matches('\r');
        if text.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            return Ok(std::mem::take(&mut self.has_data).then_some(frame));
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => value.clone_into(&mut self.frame.id),
            "data" => {
                if self.has_data {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
                self.has_data = true;
            }
            // `event` repeats what the data says; a line without a field name is a comment.
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: &str, data: &str) -> Frame {
        Frame { id: id.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn frames_are_the_same_however_the_bytes_are_cut() {
        let text = "id: 1\nevent: a\ndata: {\"x\":\"ü\"}\n\n: ping\n\nid: 2\r\ndata: one\r\ndata: two\r\n\r\nid: 3\ndata:";
        let expected = vec![frame("1", "{\"x\":\"ü\"}"), frame("2", "one\ntwo")];
        for size in 1..text.len() {
            let mut reader = Reader::default();
            let frames: Vec<Frame> =
                text.as_bytes().chunks(size).flat_map(|bytes| reader.take(bytes).unwrap()).collect();
            assert_eq!(frames, expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_frame_without_data_is_none() {
        let mut reader = Reader::default();
        assert_eq!(reader.take(b"id: 9\nevent: x\n\n").unwrap(), []);
        assert!(reader.take(b"data: \xff\n").is_err());
    }
}
