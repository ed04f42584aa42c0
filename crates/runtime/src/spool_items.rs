//! From spool records to reports: lines joined, frames numbered, text coalesced,
//! and nothing released that may begin a known secret.
//!
//! A report always ends at the border of a frame, and its cursor stands there.
//! Words that are held back are simply not reported yet, so a restart reads
//! them again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rallypoint_acp::frames::LineAssembler;
use rallypoint_acp::inbound::Peer;
use rallypoint_model::agent_io::{AgentItem, AgentOutput, AgentReport};
use rallypoint_model::session::SpoolCursor;
use rallypoint_process::spool::{RecordKind, SpoolRecord};
use rallypoint_secrets::Redactor;
use serde::Deserialize;

/// How long text may wait to be joined with what follows.
const COALESCE: Duration = Duration::from_millis(60);
/// Text that waits at most, so that a stream which never leaves a safe place to cut still moves on.
const HELD_BYTES: usize = 256 * 1024;

/// One item, and where the cursor stands once it is reported.
#[derive(Debug)]
struct Waiting {
    item: AgentItem,
    cursor: SpoolCursor,
}

/// Reads one generation's records.
pub(crate) struct SpoolItems {
    assembler: LineAssembler,
    peer: Peer,
    line_bytes: usize,
    /// Where the line in progress begins.
    cursor: SpoolCursor,
    /// Bytes of the first record that were understood before.
    skip: u32,
    waiting: VecDeque<Waiting>,
    /// Cursor that covers everything read, once nothing waits.
    reported: SpoolCursor,
    text_since: Option<Instant>,
    /// Kind of text that was reported last, so that a first chunk is told at once.
    last_text: Option<TextKind>,
    exited: bool,
    gave_up_line: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    Message,
    Thought,
}

#[derive(Deserialize)]
struct ExitRecord {
    code: Option<i32>,
    signal: Option<i32>,
}

#[derive(Deserialize)]
struct StartRecord {
    pid: u32,
}

impl SpoolItems {
    pub(crate) fn new(cursor: SpoolCursor, peer: Peer, line_bytes: usize) -> Self {
        Self {
            assembler: LineAssembler::new(line_bytes),
            peer,
            line_bytes,
            cursor,
            skip: cursor.skip,
            waiting: VecDeque::new(),
            reported: cursor,
            text_since: None,
            last_text: None,
            exited: false,
            gave_up_line: false,
        }
    }

    pub(crate) fn peer(&mut self) -> &mut Peer {
        &mut self.peer
    }

    /// Whether the agent's exit was read.
    pub(crate) fn exited(&self) -> bool {
        self.exited
    }

    /// Takes one record in.
    pub(crate) fn take(&mut self, record: &SpoolRecord, now: Instant) {
        match record.kind {
            RecordKind::Out => self.take_output(record, now),
            RecordKind::In => self.push(AgentItem::InputAccepted { seq: record.seq }, now),
            RecordKind::Err => {
                let text = String::from_utf8_lossy(&record.bytes).into_owned();
                self.push(AgentItem::Stderr { text }, now);
            }
            RecordKind::Start => {
                if let Ok(start) = serde_json::from_slice::<StartRecord>(&record.bytes) {
                    self.push(AgentItem::Started { pid: start.pid }, now);
                }
            }
            RecordKind::Exit => {
                self.finish_line(now);
                let exit = serde_json::from_slice::<ExitRecord>(&record.bytes)
                    .unwrap_or(ExitRecord { code: None, signal: None });
                self.push(AgentItem::Exited { code: exit.code, signal: exit.signal }, now);
                self.exited = true;
            }
            RecordKind::StdinClosed | RecordKind::Note => {}
        }
        if self.assembler.pending_bytes() == 0 {
            self.cursor.record = record.next_position;
            self.cursor.skip = 0;
            if self.waiting.is_empty() {
                self.reported = self.cursor;
            } else if let Some(last) = self.waiting.back_mut() {
                last.cursor.record = self.cursor.record;
                last.cursor.skip = 0;
            }
        }
    }

    fn take_output(&mut self, record: &SpoolRecord, now: Instant) {
        let skip = std::mem::take(&mut self.skip);
        let bytes = record.bytes.get(skip as usize..).unwrap_or_default();
        let mut lines: Vec<(Vec<AgentItem>, SpoolCursor)> = Vec::new();
        let mut cursor = self.cursor;
        let peer = &mut self.peer;
        self.assembler.push(bytes, |assembled| {
            cursor.frames = cursor.frames.saturating_add(1);
            cursor.record = record.position;
            cursor.skip = skip.saturating_add(u32::try_from(assembled.consumed).unwrap_or(u32::MAX));
            lines.push((peer.line_items(&assembled.line, cursor.frames), cursor));
        });
        self.cursor = cursor;
        for (items, cursor) in lines {
            for item in items {
                self.push_at(item, cursor, now);
            }
        }
        self.give_up_endless_line(now);
    }

    /// A line that grows without end is told once, while it still grows.
    fn give_up_endless_line(&mut self, now: Instant) {
        match self.assembler.overrun_bytes() {
            Some(bytes) if !self.gave_up_line && bytes > (self.line_bytes as u64).saturating_mul(4) => {
                self.gave_up_line = true;
                self.push(AgentItem::Oversized { bytes, may_be_answer: true }, now);
            }
            Some(_) => {}
            None => self.gave_up_line = false,
        }
    }

    fn finish_line(&mut self, now: Instant) {
        let mut items = Vec::new();
        let frame = self.cursor.frames.saturating_add(1);
        let peer = &mut self.peer;
        let mut any = false;
        self.assembler.finish(|assembled| {
            any = true;
            items.extend(peer.line_items(&assembled.line, frame));
        });
        if any {
            self.cursor.frames = frame;
        }
        for item in items {
            self.push(item, now);
        }
    }

    fn push(&mut self, item: AgentItem, now: Instant) {
        let cursor = self.cursor;
        self.push_at(item, cursor, now);
    }

    fn push_at(&mut self, item: AgentItem, cursor: SpoolCursor, now: Instant) {
        if text_of(&item).is_some() && self.text_since.is_none() {
            self.text_since = Some(now);
        }
        self.waiting.push_back(Waiting { item, cursor });
    }

    /// When text that waits is to be reported although nothing followed it.
    pub(crate) fn flush_at(&self) -> Option<Instant> {
        self.text_since.map(|since| since + COALESCE)
    }

    /// Whether anything was understood that is not reported.
    pub(crate) fn cursor_moved(&self, stored: SpoolCursor) -> bool {
        self.waiting.is_empty() && self.reported != stored
    }

    /// What is ready to be reported: everything before trailing text, and the
    /// trailing text itself when its time has come and no secret may be cut.
    pub(crate) fn ready(&mut self, now: Instant, redactor: &Redactor) -> Option<AgentReport> {
        let trailing = self.trailing_text();
        let mut count = self.waiting.len() - trailing;
        if trailing > 0 {
            let kind = last_text_of(self.waiting.iter());
            let first_of_its_kind = kind != self.last_text || count > 0;
            let waited = self.flush_at().is_some_and(|at| at <= now);
            if first_of_its_kind || waited {
                count += self.safe_prefix(trailing, redactor);
            }
        }
        // Of one frame, and the cursor stands behind it.
        while count > 0 && self.waiting.get(count).is_some_and(|waiting| is_beside(&waiting.item)) {
            count += 1;
        }
        if count == 0 {
            return None;
        }
        let taken: Vec<Waiting> = self.waiting.drain(..count).collect();
        self.last_text = last_text_of(taken.iter());
        self.text_since = if self.waiting.is_empty() { None } else { Some(now) };
        let cursor = if self.waiting.is_empty() && self.assembler.pending_bytes() == 0 {
            self.cursor
        } else {
            taken.last().map_or(self.reported, |waiting| waiting.cursor)
        };
        self.reported = cursor;
        let items = coalesce(taken.into_iter().map(|waiting| waiting.item));
        Some(AgentReport { cursor, items })
    }

    /// A report that only moves the cursor.
    pub(crate) fn cursor_report(&self) -> AgentReport {
        AgentReport { cursor: self.reported, items: Vec::new() }
    }

    /// Items of text of one kind at the end, with what was said beside it.
    fn trailing_text(&self) -> usize {
        let Some(kind) = last_text_of(self.waiting.iter()) else { return 0 };
        self.waiting
            .iter()
            .rev()
            .take_while(|waiting| {
                is_beside(&waiting.item) || text_of(&waiting.item).is_some_and(|(other, _)| other == kind)
            })
            .count()
    }

    fn safe_prefix(&self, trailing: usize, redactor: &Redactor) -> usize {
        let start = self.waiting.len() - trailing;
        let pieces: Vec<&str> = self
            .waiting
            .iter()
            .skip(start)
            .map(|waiting| text_of(&waiting.item).map_or("", |(_, text)| text))
            .collect();
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        if redactor.is_empty() || bytes > HELD_BYTES { trailing } else { redactor.safe_split(&pieces) }
    }
}

/// Whether an item goes with the text of its frame and does not end it: what a model call used is said on a piece of text.
fn is_beside(item: &AgentItem) -> bool {
    matches!(item, AgentItem::TokensUsed { answers: None, .. })
}

/// The kind of the text that these end with.
fn last_text_of<'a>(waiting: impl DoubleEndedIterator<Item = &'a Waiting>) -> Option<TextKind> {
    let last = waiting.rev().find(|waiting| !is_beside(&waiting.item))?;
    text_of(&last.item).map(|(kind, _)| kind)
}

fn text_of(item: &AgentItem) -> Option<(TextKind, &str)> {
    match item {
        AgentItem::Output { output: AgentOutput::Message { text }, .. } => Some((TextKind::Message, text)),
        AgentItem::Output { output: AgentOutput::Thought { text }, .. } => Some((TextKind::Thought, text)),
        _ => None,
    }
}

/// Joins consecutive text of one kind and of one conversation, and junk and
/// error output with their like.
fn coalesce(items: impl Iterator<Item = AgentItem>) -> Vec<AgentItem> {
    let mut joined: Vec<AgentItem> = Vec::new();
    for item in items {
        let place = joined.iter().rposition(|item| !is_beside(item));
        if let Some(last) = place.and_then(|place| joined.get_mut(place))
            && join(last, &item)
        {
            continue;
        }
        joined.push(item);
    }
    joined
}

fn join(last: &mut AgentItem, item: &AgentItem) -> bool {
    match (last, item) {
        (
            AgentItem::Output { last_frame, agent_session_id, output, .. },
            AgentItem::Output {
                last_frame: new_last, agent_session_id: new_session, output: new_output, ..
            },
        ) if agent_session_id == new_session => {
            let joined = match (output, new_output) {
                (AgentOutput::Message { text }, AgentOutput::Message { text: more })
                | (AgentOutput::Thought { text }, AgentOutput::Thought { text: more }) => {
                    text.push_str(more);
                    true
                }
                _ => false,
            };
            if joined {
                *last_frame = *new_last;
            }
            joined
        }
        (AgentItem::Junk { count, bytes, .. }, AgentItem::Junk { count: more, bytes: more_bytes, .. }) => {
            *count = count.saturating_add(*more);
            *bytes = bytes.saturating_add(*more_bytes);
            true
        }
        (AgentItem::Stderr { text }, AgentItem::Stderr { text: more }) => {
            text.push_str(more);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_acp::inbound::PeerState;
    use rallypoint_model::usage::UsageKind;
    use rallypoint_secrets::SecretSet;

    fn items() -> SpoolItems {
        SpoolItems::new(SpoolCursor::default(), Peer::new(PeerState::default(), UsageKind::None), 1024 * 1024)
    }

    fn chunk(text: &str) -> String {
        format!(
            "{}\n",
            serde_json::json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
                "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}}})
        )
    }

    fn record(position: u64, bytes: &[u8]) -> SpoolRecord {
        SpoolRecord {
            position,
            next_position: position + 25 + bytes.len() as u64,
            kind: RecordKind::Out,
            seq: 0,
            at_ms: 0,
            bytes: bytes.to_vec(),
        }
    }

    fn messages(report: &AgentReport) -> Vec<(u64, u64, String)> {
        report
            .items
            .iter()
            .filter_map(|item| match item {
                AgentItem::Output {
                    first_frame, last_frame, output: AgentOutput::Message { text }, ..
                } => Some((*first_frame, *last_frame, text.clone())),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn the_first_chunk_is_told_at_once_and_the_next_ones_are_joined() {
        let mut items = items();
        let now = Instant::now();
        items.take(&record(8, chunk("a").as_bytes()), now);
        let first = items.ready(now, &Redactor::default()).unwrap();
        assert_eq!(messages(&first), [(1, 1, "a".to_owned())]);
        let mut position = first.cursor.record;
        for text in ["b", "c"] {
            let record = record(position, chunk(text).as_bytes());
            position = record.next_position;
            items.take(&record, now);
        }
        assert!(items.ready(now, &Redactor::default()).is_none());
        let later = items.ready(now + COALESCE, &Redactor::default()).unwrap();
        assert_eq!(messages(&later), [(2, 3, "bc".to_owned())]);
        assert_eq!(later.cursor.record, position);
        assert_eq!(later.cursor.frames, 3);
    }

    #[test]
    fn a_secret_cut_into_chunks_is_never_released_in_part() {
        let redactor =
            Redactor::new(SecretSet::from_pairs([("TOKEN".to_owned(), "hunter2hunter2".to_owned())]));
        let mut items = items();
        let start = Instant::now();
        let mut shown = String::new();
        let mut position = 8;
        for (index, piece) in ["it is ", "hun", "ter2", "hunt", "er2", " ok"].iter().enumerate() {
            let record = record(position, chunk(piece).as_bytes());
            position = record.next_position;
            let now = start + COALESCE * u32::try_from(index * 2).unwrap();
            items.take(&record, now);
            if let Some(report) = items.ready(now + COALESCE, &redactor) {
                for (_, _, text) in messages(&report) {
                    shown.push_str(&redactor.redact(&text));
                }
            }
        }
        assert_eq!(shown, "it is [redacted:TOKEN] ok");
    }

    #[test]
    fn a_cursor_in_the_middle_of_a_record_reads_the_same_frames() {
        let text = format!("{}{}{}", chunk("a"), chunk("b"), chunk("c"));
        let (head, tail) = text.as_bytes().split_at(text.len() - 20);
        let mut first = items();
        let now = Instant::now();
        first.take(&record(8, head), now);
        let report = first.ready(now, &Redactor::default()).unwrap();
        assert_eq!(messages(&report), [(1, 2, "ab".to_owned())]);
        let mut second =
            SpoolItems::new(report.cursor, Peer::new(PeerState::default(), UsageKind::None), 1024 * 1024);
        let again = record(8, head);
        second.take(&again, now);
        assert!(second.ready(now, &Redactor::default()).is_none());
        second.take(&record(again.next_position, tail), now);
        let rest = second.ready(now, &Redactor::default()).unwrap();
        assert_eq!(messages(&rest), [(3, 3, "c".to_owned())]);
    }

    #[test]
    fn tokens_beside_text_are_reported_with_its_frame_and_cut_no_secret() {
        let counted = |text: &str| {
            format!(
                "{}\n",
                serde_json::json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
                    "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text},
                        "_meta": {"usage": {"inputTokens": 7}}}}})
            )
        };
        let redactor =
            Redactor::new(SecretSet::from_pairs([("TOKEN".to_owned(), "hunter2hunter2".to_owned())]));
        let state = PeerState {
            open: [(3, rallypoint_acp::inbound::OpenRequest::Prompt)].into_iter().collect(),
            agent_session_id: Some("s".to_owned()),
            ..PeerState::default()
        };
        let mut items =
            SpoolItems::new(SpoolCursor::default(), Peer::new(state, UsageKind::PerTurn), 1024 * 1024);
        let start = Instant::now();
        let (mut shown, mut position) = (String::new(), 8);
        for (index, piece) in ["it is ", "hun", "ter2", "hunt", "er2", " ok"].iter().enumerate() {
            let record = record(position, counted(piece).as_bytes());
            position = record.next_position;
            let now = start + COALESCE * u32::try_from(index * 2).unwrap();
            items.take(&record, now);
            while let Some(report) = items.ready(now + COALESCE, &redactor) {
                for (_, last, text) in messages(&report) {
                    shown.push_str(&redactor.redact(&text));
                    assert_eq!(last, report.cursor.frames, "text and cursor end with one frame");
                }
                let mut used = report.items.iter().filter_map(|item| match item {
                    AgentItem::TokensUsed { frame, .. } => Some(*frame),
                    _ => None,
                });
                assert_eq!(used.next_back(), Some(report.cursor.frames), "{report:?}");
            }
        }
        assert_eq!(shown, "it is [redacted:TOKEN] ok");
    }
}
