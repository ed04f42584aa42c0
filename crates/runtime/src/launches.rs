//! Environments of agents. Secret values live here only: in memory, never stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use rallypoint_model::command::AgentLaunch;
use rallypoint_model::ids::TaskId;

/// Secret variables by task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environments {
    secrets: Arc<Mutex<HashMap<TaskId, BTreeMap<String, Hidden>>>>,
}

#[derive(Clone)]
struct Hidden(String);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("[hidden]")
    }
}

impl Environments {
    /// Keeps a task's secret variables.
    pub(crate) fn keep(&self, task_id: TaskId, secrets: impl IntoIterator<Item = (String, String)>) {
        let hidden = secrets.into_iter().map(|(name, value)| (name, Hidden(value)));
        let mut kept = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(task_id).or_default().extend(hidden);
    }

    /// Adds those that a later sub-agent of the task was started with.
    pub(crate) fn add(&self, task_id: TaskId, secrets: impl IntoIterator<Item = (String, String)>) {
        let hidden = secrets.into_iter().map(|(name, value)| (name, Hidden(value)));
        let mut kept = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        kept.entry(task_id).or_default().extend(hidden);
    }

    /// The whole environment of an agent, or the names that are missing.
    pub(crate) fn of(
        &self,
        task_id: TaskId,
        launch: &AgentLaunch,
    ) -> Result<Vec<(String, String)>, Vec<String>> {
        let kept = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let secrets = kept.get(&task_id);
        let mut environment = launch.environment.clone();
        let mut missing = Vec::new();
        for name in &launch.secret_names {
            match secrets.and_then(|secrets| secrets.get(name)) {
                Some(value) => environment.push((name.clone(), value.0.clone())),
                None => missing.push(name.clone()),
            }
        }
        if missing.is_empty() {
            environment.sort();
            Ok(environment)
        } else {
            Err(missing)
        }
    }
}
