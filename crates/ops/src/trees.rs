//! Input and output types of the operations on trees of sub-agents. Wire form: camelCase.

use std::collections::BTreeMap;

use rallypoint_model::agent_offer::Wanted;
use rallypoint_model::ids::{RunId, SessionId, TaskId};
use rallypoint_model::mail::ConversationMode;
use rallypoint_model::run::RunOutcome;
use rallypoint_model::task::AgentRequest;
use rallypoint_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Start one more sub-agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpawnInput {
    /// The task.
    pub task_id: TaskId,
    /// Agent id or profile name.
    pub agent: String,
    /// Name in the room; the agent's name when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its own part of the goal; the whole goal when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Program and arguments, when not taken from the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// Absolute path of the profile's program, for one that is not on the caller's `PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Names of variables of the caller's environment that it gets besides those of its profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// Options of its conversation, by id; they win over those of its profile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Mode, model and thought level that are wanted of it.
    #[serde(default, skip_serializing_if = "Wanted::is_empty")]
    pub wanted: Wanted,
    /// What it may do without a person; never more than the sub-agent that it works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<rallypoint_model::permission::Preset>,
    /// The sub-agent that it works for; the task itself when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    /// How it talks to its parent; not at all when absent. Its label is then the name that it is called by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationMode>,
    /// Same key, same sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The caller's allow-listed environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

impl SpawnInput {
    /// What is asked for, as in a request for a task.
    pub fn request(&self) -> AgentRequest {
        AgentRequest {
            agent: self.agent.clone(),
            label: self.label.clone(),
            task: self.task.clone(),
            argv: self.argv.clone(),
            program: self.program.clone(),
            pass_env: self.pass_env.clone(),
            config: self.config.clone(),
            wanted: self.wanted.clone(),
            conversation: self.conversation,
            permissions: self.permissions,
        }
    }
}

/// Whether an accepted run has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpawnState {
    /// It has one.
    Admitted,
    /// It waits for one.
    Parked,
}

/// A sub-agent that was accepted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpawnedView {
    /// Its session.
    pub session_id: SessionId,
    /// Its first run.
    pub run_id: RunId,
    /// Whether it has a slot.
    pub state: SpawnState,
    /// Its place among the runs that wait for a slot, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
}

/// Let the turn of a session wait for its sub-agents.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitInput {
    /// Its id.
    pub session_id: SessionId,
}

/// End a session and all below it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StopSessionInput {
    /// Its id.
    pub session_id: SessionId,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// How long the answer waits for the end of every process, in milliseconds, 60 000 at most; at once when absent.
    /// The stop goes on either way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// A session that a stop covers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopNodeView {
    /// Its id.
    pub session_id: SessionId,
    /// Its name in the room.
    pub label: String,
    /// Place in the tree, from 1.
    pub depth: u32,
    /// How its run ended; absent while it has not, or when it never had one.
    pub outcome: Option<RunOutcome>,
    /// Whether nothing of it works any more.
    pub at_rest: bool,
    /// Processes that could not be ended.
    pub processes_left: u32,
}

/// A tree of sub-agents that is being ended, or was.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopView {
    /// The task.
    pub task_id: TaskId,
    /// The session at its root; the whole task when absent.
    pub root_session_id: Option<SessionId>,
    /// Who asked.
    pub by: String,
    /// When.
    pub asked_at: Timestamp,
    /// When nothing of it worked any more; absent while something does.
    pub ended_at: Option<Timestamp>,
    /// What it covers, parents before their children.
    pub nodes: Vec<StopNodeView>,
    /// How many are in which state: an outcome, `never_ran`, or `stopping`.
    pub counts: BTreeMap<String, u32>,
}
