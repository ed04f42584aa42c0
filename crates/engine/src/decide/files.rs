//! Files that an agent reads and writes through us, for profiles that ask for this service.
//!
//! Whether it may is decided here; that a path stays in the work folder is seen to where it is opened, since only the
//! file system knows about links.

use rallypoint_model::agent_io::{AgentInput, FileAsk, ToolCallView};
use rallypoint_model::command::AgentService;
use rallypoint_model::event::Event;
use rallypoint_model::ids::GenerationId;
use rallypoint_model::permission::PermissionDecision;

use super::Deciding;
use crate::state::Generation;

impl Deciding<'_, '_> {
    pub(crate) fn file_asked(&mut self, generation_id: GenerationId, request_id: &str, ask: &FileAsk) {
        let Some(generation) = self.state.generations.get(&generation_id) else { return };
        if generation.seen_requests.contains(request_id) {
            return;
        }
        let run_id = self.open_run_of(generation);
        let session = self.state.sessions.get(&generation.session_id);
        let launch = session.and_then(|session| session.launch.as_ref());
        if !launch.is_some_and(|launch| launch.services.contains(&AgentService::Fs)) {
            let method = ask.method().to_owned();
            self.refuse_method(generation_id, request_id, &method);
            return;
        }
        let session_id = generation.session_id;
        let task_id = session.and_then(|session| session.task_id);
        let open = run_id.and_then(|id| self.state.runs.get(&id)).is_some_and(|run| run.cancel.is_none());
        let verdict = task_id.map(|task_id| self.permission_verdict(session_id, task_id, &as_call(ask)));
        let refused = match (ask, verdict) {
            (FileAsk::Write { .. }, _) if !open => Some("no turn is open that could write files".to_owned()),
            // The agent waits for the file itself, not for a person, so what would be asked is refused.
            (_, Some(verdict)) if verdict.decision != PermissionDecision::Allow => {
                Some(format!("`{}` is not let through: {}", ask.path(), verdict.rule))
            }
            (_, Some(_)) => None,
            (_, None) => Some("it belongs to no task".to_owned()),
        };
        let input = |ask: FileAsk, refused: Option<String>| AgentInput::ServeFile {
            request_id: request_id.to_owned(),
            ask,
            refused,
        };
        let wanted = input(ask.clone(), refused);
        // What is journalled is cleaned of known secrets, and a file must not be written with holes.
        let seq = self.state.generations.get(&generation_id).map_or(1, Generation::next_seq);
        let fact = Event::GenerationInput { generation_id, seq, input: wanted.clone(), run_id };
        if self.context.funnel.clean(fact.clone()) == fact {
            self.input(generation_id, wanted, run_id);
        } else {
            let path = ask.path().to_owned();
            let bare = FileAsk::Write { path, content: String::new() };
            let why = "the content or the path holds a secret that is never stored".to_owned();
            self.input(generation_id, input(bare, Some(why)), run_id);
        }
    }
}

/// The request as a tool call, so that it is decided as one.
fn as_call(ask: &FileAsk) -> ToolCallView {
    let (word, kind) = match ask {
        FileAsk::Read { .. } => ("read", "read"),
        FileAsk::Write { .. } => ("write", "edit"),
    };
    ToolCallView {
        tool_call_id: String::new(),
        title: Some(format!("{word} `{}`", ask.path())),
        tool_kind: Some(kind.to_owned()),
        status: None,
        text: None,
        locations: vec![ask.path().to_owned()],
        raw: serde_json::Value::Null,
    }
}
