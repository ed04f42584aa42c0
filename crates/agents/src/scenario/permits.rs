//! Several requests for permission at once, each of which would write a file of its own.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rallypoint_acp::agent_side::{PermissionAnswer, PermissionChoice, PromptEnd, Turn};
use rallypoint_acp::rpc::{INTERNAL_ERROR, RpcError};

/// How long one that leaves waits for the file `leave`.
const LEAVES_AFTER: Duration = Duration::from_secs(60);
/// How long after the answer `cancelled` the cancel of the turn may come.
const CANCEL_COMES: Duration = Duration::from_secs(5);
/// How often it looks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Asks for `count` things at once. What is allowed leaves the file `ran-N`; each answer is a line of `answers`.
#[derive(Debug)]
pub(super) struct Permits {
    pub(super) count: u64,
    /// It ends its turn when there is a file `leave`, whatever is still open then.
    pub(super) leaves: bool,
}

impl Permits {
    pub(super) fn ask(&self, turn: &Turn) -> Result<PromptEnd, RpcError> {
        turn.send_message_chunk("I need a few things.\n");
        let (done, answered) = mpsc::channel();
        for number in 0..self.count {
            let (turn, done) = (turn.clone(), done.clone());
            thread::spawn(move || {
                // Nobody listens any more where the turn was left.
                let _ = done.send(ask_one(&turn, number));
            });
        }
        drop(done);
        if self.leaves {
            let started = Instant::now();
            while !turn.session.cwd.join("leave").exists() && started.elapsed() < LEAVES_AFTER {
                thread::sleep(LOOK_AGAIN);
            }
            turn.send_message_chunk("I did without.");
            return Ok(PromptEnd::stopped("end_turn"));
        }
        let mut cancelled = false;
        for each in answered {
            cancelled |=
                each.map_err(|error| RpcError::new(INTERNAL_ERROR, format!("cannot write: {error}")))?;
        }
        // The answers overtake the cancel that they belong to.
        if turn.cancel.is_set() || (cancelled && turn.cancel.wait(CANCEL_COMES)) {
            return Ok(PromptEnd::stopped("cancelled"));
        }
        turn.send_message_chunk("I have every answer.");
        Ok(PromptEnd::stopped("end_turn"))
    }
}

/// The options have other ids and another order in each request, so that only kinds tell them apart.
/// True when the answer was `cancelled`.
fn ask_one(turn: &Turn, number: u64) -> std::io::Result<bool> {
    let id = |word: &str| format!("{word}-{number}");
    let ids = [id("x"), id("y"), id("z")];
    let mut choices = [
        PermissionChoice { id: &ids[0], name: "Once", kind: "allow_once" },
        PermissionChoice { id: &ids[1], name: "Always", kind: "allow_always" },
        PermissionChoice { id: &ids[2], name: "No", kind: "reject_once" },
    ];
    choices.rotate_left(usize::try_from(number % 3).unwrap_or(0));
    let title = format!("write ran-{number}");
    let answer = turn.request_permission_through_cancel(&id("ask"), &title, "execute", &choices);
    let cancelled = matches!(answer, PermissionAnswer::Cancelled);
    let word = match answer {
        PermissionAnswer::Selected(option) => {
            if option == ids[0] || option == ids[1] {
                std::fs::write(turn.session.cwd.join(format!("ran-{number}")), "ran\n")?;
            }
            option
        }
        PermissionAnswer::Cancelled => "cancelled".to_owned(),
    };
    let mut answers = OpenOptions::new().append(true).create(true).open(turn.session.cwd.join("answers"))?;
    answers.write_all(format!("{number} {word}\n").as_bytes())?;
    Ok(cancelled)
}
