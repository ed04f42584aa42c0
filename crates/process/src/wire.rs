//! What daemon and shim say to each other over the shim's socket.
//!
//! A frame is the length of its payload (u32, little-endian), a type byte, and the payload: JSON, except for input
//! (sequence number u64, then the bytes) and the doorbell (spool end u64, then 1 once the agent's exit is recorded).
//! A request is answered by exactly one reply whose type is the request's with the high bit set; requests of one type
//! are answered in their order. The doorbell is the only frame that nobody asked for.

use serde::{Deserialize, Serialize};

use crate::agent_process::{AgentProcess, ExitStatus, StartSpec};

/// The version both ends must agree on; stated in `attach`.
pub(crate) const PROTOCOL_VERSION: u32 = 1;

/// The longest input that is taken in one piece: far above any prompt, small enough to be held in memory.
pub const INPUT_MAX_BYTES: usize = 32 << 20;

/// Room for the longest input and its sequence number.
pub(crate) const FRAME_MAX_BYTES: usize = INPUT_MAX_BYTES + 8;

pub(crate) const FRAME_HEADER_BYTES: usize = 5;

const REPLY_BIT: u8 = 0x80;
pub(crate) const DOORBELL: u8 = 0xF0;

/// What a daemon can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RequestKind {
    Attach,
    Start,
    Send,
    CloseStdin,
    Terminate,
    Kill,
    Finish,
    Recall,
}

impl RequestKind {
    const ALL: [RequestKind; 8] = [
        RequestKind::Attach,
        RequestKind::Start,
        RequestKind::Send,
        RequestKind::CloseStdin,
        RequestKind::Terminate,
        RequestKind::Kill,
        RequestKind::Finish,
        RequestKind::Recall,
    ];

    pub(crate) fn request_type(self) -> u8 {
        match self {
            RequestKind::Attach => 1,
            RequestKind::Start => 2,
            RequestKind::Send => 3,
            RequestKind::CloseStdin => 4,
            RequestKind::Terminate => 5,
            RequestKind::Kill => 6,
            RequestKind::Finish => 7,
            RequestKind::Recall => 8,
        }
    }

    pub(crate) fn reply_type(self) -> u8 {
        self.request_type() | REPLY_BIT
    }

    pub(crate) fn from_request_type(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.request_type() == number)
    }

    pub(crate) fn from_reply_type(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reply_type() == number)
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct AttachRequest {
    pub(crate) version: u32,
    pub(crate) epoch: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Reply {
    Attached {
        last_input_seq: u64,
        started: Option<AgentProcess>,
        exited: Option<ExitStatus>,
        spool_end: u64,
    },
    Started {
        process: AgentProcess,
    },
    StartFailed {
        kind: StartFailure,
        message: String,
    },
    /// The input is in the spool, now or since an earlier send.
    Taken,
    Done,
    Killed {
        killed: u32,
        left: u32,
    },
    Recalled {
        spec: Option<StartSpec>,
    },
    Refused {
        reason: Refusal,
    },
}

/// Why an agent could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartFailure {
    NotFound,
    NotExecutable,
    BadCwd,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Refusal {
    /// A daemon with this higher epoch was here.
    Epoch {
        highest: u64,
    },
    Version {
        supported: u32,
    },
    NotStarted,
    AlreadyStarted {
        process: AgentProcess,
    },
    /// Input must come as last + 1.
    Gap {
        expected: u64,
    },
    StdinClosed,
    Exited,
    /// The agent has not read this much of its earlier input yet.
    Overloaded {
        pending_bytes: u64,
    },
    /// The input could not be written to the spool, so it was not taken.
    SpoolFull {
        message: String,
    },
    StillRunning,
    /// This many processes could not be ended.
    TreeLeft {
        left: u32,
    },
    Malformed {
        message: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameTooLong;

pub(crate) fn encode_frame(frame_type: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = Vec::with_capacity(FRAME_HEADER_BYTES + length);
    frame.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    frame.push(frame_type);
    for part in parts {
        frame.extend_from_slice(part);
    }
    frame
}

pub(crate) fn encode_reply(kind: RequestKind, reply: &Reply) -> Vec<u8> {
    // These types have no map with keys that JSON cannot have, so this cannot fail; an empty payload would be
    // answered by the client as a breach of protocol.
    let payload = serde_json::to_vec(reply).unwrap_or_default();
    encode_frame(kind.reply_type(), &[&payload])
}

pub(crate) fn encode_doorbell(spool_end: u64, exited: bool) -> Vec<u8> {
    encode_frame(DOORBELL, &[&spool_end.to_le_bytes(), &[u8::from(exited)]])
}

pub(crate) fn decode_doorbell(payload: &[u8]) -> Option<(u64, bool)> {
    let (spool_end, rest) = payload.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*spool_end), *rest.first()? != 0))
}

/// Takes the first whole frame out of `buffer`; `None` when there is none yet.
pub(crate) fn take_frame(
    buffer: &mut Vec<u8>,
    max_bytes: usize,
) -> Result<Option<(u8, Vec<u8>)>, FrameTooLong> {
    let Some((length, rest)) = buffer.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes(*length) as usize;
    if length > max_bytes {
        return Err(FrameTooLong);
    }
    let Some((frame_type, rest)) = rest.split_first() else {
        return Ok(None);
    };
    let frame_type = *frame_type;
    let Some(payload) = rest.get(..length).map(<[u8]>::to_vec) else {
        return Ok(None);
    };
    buffer.drain(..FRAME_HEADER_BYTES + length);
    Ok(Some((frame_type, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_even_byte_by_byte() {
        let mut stream = encode_frame(3, &[b"ab", b"c"]);
        stream.extend(encode_frame(4, &[]));
        let (mut buffer, mut frames) = (Vec::new(), Vec::new());
        for byte in stream {
            buffer.push(byte);
            frames.extend(take_frame(&mut buffer, 3).unwrap());
        }
        assert_eq!(frames, vec![(3, b"abc".to_vec()), (4, Vec::new())]);
        assert_eq!(buffer, Vec::<u8>::new());
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_before_it_is_buffered() {
        let mut buffer = 4_u32.to_le_bytes().to_vec();
        assert_eq!(take_frame(&mut buffer, 3), Err(FrameTooLong));
    }
}
