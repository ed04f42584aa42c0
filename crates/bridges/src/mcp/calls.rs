//! Calls to the daemon, each repeated until it is decided.

use std::time::Duration;

use rallypoint_client::{Client, ClientError};
use rallypoint_model::ids::SessionId;
use rallypoint_ops::Problem;
use rallypoint_ops::tools::{CallInput, CallRef, CallView, ToolsInput};
use rallypoint_ops::types::Empty;
use serde_json::Value;
use tokio::io::AsyncWrite;
use tokio::time::sleep;

use super::protocol::{Call, progress, tool_result};
use super::{Output, send};

/// How long the daemon may keep one request before the call is made again, and how often whoever waits hears of it.
const WAIT_MS: u64 = 10_000;
/// First pause after a daemon that could not be reached; it doubles.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// Longest such pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Calls as the tool server of one session.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) client: Client,
    pub(super) session_id: SessionId,
}

impl Caller {
    /// Says that the server is there. Nobody waits for it, and a refusal shows at the first call.
    pub(super) async fn hello(&self, process: &str, client: &str) {
        let input = ToolsInput {
            session_id: self.session_id,
            process: process.to_owned(),
            client: client.to_owned(),
        };
        let _refused = self.repeated::<_, Empty>("session.tools", &input).await;
    }

    /// Gives a call up. What it asked is withdrawn; one that was decided meanwhile stays.
    pub(super) async fn cancel(&self, process: &str, request_id: &str) {
        let input = CallRef {
            session_id: self.session_id,
            process: process.to_owned(),
            request_id: request_id.to_owned(),
        };
        let _refused = self.repeated::<_, Empty>("session.cancel_call", &input).await;
    }

    /// Carries a call out; gives the frame that answers it.
    pub(super) async fn carry_out<W: AsyncWrite + Unpin>(&self, call: &Call, output: &Output<W>) -> Value {
        let input = CallInput {
            session_id: self.session_id,
            process: call.process.clone(),
            request_id: call.id.to_string(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            wait_ms: WAIT_MS,
        };
        let mut waited = 0;
        loop {
            match self.repeated::<_, CallView>("session.call", &input).await {
                Ok(CallView { answer: Some(answer) }) => {
                    break tool_result(&call.id, &answer.text, answer.failed);
                }
                Ok(CallView { answer: None }) => {
                    waited += 1;
                    // A reader that is gone ends the server where it reads.
                    if let Some(token) = &call.progress_token {
                        let _gone = send(output, &progress(token, waited)).await;
                    }
                }
                Err(words) => break tool_result(&call.id, &words, true),
            }
        }
    }

    /// The same request until a daemon has answered it. An error is final.
    async fn repeated<I, O>(&self, operation: &str, input: &I) -> Result<O, String>
    where
        I: serde::Serialize,
        O: serde::de::DeserializeOwned,
    {
        let mut pause = PAUSE_FIRST;
        loop {
            match self.client.call(operation, input).await {
                Ok(answer) => return Ok(answer),
                Err(ClientError::Refused(problem)) if !problem.retryable => return Err(words(&problem)),
                Err(ClientError::Protocol(what)) => return Err(what),
                Err(ClientError::Refused(_) | ClientError::Lost | ClientError::NoDaemon) => {}
            }
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }
}

fn words(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{}; {hint}", problem.message),
        None => problem.message.clone(),
    }
}
