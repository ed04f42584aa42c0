//! Nothing is left of agents that have ended.

use rallypoint_ops::types::DaemonStatus;

use crate::data_folder::DataFolder;
use crate::violation::{Rule, Violation};

/// Looked at while the last daemon still runs, once everything is settled.
pub(crate) fn check_orphans(folder: &DataFolder, status: &DaemonStatus) -> Vec<Violation> {
    let mut violations: Vec<Violation> = folder
        .agent_processes()
        .into_iter()
        .map(|process| {
            let text = format!("process {} is left ({})", process.identity.pid, process.how);
            Violation::new(Rule::Orphans, text)
        })
        .collect();
    if status.unclean_generations != 0 {
        let text = format!("{} generations could not be cleaned", status.unclean_generations);
        violations.push(Violation::new(Rule::Orphans, text));
    }
    let spools = std::fs::read_dir(folder.path().join("gen")).map_or(0, Iterator::count);
    if spools != 0 {
        violations.push(Violation::new(Rule::Orphans, format!("{spools} folders of generations are left")));
    }
    violations
}
