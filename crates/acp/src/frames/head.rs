//! Tells from the first bytes of a line that was thrown away whether it may have been an answer.
//!
//! A request or an update that gets lost costs that update. An answer that
//! gets lost leaves a request open for ever, so the caller has to know. Only
//! members of the outermost object count: `"method"` deep inside a result says
//! nothing about the envelope.

/// Whether the line that begins like this may have answered a request.
pub(super) fn may_be_answer(head: &[u8]) -> bool {
    let mut envelope = Envelope::default();
    let mut scan = Scan::default();
    for byte in head {
        if let Some(member) = scan.step(*byte) {
            envelope.note(&member);
        }
    }
    if envelope.method || !scan.is_object {
        return false;
    }
    // With `params` before `method` it is a request or a notification; an
    // envelope that shows nothing else yet could be anything.
    envelope.answer || (envelope.json_rpc && !envelope.params)
}

#[derive(Default)]
struct Envelope {
    json_rpc: bool,
    method: bool,
    params: bool,
    answer: bool,
}

impl Envelope {
    fn note(&mut self, member: &[u8]) {
        match member {
            b"jsonrpc" => self.json_rpc = true,
            b"method" => self.method = true,
            b"params" => self.params = true,
            b"id" | b"result" | b"error" => self.answer = true,
            _ => {}
        }
    }
}

/// Walks over JSON text just well enough to see the outermost member names.
#[derive(Default)]
struct Scan {
    is_object: bool,
    depth: u32,
    in_string: bool,
    escaped: bool,
    string: Vec<u8>,
    last_string: Option<Vec<u8>>,
}

impl Scan {
    /// Takes one byte; gives a member name when this byte is the colon after it.
    fn step(&mut self, byte: u8) -> Option<Vec<u8>> {
        if self.in_string {
            self.step_in_string(byte);
            return None;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.string.clear();
            }
            b'{' | b'[' => {
                self.is_object |= self.depth == 0 && byte == b'{';
                self.depth += 1;
                self.last_string = None;
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' => self.last_string = None,
            b':' if self.depth == 1 => return self.last_string.take(),
            _ => {}
        }
        None
    }

    fn step_in_string(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
            self.string.push(byte);
        } else if byte == b'\\' {
            self.escaped = true;
            self.string.push(byte);
        } else if byte == b'"' {
            self.in_string = false;
            self.last_string = Some(std::mem::take(&mut self.string));
        } else {
            self.string.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::may_be_answer;

    #[test]
    fn the_outermost_members_decide() {
        assert!(may_be_answer(br#"{"jsonrpc":"2.0","id":3,"result":{"method":"x","text":"aaaa"#));
        assert!(may_be_answer(br#"{"result": {"a": ["#));
        assert!(may_be_answer(br#"{"jsonrpc":"2.0","_meta":{"long":"aaaa"#));
        assert!(!may_be_answer(br#"{"jsonrpc":"2.0","method":"session/update","params":{"id":1"#));
        assert!(!may_be_answer(br#"{"jsonrpc":"2.0","params":{"id":1,"update":"#));
        assert!(!may_be_answer(br#"{"level":"info","text":"\"id\": 3, \"result\": 4"#));
        assert!(!may_be_answer(br#"["id", "result"]"#));
        assert!(!may_be_answer(br#"plain words with "id": 3"#));
        assert!(!may_be_answer(b""));
    }
}
