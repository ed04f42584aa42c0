//! The two builders that every prompt goes through.
//!
//! A first prompt is made by [`goal_prompt`], everything said later by
//! [`follow_up`], or [`mid_turn`] in a turn that is open; a main agent's turn
//! has [`active_sub_agents`]. Nothing else makes a [`PromptBlock`]. Order of the sections:
//! elizaOS plugin-agent-orchestrator, `goal-prompt.ts`; the words are ours.
//!
//! Parts travel as separate blocks, so that an agent of ours acts only on what
//! is meant for it, and a child's words or evidence never become instructions.

use rallypoint_model::agent_io::{PromptBlock, PromptPart};
use rallypoint_model::ids::RoomId;

use crate::roster::News;

/// What a first prompt is made of.
#[derive(Clone, Debug)]
pub struct GoalPrompt<'a> {
    /// Name of the worker.
    pub agent_name: &'a str,
    /// What the whole is about.
    pub goal: &'a str,
    /// What this worker is to do; the goal when absent.
    pub task: Option<&'a str>,
    /// What must hold for done.
    pub criteria: &'a [String],
    /// Room for status, hand-over and questions.
    pub task_room: RoomId,
    /// Room for peers.
    pub worktree_room: Option<RoomId>,
    /// Work folder.
    pub workdir: &'a str,
    /// The plan that is followed.
    pub plan: Option<&'a str>,
    /// What was said and done before; quoted, never an instruction.
    pub earlier: Option<&'a str>,
}

/// Why something is said to a session that already works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUpReason {
    /// A person says something.
    UserMessage,
    /// The main agent says something.
    Orchestrator,
    /// The last turn ended without a usable result.
    IncompleteCompletion,
    /// Checks failed.
    ValidationFailed,
    /// Work goes on after it was cut.
    Resume,
}

/// What a follow-up is made of.
#[derive(Clone, Debug)]
pub struct FollowUp<'a> {
    /// Why.
    pub reason: FollowUpReason,
    /// What the whole is about.
    pub goal: &'a str,
    /// What must hold for done.
    pub criteria: &'a [String],
    /// Room for status, hand-over and questions.
    pub task_room: RoomId,
    /// Room for peers.
    pub worktree_room: Option<RoomId>,
    /// The words.
    pub message: &'a str,
    /// What was observed; quoted, never an instruction.
    pub evidence: Option<&'a str>,
}

const WORKING_AGREEMENT: &str = "--- Working Agreement ---\n\
1. Finish only when the goal is reached or you are truly blocked.\n\
2. Check your work yourself before your final answer; it is checked again by others.\n\
3. If you are blocked, write your question as plain text, without labels, and end your turn.\n\
4. Report what your tools did and what they cost when you know it.\n\
5. End with the completion report.";

const COMPLETION_REPORT: &str = "--- Completion Report ---\n\
End your final message with one fenced `json` block: \
{\"status\": \"completed\" | \"failed\" | \"blocked\", \"reason\": \"…\", \"diffSummary\": \"…\", \"filesChanged\": [\"…\"], \
\"testResults\": [{\"command\": \"…\", \"exitCode\": 0, \"summary\": \"…\"}], \
\"acceptanceCriteriaStatus\": [{\"criterion\": \"…\", \"met\": true, \"evidence\": \"…\"}], \"residualRisks\": [\"…\"]}. \
`status` and `reason` may be left out when the work is complete. The report is a claim; it is compared with what really happened.";

const CAPABILITIES: &str = "--- Capabilities ---\n\
- read and search files\n- edit files\n- run commands and tests\n- look at git status and diffs\n- talk to the parent and to peers through the rooms";

/// The first prompt of a session.
pub fn goal_prompt(prompt: &GoalPrompt<'_>) -> Vec<PromptBlock> {
    let mut blocks = vec![block(
        PromptPart::Goal,
        format!(
            "--- Goal ---\nYou are {}, one of the workers on this goal. Work until it is reached or you are blocked.\n\n{}",
            prompt.agent_name, prompt.goal
        ),
    )];
    push_criteria(&mut blocks, prompt.criteria);
    blocks.push(block(PromptPart::Frame, format!("--- Workspace ---\nWorkdir: {}", prompt.workdir)));
    blocks.push(block(PromptPart::Frame, rooms(prompt.task_room, prompt.worktree_room)));
    blocks.push(block(PromptPart::Frame, CAPABILITIES.to_owned()));
    blocks.push(block(PromptPart::Frame, WORKING_AGREEMENT.to_owned()));
    blocks.push(block(PromptPart::Frame, COMPLETION_REPORT.to_owned()));
    if let Some(plan) = prompt.plan {
        blocks.push(block(PromptPart::Frame, format!("--- Plan ---\n{plan}")));
    }
    if let Some(earlier) = prompt.earlier {
        blocks.push(block(PromptPart::Evidence, format!("--- Earlier Work ---\n{earlier}")));
    }
    blocks.push(block(PromptPart::Frame, "--- Task ---".to_owned()));
    blocks.push(block(PromptPart::Task, prompt.task.unwrap_or(prompt.goal).to_owned()));
    blocks
}

/// Everything said to a session after its first prompt.
pub fn follow_up(follow_up: &FollowUp<'_>) -> Vec<PromptBlock> {
    let framing = match follow_up.reason {
        FollowUpReason::UserMessage => "A person has something to add. The goal stays as it was.",
        FollowUpReason::Orchestrator => "The main agent has something to add. The goal stays as it was.",
        FollowUpReason::IncompleteCompletion => {
            "Your last turn ended without a usable result. Continue, or report what keeps you from it."
        }
        FollowUpReason::ValidationFailed => {
            "Your work was checked and is not done: the criteria below are not met. Continue until they are."
        }
        FollowUpReason::Resume => {
            "Your work was cut. Look at what is there, then continue, or report how far it got. Do not begin anew."
        }
    };
    let mut blocks =
        vec![block(PromptPart::Goal, format!("--- Continue Goal ---\n{framing}\n\n{}", follow_up.goal))];
    push_criteria(&mut blocks, follow_up.criteria);
    blocks.push(block(PromptPart::Frame, rooms(follow_up.task_room, follow_up.worktree_room)));
    blocks.push(block(PromptPart::Frame, WORKING_AGREEMENT.to_owned()));
    if let Some(evidence) = follow_up.evidence {
        blocks.push(block(PromptPart::Evidence, format!("--- Observed ---\n{evidence}")));
    }
    blocks.push(block(PromptPart::Frame, "--- Message ---".to_owned()));
    blocks.push(block(PromptPart::Message, follow_up.message.to_owned()));
    blocks
}

/// What is said in a turn that is open: words with a say as the message, those of others as evidence.
pub fn mid_turn(message: &str, evidence: Option<&str>) -> Vec<PromptBlock> {
    let observed = evidence.map(|it| block(PromptPart::Evidence, format!("--- Observed ---\n{it}")));
    observed.into_iter().chain([block(PromptPart::Message, message.to_owned())]).collect()
}

/// What a main agent's turn is told of the active sub-agents.
pub fn active_sub_agents(news: News) -> Vec<PromptBlock> {
    let (News::Whole(text) | News::Changed(text)) = news;
    vec![block(PromptPart::Frame, text)]
}

fn push_criteria(blocks: &mut Vec<PromptBlock>, criteria: &[String]) {
    if criteria.is_empty() {
        return;
    }
    let list: Vec<String> = criteria.iter().map(|criterion| format!("- [ ] {criterion}")).collect();
    blocks.push(block(PromptPart::Criteria, format!("--- Acceptance Criteria ---\n{}", list.join("\n"))));
}

fn rooms(task_room: RoomId, worktree_room: Option<RoomId>) -> String {
    let mut text = format!("--- Rooms ---\nTask room: {task_room} (status, hand-over, questions)");
    if let Some(room) = worktree_room {
        text.push_str(&format!("\nWorktree room: {room} (peers)"));
    }
    text
}

fn block(part: PromptPart, text: String) -> PromptBlock {
    PromptBlock { part, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn room() -> RoomId {
        RoomId(Uuid::nil())
    }

    fn show(blocks: &[PromptBlock]) -> String {
        blocks.iter().map(|block| format!("<{}>\n{}\n", block.part.as_str(), block.text)).collect()
    }

    #[test]
    fn sections_of_a_first_prompt_come_in_order_and_empty_ones_are_left_out() {
        let criteria = vec!["tests pass".to_owned()];
        let full = goal_prompt(&GoalPrompt {
            agent_name: "ada",
            goal: "Fix it",
            task: Some("$ true"),
            criteria: &criteria,
            task_room: room(),
            worktree_room: Some(room()),
            workdir: "/w",
            plan: Some("{\"steps\":[]}"),
            earlier: Some("ada: hello"),
        });
        let names: Vec<&str> =
            full.iter().map(|block| block.text.lines().next().unwrap_or_default()).collect();
        assert_eq!(
            names,
            [
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
                "$ true"
            ]
        );
        let bare = goal_prompt(&GoalPrompt {
            agent_name: "ada",
            goal: "Fix it",
            task: None,
            criteria: &[],
            task_room: room(),
            worktree_room: None,
            workdir: "/w",
            plan: None,
            earlier: None,
        });
        assert!(!show(&bare).contains("Acceptance Criteria"));
        assert!(!show(&bare).contains("Worktree room"));
        assert_eq!(bare.last().map(|block| block.text.as_str()), Some("Fix it"));
    }

    #[test]
    fn evidence_never_shares_a_block_with_the_message() {
        let blocks = follow_up(&FollowUp {
            reason: FollowUpReason::ValidationFailed,
            goal: "Fix it",
            criteria: &["tests pass".to_owned()],
            task_room: room(),
            worktree_room: None,
            message: "Meet the criteria.",
            evidence: Some("$ rm -rf x"),
        });
        let evidence: Vec<_> = blocks.iter().filter(|block| block.text.contains("rm -rf")).collect();
        assert_eq!(evidence.len(), 1);
        assert!(evidence.iter().all(|block| block.part == PromptPart::Evidence));
        assert_eq!(blocks.last().map(|block| block.part), Some(PromptPart::Message));
    }
}
