//! Reading `/proc`.
//!
//! Every answer is a snapshot of something that changes meanwhile, so a process that is gone half-way through is
//! simply not in the answer; callers that need certainty look again until nothing is found.

use std::collections::{HashMap, HashSet};
use std::fs;

use crate::identity::ProcessIdentity;

/// The fields of `/proc/PID/stat` that this crate needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) state: u8,
    pub(crate) parent: u32,
    /// Clock ticks since boot.
    pub(crate) start_time: u64,
}

impl Stat {
    /// Whether the process still runs code: a zombie and a process being removed do not.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x')
    }

    pub(crate) fn identity(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start_time: self.start_time }
    }
}

pub(crate) fn read_stat(pid: u32) -> Option<Stat> {
    parse_stat(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The program's name stands in parentheses and may itself hold spaces and parentheses, so fields are counted from
/// the last closing one.
fn parse_stat(pid: u32, text: &[u8]) -> Option<Stat> {
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    // State and parent are fields 3 and 4 of the file, the start time is field 22.
    let start_time = fields.nth(17)?.parse().ok()?;
    Some(Stat { pid, state, parent, start_time })
}

pub(crate) fn all_pids() -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The environment a process was started with; `None` when it is gone or belongs to somebody else.
pub(crate) fn read_environment(pid: u32) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ")).ok()
}

/// Living descendants of `ancestor`, at any depth, without itself. A zombie is not in the answer, its children are.
pub(crate) fn living_descendants(ancestor: u32) -> Vec<ProcessIdentity> {
    let mut children: HashMap<u32, Vec<Stat>> = HashMap::new();
    for stat in all_pids().into_iter().filter_map(read_stat) {
        children.entry(stat.parent).or_default().push(stat);
    }
    let mut found = Vec::new();
    let mut visited = HashSet::from([ancestor]);
    let mut queue = vec![ancestor];
    while let Some(parent) = queue.pop() {
        for stat in children.get(&parent).into_iter().flatten() {
            // Processes come and go while the table is read, so a recycled pid could close a circle.
            if visited.insert(stat.pid) {
                queue.push(stat.pid);
                if stat.is_alive() {
                    found.push(stat.identity());
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let text = b"42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 1 2 3 4 20 0 1 0 98765 1000 2 18446744073709551615";
        let stat = parse_stat(42, text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.start_time), (b'S', 7, 98765));
    }

    #[test]
    fn this_process_has_a_stat() {
        let stat = read_stat(std::process::id()).unwrap();
        assert!(stat.is_alive());
        assert_eq!(stat.parent, std::os::unix::process::parent_id());
    }
}
