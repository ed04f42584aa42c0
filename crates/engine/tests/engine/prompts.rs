//! Every prompt is made by one of the two builders.

use std::path::{Path, PathBuf};

use rallypoint_model::agent_io::{AgentInput, PromptBlock, PromptPart};
use rallypoint_model::event::{Event, EventRecord};

const GOAL: [&str; 11] = [
    "--- Goal ---",
    "--- Acceptance Criteria ---",
    "--- Workspace ---",
    "--- Rooms ---",
    "--- Capabilities ---",
    "--- Working Agreement ---",
    "--- Completion Report ---",
    "--- Plan ---",
    "--- Earlier Work ---",
    "--- Task ---",
    "",
];
const FOLLOW_UP: [&str; 7] = [
    "--- Continue Goal ---",
    "--- Acceptance Criteria ---",
    "--- Rooms ---",
    "--- Working Agreement ---",
    "--- Observed ---",
    "--- Message ---",
    "",
];
const OPTIONAL: [&str; 4] =
    ["--- Acceptance Criteria ---", "--- Observed ---", "--- Plan ---", "--- Earlier Work ---"];

fn part_of(section: &str, first: &str) -> PromptPart {
    match section {
        "--- Goal ---" | "--- Continue Goal ---" => PromptPart::Goal,
        "--- Acceptance Criteria ---" => PromptPart::Criteria,
        "--- Observed ---" | "--- Earlier Work ---" => PromptPart::Evidence,
        "" if first == "--- Goal ---" => PromptPart::Task,
        "" => PromptPart::Message,
        _ => PromptPart::Frame,
    }
}

/// Whether blocks have the sections of one of the builders, in its order.
fn is_built(blocks: &[PromptBlock]) -> bool {
    let heading = |block: &PromptBlock| block.text.lines().next().unwrap_or_default().to_owned();
    let Some(first) = blocks.first().map(heading) else { return false };
    let sections: &[&str] = if first == "--- Goal ---" { &GOAL } else { &FOLLOW_UP };
    let mut rest = blocks.iter().peekable();
    for section in sections {
        let fits = rest.peek().is_some_and(|block| {
            (section.is_empty() || heading(block) == *section) && block.part == part_of(section, &first)
        });
        if fits {
            rest.next();
        } else if !OPTIONAL.contains(section) {
            return false;
        }
    }
    rest.next().is_none()
}

/// Checks every prompt of a journal, and that it is what its run was queued with.
pub(crate) fn check_prompts(journal: &[EventRecord]) {
    for record in journal {
        if let Event::GenerationInput { input: AgentInput::Prompt { blocks, .. }, run_id, .. } = &record.event
        {
            assert!(is_built(blocks), "no builder made this: {blocks:?}");
            let queued = journal.iter().find_map(|other| match &other.event {
                Event::RunQueued { run_id: id, blocks, .. } if Some(*id) == *run_id => Some(blocks),
                _ => None,
            });
            assert_eq!(queued, Some(blocks));
        }
    }
}

#[test]
fn blocks_in_another_order_or_for_another_part_are_not_taken_for_built() {
    use rallypoint_engine::prompt::{FollowUp, FollowUpReason, follow_up};
    use rallypoint_model::ids::RoomId;
    let built = follow_up(&FollowUp {
        reason: FollowUpReason::UserMessage,
        goal: "g",
        criteria: &["c".to_owned()],
        task_room: RoomId(uuid::Uuid::nil()),
        worktree_room: None,
        message: "m",
        evidence: Some("e"),
    });
    assert!(is_built(&built));
    let mut turned = built.clone();
    turned.swap(0, 1);
    assert!(!is_built(&turned));
    let mut renamed = built.clone();
    renamed.last_mut().expect("a message").part = PromptPart::Frame;
    assert!(!is_built(&renamed));
    assert!(!is_built(&built[1..]));
    assert!(!is_built(&[]));
}

/// Source files of all crates' `src` folders, with their paths.
pub(crate) fn sources(crates: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = std::fs::read_dir(crates)
        .expect("the crates folder")
        .map(|entry| entry.expect("an entry").path().join("src"))
        .filter(|path| path.is_dir())
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file");
                found.push((path, text));
            }
        }
    }
    found
}

/// The shipped part of a source file: everything before its tests.
pub(crate) fn shipped(path: &Path, text: &str) -> String {
    let is_test = path.components().any(|part| part.as_os_str() == "tests")
        || path.file_name().is_some_and(|name| name == "tests.rs");
    if is_test {
        return String::new();
    }
    let code: Vec<&str> = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    code.join("\n")
}

#[test]
fn a_prompt_block_is_made_in_the_prompt_builders_and_nowhere_else() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut makers = Vec::new();
    for (path, text) in sources(&crates) {
        for (index, _) in shipped(&path, &text).match_indices("PromptBlock {") {
            let before = &shipped(&path, &text)[..index];
            let declares =
                before.ends_with("struct ") || before.ends_with("impl ") || before.ends_with("-> ");
            if !declares {
                makers.push(path.strip_prefix(&crates).expect("below").display().to_string());
            }
        }
    }
    assert_eq!(makers, ["engine/src/prompt.rs"]);
}
