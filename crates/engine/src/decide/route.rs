//! Boundary events into rooms: what the router decides becomes facts here.

use rallypoint_model::command::Outcome;
use rallypoint_model::event::{Aggregate, Event};
use rallypoint_model::ids::{RunId, SessionId};
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_model::routing::{ExplicitEvent, NotRouted, RouterSwitch};
use rallypoint_model::run::{OutcomeReason, RunOutcome};
use serde_json::{Value, json};

use super::room::Rerouted;
use super::spawn::label_of;
use super::{Deciding, Post, UniqueKeys, Voice};
use crate::consequences::{Boundary, session_status_of_outcome};
use crate::router::{Happening, Payload, RoutedPost, Routing, Rules, Teller, read, route};
use crate::state::{Run, TurnCause};

/// Characters that are kept of an event that is told nowhere.
const KEPT_CHARS: usize = 500;

/// Whether an agent raised an event with a structured call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByCall {
    /// It did.
    Yes,
    /// The runtime saw it, or words began with its name.
    No,
}

impl Deciding<'_, '_> {
    /// An event that a session raises with a structured call. It is told once,
    /// however often the call comes.
    pub(crate) fn raise_event(
        &mut self,
        session_id: SessionId,
        event: &ExplicitEvent,
    ) -> Result<Outcome, Refusal> {
        let session =
            self.state.sessions.get(&session_id).ok_or_else(|| Refusal::not_found("session", session_id))?;
        if event.text.trim().is_empty() || event.call_id.is_empty() {
            return Err(Refusal::new(RefusalCode::Invalid, "an event needs words and the id of its call"));
        }
        let Some(run_id) = session.open_run else {
            return Err(Refusal::new(
                RefusalCode::Conflict,
                format!("`{}` is in no turn, so it can raise no event", label_of(session)),
            ));
        };
        let source = format!("call:{}", event.call_id);
        self.route_as(run_id, event.kind.into(), &event.text, &source, ByCall::Yes, None);
        Ok(Outcome::Done)
    }

    /// One durable message per target room, unless the cap or the switch says otherwise.
    pub(crate) fn route(
        &mut self,
        run_id: RunId,
        boundary: Boundary,
        body: &str,
        source: &str,
        by_call: ByCall,
    ) {
        self.route_as(run_id, boundary, body, source, by_call, None);
    }

    /// The same in other words than the narration's.
    pub(crate) fn route_as(
        &mut self,
        run_id: RunId,
        boundary: Boundary,
        body: &str,
        source: &str,
        by_call: ByCall,
        told_as: Option<&str>,
    ) {
        let Some(run) = self.state.runs.get(&run_id) else {
            return;
        };
        let Some(session) = self.state.sessions.get(&run.session_id) else {
            return;
        };
        let Some(launch) = session.launch.as_ref() else {
            return;
        };
        let (session_id, task_id) = (session.id, session.task_id);
        let status = match (boundary, run.outcome) {
            (Boundary::Blocked, _) => "blocked",
            (_, Some(outcome)) => session_status_of_outcome(outcome).as_str(),
            (_, None) => "busy",
        };
        let payload = Payload::of(field(boundary), body);
        let workdir = task_id.and_then(|id| self.state.tasks.get(&id)).map(|task| task.cwd.as_str());
        let limits = self.context.limits;
        let rules = Rules {
            enabled: self.context.router == RouterSwitch::On,
            cap: limits.round_trip_cap,
            head_bytes: limits.message_head_bytes,
        };
        let enforced = self.context.unique_keys == UniqueKeys::Enforced;
        let routing = route(
            &Teller {
                session_id,
                label: &launch.label,
                agent_type: &launch.profile,
                status,
                origin: session.origin.as_ref(),
                workdir: workdir.unwrap_or_default(),
                round_trips: session.round_trips,
                capped: session.capped,
                finish_reason: finish_reason(run),
            },
            &Happening {
                boundary,
                payload: &payload,
                by_call: by_call == ByCall::Yes,
                source: &format!("{run_id}:{source}"),
                turn: &run_id.to_string(),
                told_as,
            },
            rules,
            &|key| enforced && self.state.keys.contains_key(key),
        );
        match routing {
            Routing::Repeated | Routing::NoRoom => {}
            Routing::Kept(why) => {
                self.keep(run_id, session_id, boundary, &read(boundary, &payload).body, why);
            }
            Routing::Told { posts, stops_session } => {
                let ended = self.state.runs.get(&run_id).is_some_and(|run| run.outcome.is_some());
                let may_go_up =
                    ended && !stops_session && matches!(boundary, Boundary::TaskComplete | Boundary::Error);
                let (rerouted, way) = self.reroute(run_id, session_id, may_go_up);
                if rerouted == Rerouted::ToSession {
                    return;
                }
                for (index, post) in posts.into_iter().enumerate() {
                    self.post_routed(run_id, session_id, index, post, way.as_ref());
                }
                if stops_session {
                    self.cap_session(session_id);
                }
            }
        }
    }

    fn post_routed(
        &mut self,
        run_id: RunId,
        session_id: SessionId,
        index: usize,
        post: RoutedPost,
        way: Option<&Value>,
    ) {
        let Some(run) = self.state.runs.get(&run_id) else { return };
        let mut map = post.metadata;
        map.insert("runId".to_owned(), json!(run_id));
        map.insert("taskId".to_owned(), json!(run.task_id));
        if let Some(key) = post.text_key {
            map.insert("subAgentTextKey".to_owned(), json!(key));
        }
        if let Some(result) = &run.result {
            map.insert("result".to_owned(), json!(result));
        }
        if let Some(way) = way {
            map.insert("deliveryHops".to_owned(), way.clone());
        } else if let Some(way_up) = run.outcome.and_then(|_| self.way_up(session_id)) {
            map.insert("deliveryHops".to_owned(), json!(way_up.hops));
        }
        let task_id = run.task_id;
        let in_reply_to = self
            .state
            .sessions
            .get(&session_id)
            .and_then(|session| session.origin.as_ref())
            .map(|origin| origin.message_id);
        self.post(Post {
            room_id: post.target.room_id,
            speaker: Voice::SubAgent(session_id),
            text: post.text,
            source: "sub_agent".to_owned(),
            in_reply_to,
            task_id,
            metadata: Value::Object(map),
            delivery_key: Some(post.delivery_key),
            // One turn per fact, however many rooms see it.
            turn: (index == 0).then_some(TurnCause::Boundary { run_id }),
        });
    }

    /// Keeps an event in the journal that no room hears of, now or later.
    fn keep(
        &mut self,
        run_id: RunId,
        session_id: SessionId,
        boundary: Boundary,
        words: &str,
        why: NotRouted,
    ) {
        let scope = self.run_scope(run_id);
        self.emit(
            Aggregate::Session(session_id),
            scope,
            Event::SessionEventKept {
                session_id,
                run_id,
                event: boundary.as_str().to_owned(),
                text: words.chars().take(KEPT_CHARS).collect(),
                why,
            },
        );
    }

    /// A session over its cap ends; its single notice is posted.
    fn cap_session(&mut self, session_id: SessionId) {
        let cap = self.context.limits.round_trip_cap;
        if let Some(session) = self.state.sessions.get(&session_id)
            && let Some(open) = session.open_run
        {
            self.finish_run(open, RunOutcome::Capped, OutcomeReason::Cap { cap });
        }
        self.end_session(session_id, &OutcomeReason::Cap { cap }, RunOutcome::Capped);
    }
}

/// The field that the words of an event stand in.
fn field(boundary: Boundary) -> &'static str {
    match boundary {
        Boundary::TaskComplete => "response",
        Boundary::QuestionForTaskCreator => "question",
        Boundary::Error | Boundary::Blocked | Boundary::AgentCoordination => "message",
    }
}

/// The finish reason of the routing contract, when a limit ended the turn.
fn finish_reason(run: &Run) -> Option<&'static str> {
    match run.answer.as_ref()?.stop_reason.as_str() {
        "max_tokens" | "max_turn_requests" => Some("length"),
        "refusal" => Some("content_filter"),
        _ => None,
    }
}
