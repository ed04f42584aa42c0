//! `/metrics`: what the daemon holds and how calls went, for Prometheus.

use std::fmt::Write;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use rallypoint_runtime::Figures;

/// Media type of the text, as the format's own library writes it.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Bounds of the times of calls, in seconds. Most calls are one commit, which takes a few milliseconds.
const SECONDS: [f64; 8] = [0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 10.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Call {
    operation: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Status {
    status: Word,
}

/// A status as the API writes it.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Word(String);

impl EncodeLabelValue for Word {
    fn encode(
        &self,
        encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        encoder.write_str(&self.0)
    }
}

/// Counts of this process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    calls: Family<Call, Counter>,
    seconds: Histogram,
    lagged: Counter,
    held: Held,
}

#[derive(Debug, Default)]
struct Held {
    tasks: Family<Status, Gauge>,
    open_runs: Gauge,
    parked_runs: Gauge,
    open_questions: Gauge,
    agent_processes: Gauge,
    unclean_agents: Gauge,
    followers: Gauge,
    events: Counter<u64, AtomicU64>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("rally");
        let calls = Family::<Call, Counter>::default();
        let seconds = Histogram::new(SECONDS);
        let lagged = Counter::default();
        let held = Held::default();
        registry.register("calls", "Calls by operation and HTTP status", calls.clone());
        registry.register("call_seconds", "Time of calls with one answer", seconds.clone());
        registry.register(
            "lagged_followers",
            "Followers that fell behind and read on from the journal",
            lagged.clone(),
        );
        registry.register("tasks", "Tasks by status, archived and deleted ones left out", held.tasks.clone());
        registry.register("open_runs", "Runs without an outcome", held.open_runs.clone());
        registry.register("parked_runs", "Runs that wait for a slot", held.parked_runs.clone());
        registry.register("open_questions", "Questions without an answer", held.open_questions.clone());
        registry.register(
            "agent_processes",
            "Agent processes that are not gone",
            held.agent_processes.clone(),
        );
        registry.register("unclean_agents", "Agents that left processes behind", held.unclean_agents.clone());
        registry.register("followers", "Open event streams", held.followers.clone());
        registry.register("events", "Events in the journal", held.events.clone());
        Self { registry, calls, seconds, lagged, held }
    }

    /// A call was answered.
    pub(crate) fn called(&self, operation: &'static str, status: u16, took: Option<Duration>) {
        self.calls.get_or_create(&Call { operation, status }).inc();
        if let Some(took) = took {
            self.seconds.observe(took.as_secs_f64());
        }
    }

    /// A follower was too slow.
    pub(crate) fn lagged(&self) {
        self.lagged.inc();
    }

    /// Everything as text.
    pub(crate) fn text(&self, figures: &Figures) -> String {
        let held = &self.held;
        held.tasks.clear();
        for (status, count) in &figures.tasks {
            held.tasks.get_or_create(&Status { status: Word(status.clone()) }).set(whole(*count));
        }
        held.open_runs.set(whole(figures.open_runs));
        held.parked_runs.set(whole(figures.parked_runs));
        held.open_questions.set(whole(figures.open_questions));
        held.agent_processes.set(whole(figures.agent_processes));
        held.unclean_agents.set(whole(figures.unclean_agents));
        held.followers.set(whole(figures.followers));
        held.events.inner().store(figures.last_seq, std::sync::atomic::Ordering::Relaxed);
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_calls_are_lines_of_the_text() {
        let metrics = Metrics::new();
        metrics.called("task.get", 200, Some(Duration::from_millis(3)));
        metrics.called("task.get", 404, None);
        metrics.lagged();
        let figures = Figures {
            tasks: [("done".to_owned(), 2)].into(),
            open_runs: 3,
            last_seq: 77,
            ..Figures::default()
        };
        let text = metrics.text(&figures);
        for line in [
            "rally_calls_total{operation=\"task.get\",status=\"200\"} 1",
            "rally_calls_total{operation=\"task.get\",status=\"404\"} 1",
            "rally_call_seconds_count 1",
            "rally_lagged_followers_total 1",
            "rally_tasks{status=\"done\"} 2",
            "rally_open_runs 3",
            "rally_events_total 77",
        ] {
            assert!(text.lines().any(|each| each == line), "{line}: {text}");
        }
        // A status that no task has any more is gone.
        assert!(!metrics.text(&Figures::default()).contains("done"));
    }
}
