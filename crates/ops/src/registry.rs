//! The declarations.

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::{overview, policy, rooms, search, steering, tools, trees, types};

/// HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Changes something.
    Post,
    /// Changes the fields that are named.
    Patch,
}

/// Who may call it. Until accounts exist every caller is an admin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May look.
    Viewer,
    /// May steer work.
    Operator,
    /// May do everything.
    Admin,
    /// An agent process, by the token of its session, and nobody else.
    Session,
}

/// How the answer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// One JSON body.
    Body,
    /// Server-sent events.
    Stream,
}

/// One thing that can be done.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Stable name, `resource.verb`.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Who may.
    pub role: Role,
    /// Whether it destroys something, so that front ends ask first.
    pub destructive: bool,
    /// HTTP method.
    pub method: Method,
    /// HTTP path; `{name}` is a field of the input.
    pub path: &'static str,
    /// Words after `rally` that reach it, when the command line does.
    pub cli: Option<&'static str>,
    /// How the answer travels.
    pub delivery: Delivery,
    /// Schema of the input.
    pub input: fn(&mut SchemaGenerator) -> Schema,
    /// Schema of the output.
    pub output: fn(&mut SchemaGenerator) -> Schema,
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

macro_rules! operation {
    ($name:literal, $summary:literal, $role:ident, $destructive:literal, $method:ident $path:literal,
     $cli:expr, $delivery:ident, $input:ty => $output:ty) => {
        Operation {
            name: $name,
            summary: $summary,
            role: Role::$role,
            destructive: $destructive,
            method: Method::$method,
            path: $path,
            cli: $cli,
            delivery: Delivery::$delivery,
            input: schema::<$input>,
            output: schema::<$output>,
        }
    };
}

/// Every operation there is.
pub static OPERATIONS: &[Operation] = &[
    operation!("daemon.status", "Show the daemon and what it holds", Viewer, false,
        Get "/v1/daemon", Some("daemon status"), Body, types::Empty => types::DaemonStatus),
    operation!("daemon.stop", "End the daemon; agents live on in their shims", Admin, false,
        Post "/v1/daemon/stop", Some("daemon stop"), Body, types::Empty => types::Empty),
    operation!("access.link", "Make a link that lets a browser in, once", Admin, false,
        Post "/v1/access/links", Some("open"), Body, types::Empty => types::AccessLink),
    operation!("task.create", "Make a task and start its work", Operator, false,
        Post "/v1/tasks", Some("run"), Body, types::CreateTaskInput => types::TaskView),
    operation!("task.list", "List tasks, latest first", Viewer, false,
        Get "/v1/tasks", Some("task list"), Body, types::ListTasksInput => types::TaskPage),
    operation!("task.get", "Show one task, whole", Viewer, false,
        Get "/v1/tasks/{taskId}", Some("task show"), Body, types::TaskRef => types::TaskView),
    operation!("task.stop", "Stop all work on a task", Operator, true,
        Post "/v1/tasks/{taskId}/stop", Some("task stop"), Body, types::StopTaskInput => types::TaskView),
    operation!("task.retry", "Give a task another run in its last session", Operator, false,
        Post "/v1/tasks/{taskId}/retry", Some("task retry"), Body, types::RetryTaskInput => types::TaskView),
    operation!("task.override", "Accept or reject a result by name and reason", Operator, true,
        Post "/v1/tasks/{taskId}/override", Some("task override"), Body, types::OverrideTaskInput => types::TaskView),
    operation!("task.archive", "Put a task that is over out of sight", Operator, false,
        Post "/v1/tasks/{taskId}/archive", Some("task archive"), Body, types::ArchiveTaskInput => types::TaskView),
    operation!("task.unarchive", "Bring an archived task back", Operator, false,
        Post "/v1/tasks/{taskId}/unarchive", Some("task unarchive"), Body, types::ArchiveTaskInput => types::TaskView),
    operation!("task.delete", "Hide a task for good, or remove its content", Admin, true,
        Post "/v1/tasks/{taskId}/delete", Some("task delete"), Body, types::DeleteTaskInput => types::TaskView),
    operation!("task.patch", "Change title, goal, criteria, priority, budget or agents of a task", Operator, false,
        Patch "/v1/tasks/{taskId}", Some("task edit"), Body, steering::PatchTaskInput => types::TaskView),
    operation!("task.pause", "Hold a task; its sessions are kept", Operator, false,
        Post "/v1/tasks/{taskId}/pause", Some("task pause"), Body, steering::SteerInput => types::TaskView),
    operation!("task.resume", "Let a paused task go on in the same sessions", Operator, false,
        Post "/v1/tasks/{taskId}/resume", Some("task resume"), Body, steering::SteerInput => types::TaskView),
    operation!("task.pauseAll", "Hold every task that has not ended", Operator, false,
        Post "/v1/pause-all", Some("task pause --all"), Body, steering::SteerAllInput => steering::SteeredView),
    operation!("task.resumeAll", "Let every paused task go on", Operator, false,
        Post "/v1/resume-all", Some("task resume --all"), Body, steering::SteerAllInput => steering::SteeredView),
    operation!("task.reopen", "Open a task again that has ended", Operator, false,
        Post "/v1/tasks/{taskId}/reopen", Some("task reopen"), Body, steering::SteerInput => types::TaskView),
    operation!("task.fork", "Make another task of one, and start its work", Operator, false,
        Post "/v1/tasks/{taskId}/fork", Some("task fork"), Body, steering::ForkTaskInput => types::TaskView),
    operation!("task.message", "Say something to whoever works on a task", Operator, false,
        Post "/v1/tasks/{taskId}/messages", Some("task message"), Body, steering::MessageTaskInput => steering::MessagedView),
    operation!("task.messages", "Read what was said about a task", Viewer, false,
        Get "/v1/tasks/{taskId}/messages", Some("task messages"), Body, steering::TaskPartInput => types::MessagePage),
    operation!("task.timeline", "Read what was said and done about a task", Viewer, false,
        Get "/v1/tasks/{taskId}/timeline", Some("task timeline"), Body, steering::TaskPartInput => steering::TimelinePage),
    operation!("task.decisions", "Read who decided what about a task", Viewer, false,
        Get "/v1/tasks/{taskId}/decisions", Some("task decisions"), Body, steering::TaskPartInput => steering::DecisionPage),
    operation!("task.artifacts", "List what a task brought forth", Viewer, false,
        Get "/v1/tasks/{taskId}/artifacts", Some("task artifacts"), Body, steering::TaskPartInput => steering::ArtifactPage),
    operation!("task.retryTurn", "Give a session of a task one more turn, or a new session in its place", Operator, false,
        Post "/v1/tasks/{taskId}/retry-turn", Some("task retry-turn"), Body, steering::RetryTurnInput => types::TaskView),
    operation!("task.rerun", "Begin a task again from what was known at an event", Operator, false,
        Post "/v1/tasks/{taskId}/rerun-from-event", Some("task rerun"), Body, steering::RerunTaskInput => types::TaskView),
    operation!("task.restart", "Begin a task again in new sessions", Operator, false,
        Post "/v1/tasks/{taskId}/restart", Some("task restart"), Body, steering::RestartTaskInput => types::TaskView),
    operation!("task.restartWithPlan", "Begin a task again with a plan that was changed", Operator, false,
        Post "/v1/tasks/{taskId}/restart-with-edited-plan", Some("task restart --plan"), Body, steering::RestartWithPlanInput => types::TaskView),
    operation!("task.plans", "List the plans of a task", Viewer, false,
        Get "/v1/tasks/{taskId}/plan-revisions", Some("task plan list"), Body, steering::TaskPartInput => steering::PlanPage),
    operation!("task.revisePlan", "Give a task a newer plan", Operator, false,
        Post "/v1/tasks/{taskId}/plan-revisions", Some("task plan set"), Body, steering::RevisePlanInput => rallypoint_model::steering::PlanRevision),
    operation!("task.validate", "Say by name whether a result holds", Operator, false,
        Post "/v1/tasks/{taskId}/validate", Some("task validate"), Body, steering::ValidateTaskInput => types::TaskView),
    operation!("task.check", "Run the checks of a result once more", Operator, false,
        Post "/v1/tasks/{taskId}/auto-validate", Some("task check"), Body, steering::CheckTaskInput => types::TaskView),
    operation!("status.get", "Add up all tasks by where they stand", Viewer, false,
        Get "/v1/status", Some("task status"), Body, types::Empty => steering::StatusView),
    operation!("operation.list", "List every operation there is, for menus and palettes", Viewer, false,
        Get "/v1/operations", Some("operations"), Body, types::Empty => overview::OperationList),
    operation!("capacity.get", "Show the slots and who waits for one", Viewer, false,
        Get "/v1/capacity", Some("task queue"), Body, types::Empty => steering::CapacityView),
    operation!("session.transcript", "Say where a session's transcript is", Viewer, false,
        Get "/v1/sessions/{sessionId}/transcript", Some("task transcript"), Body, types::SessionRef => types::TranscriptView),
    operation!("session.spawn", "Start one more sub-agent for a task, or for one of its sub-agents", Operator, false,
        Post "/v1/tasks/{taskId}/agents", Some("task spawn"), Body, trees::SpawnInput => trees::SpawnedView),
    operation!("session.wait", "Let the turn of a sub-agent wait for those that it started", Operator, false,
        Post "/v1/sessions/{sessionId}/wait", Some("task wait"), Body, trees::WaitInput => types::Empty),
    operation!("session.stop", "End a sub-agent and all below it", Operator, true,
        Post "/v1/sessions/{sessionId}/stop", Some("task stop --session"), Body, trees::StopSessionInput => trees::StopView),
    operation!("session.tools", "Say that the tool server of a session is there", Session, false,
        Post "/v1/sessions/{sessionId}/tools", Some("mcp"), Body, tools::ToolsInput => types::Empty),
    operation!("session.call", "Call one of our tools for the agent of a session", Session, false,
        Post "/v1/sessions/{sessionId}/calls", Some("mcp"), Body, tools::CallInput => tools::CallView),
    operation!("session.cancel_call", "Wait no longer for such a call", Session, false,
        Post "/v1/sessions/{sessionId}/calls/cancel", Some("mcp"), Body, tools::CallRef => types::Empty),
    operation!("event.list", "Read the journal", Viewer, false,
        Get "/v1/events", Some("task log"), Body, types::EventsInput => types::EventPage),
    operation!("event.stream", "Follow the journal live", Viewer, false,
        Get "/v1/events/stream", Some("task log --follow"), Stream, types::EventsInput => types::EventPage),
    operation!("session.send", "Say something to a sub-agent", Operator, false,
        Post "/v1/sessions/{sessionId}/send", Some("task send"), Body, types::SendInput => types::Empty),
    operation!("usage.get", "Add up what runs used", Viewer, false,
        Get "/v1/usage", Some("usage"), Body, types::UsageInput => types::UsageTotals),
    operation!("session.configure", "Want another mode, model, thought level or option of a sub-agent", Operator, false,
        Post "/v1/sessions/{sessionId}/configure", Some("task set"), Body, types::ConfigureInput => types::Empty),
    operation!("question.list", "List what waits for an answer", Viewer, false,
        Get "/v1/questions", Some("question list"), Body, types::ListQuestionsInput => types::QuestionList),
    operation!("question.answer", "Answer a question, once", Operator, false,
        Post "/v1/questions/{questionId}/answer", Some("question answer"), Body, types::AnswerInput => types::Empty),
    operation!("policy.explain", "Say what an agent may do without a person, and what decides it", Viewer, false,
        Get "/v1/policy/explain", Some("policy explain"), Body, policy::ExplainInput => policy::ExplainView),
    operation!("room.list", "List rooms", Viewer, false,
        Get "/v1/rooms", Some("room list"), Body, rooms::ListRoomsInput => types::RoomList),
    operation!("room.create", "Make a room, bound to a conversation on a platform or to none", Operator, false,
        Post "/v1/rooms", Some("room create"), Body, rooms::CreateRoomInput => types::RoomView),
    operation!("room.get", "Show a room", Viewer, false,
        Get "/v1/rooms/{roomId}", Some("room show"), Body, rooms::RoomRef => types::RoomView),
    operation!("room.reset", "Begin a room's conversation anew; what was said stays readable", Operator, false,
        Post "/v1/rooms/{roomId}/reset", Some("room reset"), Body, rooms::ResetRoomInput => types::RoomView),
    operation!("room.active", "Show the active sub-agents of a room, as its main agent gets them", Viewer, false,
        Get "/v1/rooms/{roomId}/active", Some("agents active"), Body, rooms::RoomRef => rooms::ActiveList),
    operation!("room.progress", "Let a room's conversation hear of work that goes on in another way", Operator, false,
        Post "/v1/rooms/{roomId}/progress", Some("room progress"), Body, rooms::RoomProgressInput => types::RoomView),
    operation!("room.say", "Say something in a room, or hand in what was said on its platform", Operator, false,
        Post "/v1/rooms/{roomId}/messages", Some("room say"), Body, rooms::SayInput => rooms::SaidView),
    operation!("message.search", "Look for words in messages", Viewer, false,
        Get "/v1/messages", Some("room search"), Body, rooms::SearchRoomsInput => rooms::FoundPage),
    operation!("search.find", "Look for words in tasks, messages and events", Viewer, false,
        Get "/v1/search", Some("search"), Body, search::SearchInput => search::HitPage),
    operation!("delivery.list", "List messages on their way to platform conversations", Viewer, false,
        Get "/v1/deliveries", Some("delivery list"), Body, rooms::ListDeliveriesInput => rooms::DeliveryList),
    operation!("delivery.get", "Show one of them", Viewer, false,
        Get "/v1/deliveries/{deliveryId}", Some("delivery show"), Body, rooms::DeliveryRef => rooms::DeliveryView),
    operation!("delivery.retry", "Send a message again that did not arrive", Operator, false,
        Post "/v1/deliveries/{deliveryId}/retry", Some("delivery retry"), Body, rooms::RetryDeliveryInput => rooms::DeliveryView),
    operation!("delivery.discard", "Give a message up", Operator, false,
        Post "/v1/deliveries/{deliveryId}/discard", Some("delivery discard"), Body, rooms::DiscardDeliveryInput => rooms::DeliveryView),
    operation!("room.messages", "Read a room", Viewer, false,
        Get "/v1/rooms/{roomId}/messages", Some("room show"), Body, types::RoomMessagesInput => types::MessagePage),
    operation!("agent.list", "List agents and whether they are installed", Viewer, false,
        Get "/v1/agents", Some("agents"), Body, types::Empty => types::AgentList),
    operation!("agent.preflight", "Look whether agents are there, logged in, and of which version", Operator, false,
        Post "/v1/agents/preflight", Some("agents"), Body, types::PreflightInput => types::AgentList),
    operation!("result.get", "Read the full output of a run", Viewer, false,
        Get "/v1/runs/{runId}/result", Some("result get"), Body, types::RunRef => types::ResultView),
];

/// The operation of this name.
pub fn find(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.name == name)
}
