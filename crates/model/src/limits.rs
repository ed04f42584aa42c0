//! Everything bounded has a name: the `limits` section of the configuration.

use serde::{Deserialize, Serialize};

use crate::length::Minutes;

/// Limits with their defaults. Times are milliseconds unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Sub-agent runs at work at once (`lane.subagent`).
    pub lane_subagent: u32,
    /// Verifications at work at once (`lane.verifier`).
    pub lane_verifier: u32,
    /// How deep sub-agents may start sub-agents; 1 means that they start none.
    pub spawn_depth: u32,
    /// Sub-agents that one task, or one sub-agent, may have at work at once.
    pub children_per_parent: u32,
    /// Runs that may wait for a slot.
    pub queue_depth: u32,
    /// Waiting time that raises a run by one priority band.
    pub queue_aging_ms: i64,
    /// Corrective prompts after failed checks.
    pub corrective_rounds: u32,
    /// Continuing prompts and renewed starts of one run.
    pub crash_budget: u32,
    /// Boundary events of one session that reach its room.
    pub round_trip_cap: u32,
    /// Messages from sibling to sibling that one word of a person may set off.
    pub hops_per_trace: u32,
    /// Calls of our tools by one agent process.
    pub tool_calls: u32,
    /// Active time of a run in seconds; 0 means none.
    pub run_timeout_seconds: u64,
    /// Absolute time of an agent process in seconds; 0 means none.
    pub hard_timeout_seconds: u64,
    /// Time a question of a person waits.
    pub question_deadline_minutes: u64,
    /// Time a permission request waits.
    pub permission_deadline_minutes: u64,
    /// Time an agent may take to get ready.
    pub setup_timeout_ms: i64,
    /// Quiet time after the answer before the run's end is decided.
    pub settle_ms: i64,
    /// Silence of an agent in a turn that is told as suspicious; never a verdict.
    pub stall_ms: i64,
    /// Time an agent has to answer a cancel.
    pub cancel_grace_ms: i64,
    /// Time a process tree has to go after TERM.
    pub stop_grace_ms: i64,
    /// Time one check may take.
    pub verify_timeout_ms: i64,
    /// Longest line of an agent in bytes.
    pub line_bytes: usize,
    /// Files that may go with one task.
    pub attachments: u32,
    /// Longest of them in bytes.
    pub attachment_bytes: u64,
    /// Longest file in bytes that is read or written for an agent.
    pub served_file_bytes: u64,
    /// Lines without a frame before an agent counts as garbled.
    pub junk_lines: u64,
    /// Longest text of a room message in bytes.
    pub message_head_bytes: usize,
    /// Unread spool on disk in bytes.
    pub spool_max_bytes: u64,
    /// Time a shim runs on without a daemon.
    pub shim_ownerless_max_ms: u64,
    /// Idle time after which a daemon that a command started ends.
    pub daemon_idle_ms: i64,
    /// Time in which a request under the same idempotency key is not carried out again.
    pub idempotency_hours: u64,
    /// Calls over TCP in a second, all callers together.
    pub requests_per_second: u32,
    /// Wrong tokens and cookies in a minute, all callers together, before callers have to wait.
    pub failed_logins_per_minute: u32,
    /// Time a one-time link to the console can be used.
    pub access_link_minutes: u64,
    /// Time a browser stays let in.
    pub access_cookie_days: u64,
    /// Real attempts to bring one message to a channel.
    pub delivery_attempts: u32,
    /// Time in which a message must have reached its channel; only time with a daemon up counts.
    pub delivery_deadline_hours: u64,
    /// Pause after the first attempt that failed; each later one is five times as long.
    pub delivery_backoff_ms: i64,
    /// Longest such pause.
    pub delivery_backoff_max_ms: i64,
    /// Time a channel has to answer one offer.
    pub delivery_timeout_ms: u64,
    /// Time before a platform conversation hears of the progress of a task.
    pub progress_first_ms: i64,
    /// Time between two progress posts of a task.
    pub progress_every_ms: i64,
    /// Progress posts in a row that a channel may not take before it gets no more of the task.
    pub progress_failures: u32,
    /// Progress posts in a thread that one task may make; edits do not count.
    pub progress_posts: u32,
    /// Time from a task's end to its archiving, decimals allowed; 0 means never.
    pub archive_after_minutes: Minutes,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lane_subagent: 8,
            lane_verifier: 2,
            spawn_depth: 1,
            children_per_parent: 5,
            queue_depth: 32,
            queue_aging_ms: 600_000,
            corrective_rounds: 3,
            crash_budget: 3,
            round_trip_cap: 32,
            hops_per_trace: 8,
            tool_calls: 1_000,
            run_timeout_seconds: 0,
            hard_timeout_seconds: 0,
            question_deadline_minutes: 1_440,
            permission_deadline_minutes: 60,
            setup_timeout_ms: 60_000,
            settle_ms: 250,
            stall_ms: 180_000,
            cancel_grace_ms: 5_000,
            stop_grace_ms: 10_000,
            verify_timeout_ms: 600_000,
            line_bytes: 16 * 1024 * 1024,
            attachments: 16,
            attachment_bytes: 4 * 1024 * 1024,
            served_file_bytes: 4 * 1024 * 1024,
            junk_lines: 10_000,
            message_head_bytes: 16 * 1024,
            spool_max_bytes: 1024 * 1024 * 1024,
            shim_ownerless_max_ms: 6 * 60 * 60 * 1000,
            daemon_idle_ms: 10 * 60 * 1000,
            idempotency_hours: 24,
            requests_per_second: 500,
            failed_logins_per_minute: 30,
            access_link_minutes: 5,
            access_cookie_days: 30,
            delivery_attempts: 8,
            delivery_deadline_hours: 24,
            delivery_backoff_ms: 5_000,
            delivery_backoff_max_ms: 600_000,
            delivery_timeout_ms: 30_000,
            progress_first_ms: 15_000,
            progress_every_ms: 30_000,
            progress_failures: 5,
            progress_posts: 100,
            archive_after_minutes: Minutes::whole(60),
        }
    }
}
