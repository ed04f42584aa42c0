//! Reading requests and sending each where it belongs.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Cancel, Client, lock};
use super::turn::{PromptEnd, Session, Turn, prompt_texts};
use crate::frames::{Line, LineAssembler};
use crate::rpc::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, RESOURCE_NOT_FOUND,
    RpcError,
};

/// Longest request that is read; far above any prompt, far below what would hurt.
const REQUEST_BYTES: usize = 64 * 1024 * 1024;
/// How long open turns get to end after the input has: a command that is being
/// ended gets 2 s until it is killed, and its last words have to go out.
const EOF_GRACE: Duration = Duration::from_secs(5);

/// A program that is an agent.
pub trait Agent: Send + Sync + 'static {
    /// Its name in the answer to the hello.
    fn name(&self) -> &str;

    /// The answer to the hello.
    fn initialize(&self) -> Result<Value, RpcError> {
        Ok(json!({
            "protocolVersion": 1,
            "agentCapabilities": {"loadSession": self.can_load()},
            "agentInfo": {"name": self.name(), "version": env!("CARGO_PKG_VERSION")},
            "authMethods": [],
        }))
    }

    /// What the client said in its hello, before it is answered.
    fn greeted(&self, _params: &Value) {}

    /// The id of a conversation that is about to be opened; the server counts where there is none.
    fn name_session(&self, _cwd: &Path) -> Result<Option<String>, RpcError> {
        Ok(None)
    }

    /// Whether it can open earlier conversations again.
    fn can_load(&self) -> bool {
        false
    }

    /// An earlier conversation is to be opened again, its history sent before this returns; an error refuses it.
    fn load_session(&self, session: &Session, _client: &Client) -> Result<(), RpcError> {
        Err(RpcError::new(RESOURCE_NOT_FOUND, format!("there is no session `{}`", session.session_id)))
    }

    /// An option of a conversation is to be set; an error refuses it.
    fn set_option(&self, id: &str, _value: &Value) -> Result<(), RpcError> {
        Err(RpcError::new(INVALID_PARAMS, format!("there is no option `{id}`")))
    }

    /// A conversation is about to be opened; an error refuses it.
    fn open_session(&self, _session: &Session) -> Result<(), RpcError> {
        Ok(())
    }

    /// Works on a prompt, on a thread of its own.
    fn prompt(&self, turn: &Turn) -> Result<PromptEnd, RpcError>;
}

/// Serves one agent on one pair of streams.
#[derive(Debug)]
pub struct AgentServer<A> {
    agent: Arc<A>,
    eof_grace: Duration,
}

impl<A: Agent> AgentServer<A> {
    /// A server for this agent.
    pub fn new(agent: A) -> Self {
        Self { agent: Arc::new(agent), eof_grace: EOF_GRACE }
    }

    /// How long open turns get to end after the input has.
    pub fn eof_grace(self, eof_grace: Duration) -> Self {
        Self { eof_grace, ..self }
    }

    /// Serves until the input ends and the open turns with it.
    pub fn serve(&self, mut input: impl BufRead, output: impl Write + Send + 'static) -> io::Result<()> {
        let connection = Connection {
            agent: Arc::clone(&self.agent),
            client: Client::new(output),
            sessions: Arc::default(),
            opened: 0,
        };
        let read = connection.read(&mut input);
        self.end(&read.1);
        read.0
    }

    fn end(&self, connection: &Connection<A>) {
        connection.client.close();
        let state = lock(&connection.sessions.state);
        for entry in state.by_id.values() {
            if let Some(cancel) = &entry.open {
                cancel.set();
            }
        }
        let waited =
            connection.sessions.ended.wait_timeout_while(state, self.eof_grace, |state| state.turns > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

#[derive(Default)]
struct Sessions {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    by_id: BTreeMap<String, Entry>,
    /// Turns whose answer is not out yet.
    turns: usize,
}

struct Entry {
    session: Arc<Session>,
    /// The cancel of the open turn.
    open: Option<Cancel>,
}

struct Connection<A> {
    agent: Arc<A>,
    client: Client,
    sessions: Arc<Sessions>,
    opened: u64,
}

impl<A: Agent> Connection<A> {
    fn read(mut self, input: &mut impl BufRead) -> (io::Result<()>, Self) {
        let mut assembler = LineAssembler::new(REQUEST_BYTES);
        loop {
            let bytes = match input.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return (Err(error), self),
            };
            let length = bytes.len();
            if length == 0 {
                assembler.finish(|line| self.take(&line.line));
                return (Ok(()), self);
            }
            assembler.push(bytes, |line| self.take(&line.line));
            input.consume(length);
        }
    }

    fn take(&mut self, line: &Line<'_>) {
        let message = match line {
            Line::Whole(text) => serde_json::from_str(text)
                .map_err(|error| RpcError::new(PARSE_ERROR, format!("the line is no JSON: {error}"))),
            Line::Oversized { bytes, .. } => Err(RpcError::new(
                PARSE_ERROR,
                format!("the line has {bytes} bytes, at most {REQUEST_BYTES} are read"),
            )),
        };
        match message {
            Ok(Value::Object(message)) => self.dispatch(&Value::Object(message)),
            Ok(_) => {
                let error = RpcError::new(INVALID_REQUEST, "the line is no JSON-RPC object");
                self.client.answer(&Value::Null, Err(error));
            }
            Err(error) => self.client.answer(&Value::Null, Err(error)),
        }
    }

    fn dispatch(&mut self, message: &Value) {
        let id = message.get("id").filter(|id| !id.is_null());
        let params = message.get("params").unwrap_or(&Value::Null);
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => self.request(method, id, params),
            (Some(method), None) => self.notification(method, params),
            (None, Some(id)) => self.client.take_answer(id, answered(message)),
            (None, None) => {
                let error = RpcError::new(INVALID_REQUEST, "the object has neither a method nor an id");
                self.client.answer(&Value::Null, Err(error));
            }
        }
    }

    fn request(&mut self, method: &str, id: &Value, params: &Value) {
        let outcome = match method {
            "initialize" => {
                self.agent.greeted(params);
                self.agent.initialize()
            }
            "session/new" => self.open_session(params),
            "session/load" if self.agent.can_load() => self.load_session(params),
            "session/set_config_option" => {
                let option = params.get("configId").and_then(Value::as_str).unwrap_or_default();
                let value = params.get("value").unwrap_or(&Value::Null);
                self.agent.set_option(option, value).map(|()| json!({"configOptions": []}))
            }
            "session/prompt" => match self.prompt(id, params) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            _ => Err(RpcError::new(METHOD_NOT_FOUND, format!("`{method}` is not served by this agent"))),
        };
        self.client.answer(id, outcome);
    }

    fn notification(&self, method: &str, params: &Value) {
        if method != "session/cancel" {
            return;
        }
        let state = lock(&self.sessions.state);
        let entry = params.get("sessionId").and_then(Value::as_str).and_then(|id| state.by_id.get(id));
        if let Some(cancel) = entry.and_then(|entry| entry.open.as_ref()) {
            cancel.set();
        }
    }

    fn load_session(&self, params: &Value) -> Result<Value, RpcError> {
        let session_id = params.get("sessionId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let session = Arc::new(Session {
            session_id: session_id.clone(),
            cwd: cwd_of(params)?,
            mcp_servers: servers_of(params),
        });
        self.agent.load_session(&session, &self.client)?;
        lock(&self.sessions.state).by_id.insert(session_id, Entry { session, open: None });
        Ok(json!({}))
    }

    fn open_session(&mut self, params: &Value) -> Result<Value, RpcError> {
        let cwd = cwd_of(params)?;
        self.opened += 1;
        let numbered = || format!("{}-{}-{}", self.agent.name(), std::process::id(), self.opened);
        let session_id = self.agent.name_session(&cwd)?.unwrap_or_else(numbered);
        let session =
            Arc::new(Session { session_id: session_id.clone(), cwd, mcp_servers: servers_of(params) });
        self.agent.open_session(&session)?;
        lock(&self.sessions.state).by_id.insert(session_id.clone(), Entry { session, open: None });
        Ok(json!({"sessionId": session_id}))
    }

    fn prompt(&self, id: &Value, params: &Value) -> Result<(), RpcError> {
        let session_id = params.get("sessionId").and_then(Value::as_str).unwrap_or_default();
        let mut state = lock(&self.sessions.state);
        let entry = state.by_id.get_mut(session_id).ok_or_else(|| {
            RpcError::new(RESOURCE_NOT_FOUND, format!("there is no session `{session_id}`"))
        })?;
        if entry.open.is_some() {
            return Err(RpcError::new(INVALID_REQUEST, "a prompt is already open in this session"));
        }
        let turn = Turn {
            session: Arc::clone(&entry.session),
            request_id: id.clone(),
            prompt: prompt_texts(params.get("prompt")),
            client: self.client.clone(),
            cancel: Cancel::default(),
        };
        let cancel = turn.cancel.clone();
        let (agent, sessions_of_thread) = (Arc::clone(&self.agent), Arc::clone(&self.sessions));
        std::thread::Builder::new()
            .name("turn".to_owned())
            .spawn(move || work(&*agent, &turn, &sessions_of_thread))
            .map_err(|error| RpcError::new(INTERNAL_ERROR, format!("no thread for the prompt: {error}")))?;
        // The thread cannot be done before this is noted: it needs the same lock.
        entry.open = Some(cancel);
        state.turns += 1;
        Ok(())
    }
}

fn servers_of(params: &Value) -> Vec<Value> {
    params.get("mcpServers").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn cwd_of(params: &Value) -> Result<PathBuf, RpcError> {
    let cwd = params.get("cwd").and_then(Value::as_str).map(PathBuf::from).filter(|cwd| cwd.is_absolute());
    cwd.ok_or_else(|| RpcError::new(INVALID_PARAMS, "`cwd` has to be an absolute path"))
}

fn answered(message: &Value) -> Result<Value, RpcError> {
    let Some(error) = message.get("error").filter(|error| !error.is_null()) else {
        return Ok(message.get("result").cloned().unwrap_or_default());
    };
    Err(RpcError {
        code: error.get("code").and_then(Value::as_i64).unwrap_or(INTERNAL_ERROR),
        message: error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
        data: error.get("data").cloned(),
    })
}

/// Runs one turn to its answer. A turn that panics is answered too: a prompt
/// without an answer would hang the client.
fn work<A: Agent>(agent: &A, turn: &Turn, sessions: &Sessions) {
    let outcome = catch_unwind(AssertUnwindSafe(|| agent.prompt(turn))).unwrap_or_else(|_| {
        Err(RpcError::new(INTERNAL_ERROR, "the agent failed while it worked on the prompt"))
    });
    // Closed before it is answered, since a client may send its next prompt at
    // once; counted until after the answer, since the server ends at zero.
    if let Some(entry) = lock(&sessions.state).by_id.get_mut(&turn.session.session_id) {
        entry.open = None;
    }
    if let Some(answer) = outcome.map(PromptEnd::into_result).transpose() {
        turn.client.answer(&turn.request_id, answer);
    }
    lock(&sessions.state).turns -= 1;
    sessions.ended.notify_all();
}
