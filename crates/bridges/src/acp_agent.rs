//! Rallypoint as an agent: an editor opens sessions and gives prompts, and our agents work on them.
//!
//! Protocol: Agent Client Protocol v1 (<https://agentclientprotocol.com>). A session is a room; its id is the room's. A
//! prompt is a task in that room, or goes on with the last one where its agent's conversation can. The work itself is
//! the daemon's: this reads the journal and passes on.

mod turn;
mod updates;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rallypoint_acp::agent_side::{Agent, AgentServer, Client as Editor, PromptEnd, Session, Turn};
use rallypoint_acp::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError};
use rallypoint_client::{Client, ClientError, ReconnectHook};
use rallypoint_model::ids::{RoomId, TaskId};
use rallypoint_model::message::{Message, Speaker};
use rallypoint_ops::Problem;
use rallypoint_ops::rooms::{CreateRoomInput, RoomRef};
use rallypoint_ops::types::{
    CreateTaskInput, MessagePage, RoomMessagesInput, RoomView, StopTaskInput, TaskView,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;

/// How long open work gets to end after the editor has gone; the daemon ends it by force before that.
const EOF_GRACE: Duration = Duration::from_secs(20);
/// Messages of a room that are read at once.
const PAGE: u32 = 500;

/// The daemon, and the way to bring it back.
#[derive(Clone)]
pub struct Daemon {
    /// Calls.
    pub client: Client,
    /// Makes a hook that starts the daemon anew when it is gone.
    pub reconnect: Arc<dyn Fn() -> ReconnectHook + Send + Sync>,
    /// What every prompt asks for besides its goal, folder and room.
    pub request: CreateTaskInput,
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Daemon").field("client", &self.client).finish_non_exhaustive()
    }
}

/// Rallypoint in the agent's place. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Rallypoint {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    daemon: Daemon,
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the id of the session.
    talks: BTreeMap<String, Talk>,
    /// Tasks that a prompt waits for.
    open: BTreeSet<TaskId>,
    /// Whether the editor shows sub-agents.
    shows_sub_agents: bool,
}

/// How far a session is.
#[derive(Clone, Copy, Debug, Default)]
struct Talk {
    /// Its last task.
    task: Option<TaskId>,
    /// Last event of it that was passed on.
    after: i64,
}

impl Rallypoint {
    /// For one editor. Calls to the daemon are made on `runtime`.
    pub fn new(daemon: Daemon, runtime: Handle) -> Self {
        Self { shared: Arc::new(Shared { daemon, runtime, state: Mutex::default() }) }
    }

    /// Serves until the input ends and the work with it. Blocks.
    pub fn serve(&self, input: impl BufRead, output: impl Write + Send + 'static) -> io::Result<()> {
        AgentServer::new(self.clone()).eof_grace(EOF_GRACE).serve(input, output)
    }

    /// Asks for the end of all that a prompt waits for.
    pub async fn stop_all(&self) {
        let open = std::mem::take(&mut self.state().open);
        for task_id in open {
            // A task that has just ended is stopped too.
            let _ended = self.stop(task_id).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self) -> &Client {
        &self.shared.daemon.client
    }

    /// A call that is made again, to whichever daemon is there, when the first one went away in the middle of it.
    async fn call<I, O>(&self, operation: &str, input: &I) -> Result<O, ClientError>
    where
        I: serde::Serialize + Sync,
        O: serde::de::DeserializeOwned,
    {
        const ATTEMPTS: u32 = 5;
        for _ in 1..ATTEMPTS {
            match self.client().call(operation, input).await {
                Err(ClientError::NoDaemon | ClientError::Lost) => {}
                answered => return answered,
            }
            (self.shared.daemon.reconnect)()().await?;
        }
        self.client().call(operation, input).await
    }

    async fn stop(&self, task_id: TaskId) -> Result<TaskView, ClientError> {
        let by = self.shared.daemon.request.requested_by.clone();
        self.call("task.stop", &StopTaskInput { task_id, by, wait_ms: None }).await
    }

    /// Says again what was said in a room, and gives its last task.
    async fn replay(&self, room_id: RoomId, session: &Session, editor: &Editor) -> Result<Talk, ClientError> {
        let mut input = RoomMessagesInput {
            room_id: room_id.to_string(),
            task_id: None,
            all: false,
            limit: Some(PAGE),
            cursor: None,
        };
        let mut said: Vec<Message> = Vec::new();
        loop {
            let page: MessagePage = self.call("room.messages", &input).await?;
            said.extend(page.items);
            input.cursor = page.next_cursor;
            if input.cursor.is_none() {
                break;
            }
        }
        said.sort_by_key(|message| (message.created_at, message.id));
        for message in &said {
            let update = match message.speaker {
                Speaker::User => updates::chunk("user_message_chunk", &message.text),
                Speaker::MainAgent if is_reply(message) => {
                    updates::chunk("agent_message_chunk", &message.text)
                }
                Speaker::MainAgent | Speaker::SubAgent | Speaker::System => None,
            };
            if let Some(update) = update {
                editor.notify("session/update", json!({"sessionId": session.session_id, "update": update}));
            }
        }
        Ok(Talk { task: said.iter().rev().find_map(|message| message.task_id), after: 0 })
    }
}

/// Whether a message is an answer, and no word about how it goes.
fn is_reply(message: &Message) -> bool {
    matches!(message.metadata.get("role").and_then(Value::as_str), Some("terminal" | "question"))
}

impl Agent for Rallypoint {
    fn name(&self) -> &'static str {
        "rallypoint"
    }

    fn can_load(&self) -> bool {
        true
    }

    fn greeted(&self, params: &Value) {
        let capabilities = params.get("clientCapabilities");
        self.state().shows_sub_agents = capabilities
            .and_then(|it| it.get("subagents"))
            .is_some_and(|it| !it.is_null() && it != &json!(false));
    }

    fn name_session(&self, cwd: &Path) -> Result<Option<String>, RpcError> {
        let title = cwd.file_name().map(|name| format!("Editor: {}", name.to_string_lossy()));
        let input = CreateRoomInput {
            kind: None,
            title: title.or_else(|| Some("Editor".to_owned())),
            conversation: None,
            idempotency_key: Some(uuid::Uuid::new_v4().to_string()),
            progress: None,
        };
        let room: RoomView =
            self.shared.runtime.block_on(self.call("room.create", &input)).map_err(refused)?;
        let id = room.room_id.to_string();
        self.state().talks.insert(id.clone(), Talk::default());
        Ok(Some(id))
    }

    fn load_session(&self, session: &Session, editor: &Editor) -> Result<(), RpcError> {
        let unknown =
            || RpcError::new(RESOURCE_NOT_FOUND, format!("there is no session `{}`", session.session_id));
        let room_id: RoomId = session.session_id.parse().map_err(|_| unknown())?;
        let talk = self.shared.runtime.block_on(async {
            let _room: RoomView = self.call("room.get", &RoomRef { room_id: room_id.to_string() }).await?;
            self.replay(room_id, session, editor).await
        });
        let talk = talk.map_err(|error| match error {
            ClientError::Refused(problem)
                if problem.code == rallypoint_model::refusal::RefusalCode::NotFound =>
            {
                unknown()
            }
            other => refused(other),
        })?;
        self.state().talks.insert(session.session_id.clone(), talk);
        Ok(())
    }

    fn prompt(&self, turn: &Turn) -> Result<PromptEnd, RpcError> {
        let words: Vec<&str> = turn.prompt.iter().map(|block| block.text.as_str()).collect();
        let words = words.join("\n\n");
        if words.trim().is_empty() {
            return Err(RpcError::new(INVALID_PARAMS, "the prompt has no text"));
        }
        self.shared.runtime.block_on(turn::carry_out(self, turn, &words))
    }
}

/// An error of ours as one of the protocol.
fn refused(error: ClientError) -> RpcError {
    match error {
        ClientError::Refused(problem) => RpcError::new(INTERNAL_ERROR, words(&problem)),
        ClientError::NoDaemon => {
            RpcError::new(INTERNAL_ERROR, "the daemon does not run and could not be started")
        }
        ClientError::Lost => RpcError::new(INTERNAL_ERROR, "the connection to the daemon was lost"),
        ClientError::Protocol(what) => RpcError::new(INTERNAL_ERROR, what),
    }
}

fn words(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{}; {hint}", problem.message),
        None => problem.message.clone(),
    }
}
