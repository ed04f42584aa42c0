//! Running a program: its own process group, streamed output, and an end when the turn is cancelled.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use rallypoint_acp::agent_side::Turn;

use crate::output::{TextJoiner, split_front};

/// Largest piece of output that is handed on at once.
pub(crate) const PIECE_BYTES: usize = 4 * 1024;
/// Longest time that output is held back to make a piece larger.
const PIECE_TIME: Duration = Duration::from_millis(50);
/// How often cancelling is looked for.
const TICK: Duration = Duration::from_millis(20);
/// Time from SIGTERM to SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// Time after SIGKILL in which the group has to be gone; longer means that it
/// hangs in the kernel, and waiting would hang the turn with it.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// How long output is still read after the program has exited while something
/// in the background holds it open.
const DRAIN: Duration = Duration::from_millis(200);
/// The same for something in the background that does not stop talking.
const DRAIN_AT_MOST: Duration = Duration::from_secs(1);
/// Chunks that may wait between a pipe and us; more stops the program, as a full pipe does.
const QUEUE: usize = 16;

/// Where output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Standard output, and standard error when both are joined.
    Out,
    /// Standard error, when it is read apart.
    Err,
}

/// How the two output streams are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    /// As one, in the order in which they were written.
    Joined,
    /// Apart.
    Apart,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Exit code; 128 and the signal's number for a signal, as shells have it.
    pub(crate) code: i32,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    /// Whether we ended it because the turn was cancelled.
    pub(crate) cancelled: bool,
}

/// Runs a program to its end and hands on its output.
///
/// What it leaves in the background stays: a server that one command starts
/// may be what the next one needs. It ends with the session's process tree.
pub(crate) fn run(
    mut command: Command,
    streams: Streams,
    input: Option<String>,
    turn: &Turn,
    mut on_output: impl FnMut(Stream, &str),
) -> io::Result<Ended> {
    let (sender, events) = sync_channel(QUEUE);
    let (joined, joined_end) = io::pipe()?;
    command.process_group(0);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(joined_end.try_clone()?);
    let mut readers: Vec<(Stream, Box<dyn Read + Send>)> = vec![(Stream::Out, Box::new(joined))];
    match streams {
        Streams::Joined => {
            command.stderr(joined_end);
        }
        Streams::Apart => {
            let (apart, apart_end) = io::pipe()?;
            command.stderr(apart_end);
            readers.push((Stream::Err, Box::new(apart)));
            drop(joined_end);
        }
    }
    let mut child = command.spawn()?;
    // Our copies of the pipes' ends live in it, and would keep them open.
    drop(command);
    let group = Pid::from_child(&child);
    let open = readers.len();
    for (stream, reader) in readers {
        let sender = sender.clone();
        thread::spawn(move || read(stream, reader, &sender));
    }
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // A program that does not read its input to the end is not at fault.
        thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    }
    thread::spawn(move || {
        // Fails only when nobody waits any more.
        let _ = sender.send(Event::Exited(child.wait()));
    });
    let mut watch = Watch {
        group,
        events,
        open,
        exited: None,
        last_output: Instant::now(),
        stop: Stop::None,
        out: Pending::default(),
        err: Pending::default(),
    };
    watch.until_end(turn, &mut on_output)
}

enum Event {
    Output(Stream, Vec<u8>),
    Closed(Stream),
    Exited(io::Result<ExitStatus>),
}

fn read(stream: Stream, mut reader: Box<dyn Read + Send>, sender: &SyncSender<Event>) {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                // After the end of the turn nobody listens. Going on to read keeps
                // a program in the background from dying of a closed pipe.
                let bytes = buffer.get(..length).unwrap_or_default().to_vec();
                let _ = sender.send(Event::Output(stream, bytes));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    // As above.
    let _ = sender.send(Event::Closed(stream));
}

/// Output that waits to become a larger piece.
#[derive(Default)]
struct Pending {
    joiner: TextJoiner,
    text: String,
    since: Option<Instant>,
}

enum Stop {
    None,
    Terminated(Instant),
    Killed(Instant),
}

struct Watch {
    group: Pid,
    events: Receiver<Event>,
    open: usize,
    exited: Option<(ExitStatus, Instant)>,
    last_output: Instant,
    stop: Stop,
    out: Pending,
    err: Pending,
}

impl Watch {
    fn until_end(&mut self, turn: &Turn, on_output: &mut impl FnMut(Stream, &str)) -> io::Result<Ended> {
        loop {
            match self.events.recv_timeout(TICK) {
                Ok(Event::Output(stream, bytes)) => self.take(stream, &bytes, on_output),
                Ok(Event::Closed(stream)) => {
                    self.open = self.open.saturating_sub(1);
                    self.flush(stream, on_output);
                }
                Ok(Event::Exited(status)) => self.exited = Some((status?, Instant::now())),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.flush_old(on_output);
            if turn.cancel.is_set() || turn.client.is_gone() {
                self.escalate();
            }
            if let Some(ended) = self.ended() {
                self.flush(Stream::Out, on_output);
                self.flush(Stream::Err, on_output);
                return Ok(ended);
            }
        }
    }

    fn take(&mut self, stream: Stream, bytes: &[u8], on_output: &mut impl FnMut(Stream, &str)) {
        let pending = self.pending(stream);
        pending.joiner.push(bytes, &mut pending.text);
        pending.since.get_or_insert_with(Instant::now);
        while pending.text.len() >= PIECE_BYTES {
            let (piece, rest) = split_front(&pending.text, PIECE_BYTES);
            on_output(stream, piece);
            pending.text = rest.to_owned();
            pending.since = Some(Instant::now());
        }
        self.last_output = Instant::now();
    }

    fn flush_old(&mut self, on_output: &mut impl FnMut(Stream, &str)) {
        for stream in [Stream::Out, Stream::Err] {
            let pending = self.pending(stream);
            if pending.since.is_some_and(|since| since.elapsed() >= PIECE_TIME) && !pending.text.is_empty() {
                on_output(stream, &std::mem::take(&mut pending.text));
                pending.since = None;
            }
        }
    }

    fn flush(&mut self, stream: Stream, on_output: &mut impl FnMut(Stream, &str)) {
        let pending = self.pending(stream);
        pending.joiner.finish(&mut pending.text);
        if !pending.text.is_empty() {
            on_output(stream, &std::mem::take(&mut pending.text));
        }
        pending.since = None;
    }

    fn pending(&mut self, stream: Stream) -> &mut Pending {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }

    fn escalate(&mut self) {
        match self.stop {
            Stop::None if self.exited.is_none() => {
                self.signal(Signal::TERM);
                self.stop = Stop::Terminated(Instant::now());
            }
            Stop::Terminated(at) if at.elapsed() >= TERM_GRACE => {
                self.signal(Signal::KILL);
                self.stop = Stop::Killed(Instant::now());
            }
            Stop::None | Stop::Terminated(_) | Stop::Killed(_) => {}
        }
    }

    fn signal(&self, signal: Signal) {
        // A group that is gone already needs no signal.
        let _ = kill_process_group(self.group, signal);
    }

    fn ended(&self) -> Option<Ended> {
        let (status, at) = self.exited.as_ref()?;
        let group_gone = || !group_is_alive(self.group);
        let silence = self.last_output.elapsed().min(at.elapsed());
        let quiet = self.open == 0 || silence >= DRAIN || at.elapsed() >= DRAIN_AT_MOST;
        let cancelled = match self.stop {
            Stop::None => false,
            Stop::Terminated(_) if group_gone() => true,
            Stop::Terminated(_) => return None,
            Stop::Killed(at) if group_gone() || at.elapsed() >= KILL_GRACE => true,
            Stop::Killed(_) => return None,
        };
        let signal = status.signal();
        let code = status.code().or_else(|| signal.map(|signal| 128 + signal)).unwrap_or(-1);
        quiet.then_some(Ended { code, signal, cancelled })
    }
}

/// Whether a process of the group still runs. One that has ended and waits to
/// be collected does not count: who collects it, and when, is not in our hands.
fn group_is_alive(group: Pid) -> bool {
    if test_kill_process_group(group).is_err() {
        return false;
    }
    let Ok(entries) = fs::read_dir("/proc") else {
        return true;
    };
    entries
        .flatten()
        .any(|entry| fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| runs_in(&stat, group)))
}

/// Whether this `/proc/PID/stat` is of a running process in the group. Its
/// fields are counted from behind the name, which may itself have brackets
/// (proc_pid_stat(5)): state, parent, group.
fn runs_in(stat: &str, group: Pid) -> bool {
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = fields.split_whitespace();
    let state = fields.next().unwrap_or_default();
    let its_group = fields.nth(1).and_then(|digits| digits.parse().ok());
    its_group == Some(group.as_raw_nonzero().get()) && !matches!(state, "Z" | "X")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collected_or_ended_process_does_not_run() {
        let group = Pid::from_raw(7).unwrap();
        assert!(runs_in("9 (a) b) S 1 7 7 0", group));
        assert!(!runs_in("9 (sh) Z 1 7 7 0", group));
        assert!(!runs_in("7 (sh) S 1 8 7 0", group));
        assert!(!runs_in("", group));
        assert!(group_is_alive(rustix::process::getpgrp()));
    }
}
