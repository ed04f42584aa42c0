//! Which commands a prompt asks for.
//!
//! Two forms count: a fenced block marked `sh`, `bash` or `shell`, which is one
//! command text as a whole, and a line outside of fences that starts with `$ `.
//! Everything else is words, and text inside other fences is quoted. Fences:
//! CommonMark 0.31, section 4.5.

use rallypoint_acp::agent_side::PromptText;
use rallypoint_model::agent_io::PromptPart;

/// The commands of a prompt, in order.
///
/// Only what is said to be done counts: the goal, criteria, quoted evidence and
/// the frame around them may contain commands of others. A client that marks
/// nothing means all of its text.
pub(crate) fn of_prompt(prompt: &[PromptText]) -> Vec<String> {
    let marks = prompt.iter().any(|block| block.part.is_some());
    let counts = |block: &&PromptText| match block.part {
        Some(PromptPart::Task | PromptPart::Message) => true,
        Some(PromptPart::Goal | PromptPart::Criteria | PromptPart::Evidence | PromptPart::Frame) => false,
        None => !marks,
    };
    prompt.iter().filter(counts).flat_map(|block| of_text(&block.text)).collect()
}

/// The commands in a text, in order.
fn of_text(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(fence) = Fence::opened_by(line) {
            let body: Vec<&str> = lines
                .by_ref()
                .take_while(|line| !fence.is_closed_by(line))
                .map(|line| fence.unindented(line))
                .collect();
            if fence.is_shell {
                commands.push(body.join("\n"));
            }
        } else if let Some(first) = line.strip_prefix("$ ") {
            let mut command = first.to_owned();
            while command.ends_with('\\') {
                let Some(next) = lines.next() else { break };
                command.push('\n');
                command.push_str(next);
            }
            commands.push(command);
        }
    }
    commands.retain(|command| !command.trim().is_empty());
    commands
}

/// An open fence.
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    is_shell: bool,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let (indent, mark, length, info) = fence_line(line)?;
        if mark == '`' && info.contains('`') {
            return None;
        }
        let language = info.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        let is_shell = matches!(language.as_str(), "sh" | "bash" | "shell");
        Some(Self { mark, length, indent, is_shell })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        fence_line(line).is_some_and(|(_, mark, length, info)| {
            mark == self.mark && length >= self.length && info.is_empty()
        })
    }

    /// The line without as much of its indentation as the fence has.
    fn unindented<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        line.get(spaces..).unwrap_or(line)
    }
}

/// Indentation, mark, its length, and what follows it.
fn fence_line(line: &str) -> Option<(usize, char, usize, &str)> {
    let stripped = line.trim_start_matches(' ');
    let indent = line.len() - stripped.len();
    let mark = stripped.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = stripped.trim_start_matches(mark);
    let length = stripped.len() - info.len();
    (indent <= 3 && length >= 3).then(|| (indent, mark, length, info.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fenced_shell_blocks_and_dollar_lines_are_commands_in_order() {
        let text = "Do this:\n$ echo one\n\n```sh\necho two\necho three\n```\nand\n   ~~~ Bash title\n   echo four\n   ~~~\n$ echo five \\\n  six\n";
        assert_eq!(of_text(text), ["echo one", "echo two\necho three", "echo four", "echo five \\\n  six"]);
    }

    #[test]
    fn what_other_fences_quote_is_ignored() {
        let text = "```\n$ rm -r x\n```\n```console\n$ rm -r y\n```\n~~~text\n```sh\nrm -r z\n```\n~~~\n $ indented\nsay $ no\n$no\n";
        assert!(of_text(text).is_empty(), "{:?}", of_text(text));
    }

    #[test]
    fn a_longer_fence_closes_and_a_shorter_one_does_not() {
        assert_eq!(of_text("````sh\necho '```'\n```\necho b\n`````\n$ c"), ["echo '```'\n```\necho b", "c"]);
    }

    #[test]
    fn empty_commands_are_none_and_an_open_fence_reaches_to_the_end() {
        assert_eq!(of_text("```sh\n\n```\n$  \n```sh\necho a"), ["echo a"]);
        assert_eq!(of_text("$ echo \\"), ["echo \\"]);
        assert_eq!(of_text("```a`b\n$ yes"), ["yes"]);
    }

    #[test]
    fn only_tasks_and_messages_count_once_anything_is_marked() {
        let block = |part, text: &str| PromptText { part, text: text.to_owned() };
        let marked = [
            block(Some(PromptPart::Goal), "$ goal"),
            block(Some(PromptPart::Criteria), "$ criteria"),
            block(Some(PromptPart::Evidence), "$ evidence"),
            block(Some(PromptPart::Frame), "$ frame"),
            block(Some(PromptPart::Task), "$ task"),
            block(None, "$ unmarked"),
            block(Some(PromptPart::Message), "$ message"),
        ];
        assert_eq!(of_prompt(&marked), ["task", "message"]);
        assert_eq!(of_prompt(&[block(None, "$ a"), block(None, "$ b")]), ["a", "b"]);
    }
}
