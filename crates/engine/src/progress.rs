//! How the work on a task goes, as its platform conversation is told.
//!
//! Rules: the progress hook of elizaOS plugin-agent-orchestrator (modes, first post, heartbeat, nothing when nothing
//! changed). The text is made of states and counts that the runtime knows; no words of a model are needed, and no
//! clock stands in it, so that the same state gives the same bytes.

use rallypoint_model::limits::Limits;
use rallypoint_model::progress::{OfferedProgress, ProgressMode, ProgressShape};
use rallypoint_model::run::RunStatus;
use rallypoint_model::task::TaskStatus;
use rallypoint_model::time::Timestamp;

use crate::state::{Session, State, Task};
use crate::text::one_line;
use crate::view::active_tool;

/// Sub-agents that a post names.
const MOST_LINES: usize = 10;
/// Characters of the title.
const TITLE_CHARS: usize = 80;
/// Characters of a name.
const LABEL_CHARS: usize = 40;
/// Characters of what an agent says that it does.
const TOOL_CHARS: usize = 60;

/// What a conversation should hear next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Not before this.
    pub at: Timestamp,
    /// What it is.
    pub shape: ProgressShape,
    /// The words.
    pub text: String,
    /// The same post as before, where nobody can tell whether it is there.
    pub again: Option<OfferedProgress>,
}

/// Whether nobody works on a task any more, or nobody can before a person speaks.
fn rests(status: TaskStatus) -> bool {
    match status {
        TaskStatus::Open | TaskStatus::Active | TaskStatus::Blocked | TaskStatus::Validating => false,
        TaskStatus::WaitingOnUser | TaskStatus::Done | TaskStatus::Failed | TaskStatus::Interrupted => true,
    }
}

/// The earliest moment at which a task may be told of.
pub(crate) fn earliest(task: &Task, limits: &Limits) -> Timestamp {
    if rests(task.status) && task.progress.failures == 0 {
        return Timestamp::default();
    }
    task.progress.next_at.unwrap_or_else(|| task.created_at.plus(limits.progress_first_ms))
}

/// What the conversation of a task should hear next, and when; `None` where it knows everything or should hear nothing.
pub fn wanted(state: &State, task: &Task, limits: &Limits) -> Option<Wanted> {
    let progress = &task.progress;
    if progress.over || progress.offered.is_some() || task.deleted.is_some() || state.is_outlived(task) {
        return None;
    }
    task.origin_message_id?;
    let conversation = task.conversation.as_ref()?;
    let facts = state.usable_channel(&conversation.channel).ok()?;
    // How it ended is told at once, unless the channel did not take the last one.
    let at = earliest(task, limits);
    if let Some(again) = &progress.again {
        let (shape, text) = (again.shape.clone(), again.text.clone());
        return Some(Wanted { at, shape, text, again: Some(again.clone()) });
    }
    let edit =
        || progress.post_id.clone().filter(|_| facts.edits).map(|post_id| ProgressShape::Edit { post_id });
    let mode = state.progress_mode(task);
    let shape = if rests(task.status) {
        // Only what stands is brought up to date. The main agent tells the end itself.
        edit()?
    } else {
        let thread = conversation.thread.is_some() || facts.threads && task.platform_message_id.is_some();
        match mode {
            ProgressMode::Silent => return None,
            ProgressMode::Threaded if thread => {
                if progress.posts >= limits.progress_posts {
                    return None;
                }
                let under = task.platform_message_id.clone().filter(|_| conversation.thread.is_none());
                ProgressShape::InThread { under }
            }
            ProgressMode::Threaded | ProgressMode::Compact if facts.edits => {
                edit().unwrap_or(ProgressShape::Post)
            }
            ProgressMode::Threaded | ProgressMode::Compact => return None,
        }
    };
    let is_edit = matches!(shape, ProgressShape::Edit { .. });
    // A message that waits comes first; its arrival looks here again.
    if !is_edit && state.open_deliveries().any(|delivery| &delivery.conversation == conversation) {
        return None;
    }
    let text = words(state, task);
    if text == progress.text && progress.status == Some(task.status) {
        return None;
    }
    Some(Wanted { at, shape, text, again: None })
}

/// Whether a daemon has to stay for it: something is with a channel, or a post that stands says what is over.
pub(crate) fn is_to_be_told(state: &State, task: &Task) -> bool {
    // Of a task that is over only the time of the next post depends on limits, and it is not looked at.
    let stands = || wanted(state, task, &Limits::default()).is_some();
    task.progress.offered.is_some() || task.ended_at.is_some() && stands()
}

/// The words of a post.
pub fn words(state: &State, task: &Task) -> String {
    let mut lines = vec![format!("{}: {}", quiet(&task.title, TITLE_CHARS), of_task(task.status))];
    let sessions: Vec<&Session> = task.sessions.iter().filter_map(|id| state.sessions.get(id)).collect();
    lines.extend(sessions.iter().take(MOST_LINES).map(|session| line(state, session)));
    if let Some(more) = sessions.len().checked_sub(MOST_LINES).filter(|more| *more > 0) {
        lines.push(format!("- and {more} more"));
    }
    lines.join("\n")
}

fn of_task(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Open | TaskStatus::Active => "at work",
        TaskStatus::Blocked => "waits for an answer",
        TaskStatus::WaitingOnUser => "waits for a person",
        TaskStatus::Validating => "being checked",
        TaskStatus::Done => "done",
        TaskStatus::Failed => "failed",
        TaskStatus::Interrupted => "interrupted",
    }
}

fn line(state: &State, session: &Session) -> String {
    let label = session.launch.as_ref().map(|launch| quiet(&launch.label, LABEL_CHARS)).unwrap_or_default();
    let kind = session.launch.as_ref().map(|launch| launch.profile.as_str()).unwrap_or_default();
    let run = session.open_run.or(session.last_run).and_then(|id| state.runs.get(&id));
    let does = match run.map(|run| run.status) {
        None | Some(RunStatus::Queued) => "waits for a free place",
        Some(RunStatus::Starting) => "starts",
        Some(RunStatus::Running | RunStatus::Settling) => "works",
        Some(RunStatus::WaitingApproval | RunStatus::WaitingQuestion) => "waits for an answer",
        Some(RunStatus::WaitingLogin) => "waits for a login",
        Some(RunStatus::WaitingChildren) => "waits for those that it started",
        Some(RunStatus::Terminal) => "has ended its turn",
    };
    let mut line = format!("- {label} ({kind}) {does}");
    match run.map_or(0, |run| run.tools) {
        0 => {}
        1 => line.push_str(", 1 tool call"),
        many => line.push_str(&format!(", {many} tool calls")),
    }
    if let Some(tool) = active_tool(state, session) {
        line.push_str(&format!(", now `{}`", quiet(&tool, TOOL_CHARS)));
    }
    line
}

/// Words of others on one line that call nobody there and end no quotation.
fn quiet(text: &str, chars: usize) -> String {
    one_line(text, chars).replace('`', "'").replace('@', "@\u{200b}")
}
