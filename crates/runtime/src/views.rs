//! What front ends see of the state.

use rallypoint_engine::admission;
use rallypoint_engine::decide::can_go_on;
use rallypoint_engine::roster::{Roster, tail};
use rallypoint_engine::state::{Generation, Question, Room, Run, Session, State, Task};
use rallypoint_engine::usage::of_ended;
use rallypoint_engine::view::{active_tool, is_settled, session_status, settled_exit_code};
use rallypoint_model::command::AgentChoice;
use rallypoint_model::ids::{RoomId, RunId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::question::QuestionKind;
use rallypoint_model::run::RunPurpose;
use rallypoint_model::session::SessionKind;
use rallypoint_model::task::TaskStatus;
use rallypoint_model::tool_call::ToolsStatus;
use rallypoint_model::usage::{Measured, TokenCounts};
use rallypoint_ops::rooms::{ActiveList, ActiveView};
use rallypoint_ops::steering::PauseView;
use rallypoint_ops::types::{
    GenerationView, QuestionView, RoomView, RunView, SessionView, TaskSummary, TaskView, UsageTotals,
};

use crate::sources::SystemClock;

pub(crate) mod members;
pub(crate) mod trees;
pub(crate) mod usage;

pub(crate) fn task_view(state: &State, task_id: TaskId, limits: &Limits) -> Option<TaskView> {
    let parked = admission::parked(state, limits, SystemClock.now());
    let task = state.tasks.get(&task_id)?;
    Some(TaskView {
        task_id,
        title: task.title.clone(),
        goal: task.goal.clone(),
        status: task.status,
        reason: task.reason,
        room_id: task.origin_room_id,
        main_room_id: state.world.as_ref().map(|world| world.main_room_id),
        cwd: task.cwd.clone(),
        criteria: task.criteria.clone(),
        evidence: task.evidence.clone(),
        verdict: task.verdict,
        rounds: task.rounds,
        corrective_rounds: task.corrective_rounds,
        corrective_limit: task.corrective_limit,
        resume_limit: limits.crash_budget,
        paused: pause_view(task),
        blocked_reason: blocked_reason(state, task),
        completion_summary: task
            .last_completed_run
            .and_then(|id| state.runs.get(&id))
            .map(|run| run.summary.clone())
            .filter(|summary| !summary.is_empty()),
        plan: task.plan().cloned(),
        forked_from: task.forked_from,
        sessions: task
            .sessions
            .iter()
            .filter_map(|id| state.sessions.get(id))
            .map(|session| session_view(state, task, session))
            .collect(),
        agent_choice: task
            .agents
            .first()
            .map(|launch| launch.choice)
            .filter(|choice| *choice != AgentChoice::Named),
        runs: task
            .runs
            .iter()
            .filter_map(|id| state.runs.get(id))
            .map(|run| run_view(run, &parked))
            .collect(),
        open_questions: state
            .open_questions(task_id)
            .map(|question| question_view(state, question))
            .collect(),
        settled: is_settled(state, task),
        exit_code: settled_exit_code(state, task_id),
        last_reply: task.last_reply.clone(),
        priority: task.priority,
        budget: task.budget,
        used: usage::sum(state, task.runs.iter().filter_map(|id| state.runs.get(id))),
        attachments: task.attachments.clone(),
        last_stop: trees::last_stop(state, task),
        created_at: task.created_at,
        ended_at: task.ended_at,
        archived_at: task.archived_at,
        deleted: task.deleted.clone(),
    })
}

pub(crate) fn task_summary(task: &Task) -> TaskSummary {
    TaskSummary {
        task_id: task.id,
        title: task.title.clone(),
        status: task.status,
        reason: task.reason,
        room_id: task.origin_room_id,
        sessions: u32::try_from(task.sessions.len()).unwrap_or(u32::MAX),
        priority: task.priority,
        paused: pause_view(task),
        parent_task_id: task.forked_from.map(|source| source.task_id),
        created_at: task.created_at,
        updated_at: task.updated_at,
        archived_at: task.archived_at,
    }
}

fn session_view(state: &State, task: &Task, session: &Session) -> SessionView {
    let launch = session.launch.as_ref();
    let runs: Vec<&Run> = task
        .runs
        .iter()
        .filter_map(|id| state.runs.get(id))
        .filter(|run| run.session_id == session.id)
        .collect();
    let used = usage::sum(state, runs.iter().copied());
    SessionView {
        session_id: session.id,
        session_key: session.key.clone(),
        label: launch.map(|launch| launch.label.clone()).unwrap_or_default(),
        parent_session_id: session.parent_session_id,
        depth: session.depth,
        agent_type: launch.map(|launch| launch.profile.clone()).unwrap_or_default(),
        status: session_status(state, session),
        generation: session
            .generation_id
            .and_then(|id| state.generations.get(&id))
            .map(|it| generation_view(it, session)),
        goal_prompt: goal_prompt(&runs),
        retry_count: u32::try_from(runs.iter().filter(|run| is_retry(run)).count()).unwrap_or(u32::MAX),
        round_trips: session.round_trips,
        active_tool: active_tool(state, session),
        usage: session_usage(state, &used, &runs),
        context: runs.iter().rev().find_map(|run| run.noted.context),
        used,
        can_go_on: can_go_on(state, session.id),
        agent_session_id: session.agent_session_id.clone(),
        offer: session.offer.clone(),
        wanted: launch.map(|launch| launch.wanted.clone()).unwrap_or_default(),
        native_agents: session.native_agents.clone(),
    }
}

fn pause_view(task: &Task) -> Option<PauseView> {
    task.pause.as_ref().map(|pause| PauseView { by: pause.by.clone(), at: pause.at })
}

/// What is asked, or else the last words to whoever made the task.
fn blocked_reason(state: &State, task: &Task) -> Option<String> {
    if !matches!(task.status, TaskStatus::Blocked | TaskStatus::WaitingOnUser) {
        return None;
    }
    let asked = state.open_questions(task.id).next().map(|question| match &question.question {
        QuestionKind::Approval { title, .. } => title.clone(),
        QuestionKind::Ask { text, .. } | QuestionKind::Acceptance { text } => text.clone(),
    });
    asked.or_else(|| task.last_reply.clone())
}

fn goal_prompt(runs: &[&Run]) -> String {
    let goal = runs.iter().find(|run| run.purpose == RunPurpose::Goal);
    let texts: Vec<&str> =
        goal.map(|run| run.blocks.iter().map(|block| block.text.as_str()).collect()).unwrap_or_default();
    texts.join("\n\n")
}

fn is_retry(run: &Run) -> bool {
    match run.purpose {
        RunPurpose::Corrective | RunPurpose::Continuing => true,
        RunPurpose::Goal | RunPurpose::FollowUp | RunPurpose::Turn => false,
    }
}

/// Tokens of a session; one run whose tokens are not known makes the whole unknown.
fn session_usage(state: &State, used: &UsageTotals, runs: &[&Run]) -> Measured<TokenCounts> {
    let reason = runs.iter().filter_map(|run| of_ended(state, run)).find_map(|usage| match &usage.tokens {
        Measured::Unavailable { reason } => Some(reason.clone()),
        Measured::Measured { .. } | Measured::Estimated { .. } => None,
    });
    match reason {
        Some(reason) => Measured::Unavailable { reason },
        None if used.runs == 0 => Measured::Unavailable { reason: "nothing was reported yet".to_owned() },
        None if used.estimated_runs > 0 => Measured::Estimated { value: used.tokens.clone() },
        None => Measured::Measured { value: used.tokens.clone() },
    }
}

fn generation_view(generation: &Generation, session: &Session) -> GenerationView {
    let given = session.launch.as_ref().is_some_and(|launch| launch.tools);
    GenerationView {
        generation_id: generation.id,
        status: generation.status,
        frames: generation.cursor.frames,
        tools: match (given, &generation.tools) {
            (false, _) => ToolsStatus::Off,
            (true, None) => ToolsStatus::NotConnected,
            (true, Some(_)) => ToolsStatus::Connected,
        },
        capabilities: generation.capabilities.clone(),
    }
}

fn run_view(run: &Run, parked: &[RunId]) -> RunView {
    let place = parked.iter().position(|id| *id == run.id);
    RunView {
        run_id: run.id,
        session_id: run.session_id,
        purpose: run.purpose,
        predecessor: run.predecessor,
        status: run.status,
        queue_position: place.and_then(|place| u32::try_from(place.saturating_add(1)).ok()),
        detecting_since: run.detecting_since,
        outcome: run.outcome,
        reason: run.reason.clone(),
        result: run.result.clone(),
        queued_at: run.queued_at,
        started_at: run.started_at,
        ended_at: run.ended_at,
    }
}

pub(crate) fn question_view(state: &State, question: &Question) -> QuestionView {
    let label = question
        .session_id
        .and_then(|id| state.sessions.get(&id))
        .and_then(|session| session.launch.as_ref())
        .map(|launch| launch.label.clone());
    QuestionView {
        question_id: question.id,
        question: question.question.clone(),
        status: question.status,
        task_id: question.task_id,
        session_id: question.session_id,
        label,
        opened_at: question.opened_at,
        deadline_at: question.deadline_at,
    }
}

pub(crate) fn open_questions(state: &State, task_id: Option<TaskId>) -> Vec<QuestionView> {
    let mut open: Vec<&Question> = state
        .all_open_questions()
        .filter(|question| task_id.is_none_or(|id| question.task_id == id))
        .collect();
    open.sort_by_key(|question| (question.opened_at, question.id));
    open.into_iter().map(|question| question_view(state, question)).collect()
}

pub(crate) fn room(state: &State, room: &Room) -> RoomView {
    RoomView {
        members: members::members(state, room),
        room_id: room.id,
        kind: room.kind,
        title: room.title.clone(),
        messages: room.messages,
        earlier_messages: room.earlier_messages,
        incarnation: room.incarnation,
        reset_at: room.reset_at,
        conversation: room.conversation.clone(),
        progress: room.progress,
        created_at: room.created_at,
    }
}

/// The active sub-agents of a room.
pub(crate) fn active(state: &State, room_id: RoomId) -> ActiveList {
    let view = |session: &Session| {
        let launch = session.launch.as_ref();
        let task = session.task_id.and_then(|id| state.tasks.get(&id));
        ActiveView {
            session_id: session.id,
            label: launch.map(|launch| launch.label.clone()).unwrap_or_default(),
            agent_type: launch.map(|launch| launch.profile.clone()).unwrap_or_default(),
            status: session_status(state, session),
            workdir_tail: task.map(|task| tail(&task.cwd)).unwrap_or_default(),
            task_id: session.task_id,
            origin_room_id: session.origin.as_ref().map(|origin| origin.origin_room_id),
        }
    };
    let roster = state.rosters.of_room(room_id);
    ActiveList {
        text: roster.map(Roster::rendered).unwrap_or_default(),
        sessions: state
            .active_in(room_id)
            .into_iter()
            .filter_map(|id| state.sessions.get(&id))
            .map(view)
            .collect(),
        rendered_lines: roster.map(Roster::rendered_lines).unwrap_or_default(),
    }
}

/// Runs of sub-agents without an outcome.
pub(crate) fn open_runs(state: &State) -> usize {
    state
        .open_runs()
        .filter(|run| {
            state.sessions.get(&run.session_id).is_some_and(|session| session.kind == SessionKind::SubAgent)
        })
        .count()
}
