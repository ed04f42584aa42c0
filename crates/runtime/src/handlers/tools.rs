//! Operations of the role `session`: what the tool server of an agent asks for.

use std::sync::Arc;
use std::time::Duration;

use rallypoint_model::command::{Command, Outcome};
use rallypoint_model::completion::CompletionReport;
use rallypoint_model::event::{Event, EventRecord};
use rallypoint_model::ids::{GenerationId, SessionId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::tool_call::{ToolAnswer, ToolRequest};
use rallypoint_ops::Problem;
use rallypoint_ops::tools::{CallInput, CallRef, CallView, ToolsInput};
use rallypoint_ops::types::Empty;
use rallypoint_process::fault_point::pass;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::{answer, read};
use crate::daemon::{Shared, TokenHolder};

/// Longest time that one answer waits for a person; well below the deadline of a call, so that the caller asks again.
const WAIT_AT_MOST: Duration = Duration::from_secs(20);
/// Longest JSON-RPC id of a call, in bytes.
const REQUEST_ID_BYTES: usize = 256;

/// Whose token this is. It dies with its agent process.
pub(crate) async fn holder_of(shared: &Shared, token: &str) -> Result<TokenHolder, Problem> {
    let refused = |message: &str| Problem::from(Refusal::new(RefusalCode::Unauthenticated, message));
    let Some(generation_id) = shared.tokens.holder(token) else {
        return Err(refused("the token belongs to no session of this data folder"));
    };
    let living = shared
        .decider
        .look(move |state| {
            let generation = state.generations.get(&generation_id).filter(|it| it.is_live());
            generation.map(|generation| generation.session_id)
        })
        .await?;
    let session_id =
        living.ok_or_else(|| refused("the agent process that the token was made for has ended"))?;
    Ok(TokenHolder { generation_id, session_id })
}

/// Carries out one operation of the role `session`, for the session of the token alone.
pub(crate) async fn call(
    shared: &Shared,
    holder: &TokenHolder,
    operation: &str,
    input: Value,
) -> Result<Value, Problem> {
    match operation {
        "session.tools" => {
            let input: ToolsInput =
                own(holder, input, |input: &ToolsInput| (input.session_id, &input.process))?;
            let (generation_id, process, client) = (holder.generation_id, input.process, input.client);
            pass("tools:hello");
            shared.decider.decide(Command::ToolsConnected { generation_id, process, client }).await?;
            answer(Empty {})
        }
        "session.call" => {
            let input: CallInput =
                own(holder, input, |input: &CallInput| (input.session_id, &input.process))?;
            answer(CallView { answer: tool_call(shared, holder, input).await? })
        }
        "session.cancel_call" => {
            let input: CallRef = own(holder, input, |input: &CallRef| (input.session_id, &input.process))?;
            let (generation_id, process, request_id) =
                (holder.generation_id, input.process, input.request_id);
            shared.decider.decide(Command::ToolCallCancelled { generation_id, process, request_id }).await?;
            answer(Empty {})
        }
        other => Err(Refusal::new(
            RefusalCode::Forbidden,
            format!("the token of a session does not open `{other}`"),
        )
        .into()),
    }
}

/// The input, if it is about the holder's own session.
fn own<T: DeserializeOwned>(
    holder: &TokenHolder,
    input: Value,
    of: impl Fn(&T) -> (SessionId, &String),
) -> Result<T, Problem> {
    let input: T = read(input)?;
    let (session_id, process) = of(&input);
    if session_id != holder.session_id {
        let message = format!("the token does not belong to the session `{session_id}`");
        return Err(Refusal::new(RefusalCode::Forbidden, message).into());
    }
    if Uuid::parse_str(process).is_err() {
        return Err(Problem::invalid("`process` is no UUID"));
    }
    Ok(input)
}

async fn tool_call(
    shared: &Shared,
    holder: &TokenHolder,
    input: CallInput,
) -> Result<Option<ToolAnswer>, Problem> {
    if input.request_id.len() > REQUEST_ID_BYTES {
        return Err(Problem::invalid(format!("`requestId` is longer than {REQUEST_ID_BYTES} bytes")));
    }
    let command = Command::ToolCalled {
        generation_id: holder.generation_id,
        process: input.process.clone(),
        request_id: input.request_id.clone(),
        request: request_of(&input.tool, input.arguments.clone()),
    };
    pass("tools:begin");
    let until = Instant::now() + Duration::from_millis(input.wait_ms).min(WAIT_AT_MOST);
    loop {
        // Followed before it is decided, so that no answer falls between the two.
        let mut followed = shared.followers.subscribe();
        let decided = shared.decider.decide(command.clone()).await?;
        pass("tools:decided");
        let Outcome::ToolCall { answer } = decided else {
            return Err(Problem::internal("the decider answered a tool call with something else"));
        };
        if answer.is_some() {
            return Ok(answer);
        }
        if let Some(answer) = waited(&mut followed, until, holder.generation_id, &input).await? {
            pass("tools:answering");
            return Ok(Some(answer));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
    }
}

/// The answer to a call if it comes in time. Nothing also where the call itself has to tell how it stands.
async fn waited(
    followed: &mut Receiver<Arc<EventRecord>>,
    until: Instant,
    of: GenerationId,
    input: &CallInput,
) -> Result<Option<ToolAnswer>, Problem> {
    loop {
        let record = match timeout_at(until, followed.recv()).await {
            Ok(Ok(record)) => record,
            Ok(Err(RecvError::Lagged(_))) | Err(_) => return Ok(None),
            Ok(Err(RecvError::Closed)) => return Err(Problem::internal("the daemon is ending")),
        };
        if let Event::SessionToolAnswered { generation_id, process, request_id, answer, .. } = &record.event
            && *generation_id == of
            && *process == input.process
            && *request_id == input.request_id
        {
            return Ok(Some(answer.clone()));
        }
        if let Event::GenerationEnded { generation_id, .. } = &record.event
            && *generation_id == of
        {
            return Ok(None);
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    question: String,
    #[serde(default)]
    options: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    to: String,
    text: String,
}

/// What a call asks for. What does not fit is a call too: it is noted, and answered with what is wrong.
fn request_of(tool: &str, arguments: Value) -> ToolRequest {
    let arguments = if arguments.is_null() { json!({}) } else { arguments };
    let unfit = |problem: String| ToolRequest::Unfit { name: tool.to_owned(), problem };
    let wrong = |error: serde_json::Error| unfit(format!("the arguments don't fit: {error}"));
    match tool {
        "report_completion" => match read_report(arguments) {
            Ok(report) => ToolRequest::ReportCompletion { report },
            Err(error) => wrong(error),
        },
        "ask_user" => match serde_json::from_value::<Asked>(arguments) {
            Ok(Asked { question, options }) => ToolRequest::AskUser { question, options },
            Err(error) => wrong(error),
        },
        "coordinate" => match serde_json::from_value::<Text>(arguments) {
            Ok(Text { text }) => ToolRequest::Coordinate { text },
            Err(error) => wrong(error),
        },
        "send" => match serde_json::from_value::<Sent>(arguments) {
            Ok(Sent { to, text }) => ToolRequest::Send { recipient: to, text },
            Err(error) => wrong(error),
        },
        other => unfit(format!("there is no tool `{other}`")),
    }
}

/// A report whose lists may be left out: only its summary is needed.
fn read_report(mut arguments: Value) -> serde_json::Result<CompletionReport> {
    if let Value::Object(members) = &mut arguments {
        for list in ["filesChanged", "testResults", "acceptanceCriteriaStatus", "residualRisks"] {
            members.entry(list).or_insert_with(|| json!([]));
        }
    }
    serde_json::from_value(arguments)
}

#[cfg(test)]
mod tests {
    use rallypoint_model::completion::ReportedStatus;

    use super::*;

    #[test]
    fn arguments_become_requests_and_what_does_not_fit_says_why() {
        let report = request_of("report_completion", json!({"diffSummary": "one file", "status": "failed"}));
        let ToolRequest::ReportCompletion { report } = report else { panic!("{report:?}") };
        assert_eq!((report.status, report.diff_summary.as_str()), (ReportedStatus::Failed, "one file"));
        let sent = request_of("send", json!({"to": "room", "text": "x"}));
        assert_eq!(sent, ToolRequest::Send { recipient: "room".to_owned(), text: "x".to_owned() });
        for (tool, arguments, wrong) in [
            ("report_completion", json!({}), "diffSummary"),
            ("ask_user", Value::Null, "question"),
            ("ask_user", json!({"question": "q", "colour": 1}), "colour"),
            ("send", json!({"to": 7, "text": "x"}), "string"),
            ("dance", json!({}), "no tool `dance`"),
        ] {
            let ToolRequest::Unfit { name, problem } = request_of(tool, arguments) else { panic!("{tool}") };
            assert_eq!(name, tool);
            assert!(problem.contains(wrong), "{problem}");
        }
    }
}
