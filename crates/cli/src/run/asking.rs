//! Questions answered on the terminal.

use std::io::{BufRead, IsTerminal};

use rallypoint_model::ids::QuestionId;
use rallypoint_model::question::{Answer, QuestionKind};
use rallypoint_ops::types::QuestionView;
use tokio::sync::mpsc;

use crate::output::Output;
use crate::show::text::brief;
use crate::show::words;

mod forms;

/// Columns of a question's text.
const COLUMNS: usize = 400;
/// Lines typed ahead that are kept.
const LINES_AHEAD: usize = 16;

/// The person at the terminal.
#[derive(Debug)]
pub(crate) struct Person {
    lines: Option<mpsc::Receiver<String>>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    question: QuestionView,
    /// Set while the reason for a no is typed.
    declining: bool,
}

/// What a typed line came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Typed {
    /// The answer is whole.
    Answer(Answer),
    /// One more line is needed.
    More(&'static str),
    /// It was not understood.
    Unclear(&'static str),
}

impl Person {
    /// Somebody to ask, where there is a terminal to ask on.
    pub(crate) fn at_terminal() -> Option<Self> {
        let both = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        both.then_some(Self { lines: None, open: None })
    }

    /// The question that waits for a line.
    pub(crate) fn asked(&self) -> Option<QuestionId> {
        self.open.as_ref().map(|open| open.question.question_id)
    }

    /// Asks, and forgets what was typed before anybody asked.
    pub(crate) fn ask(&mut self, question: QuestionView, output: &mut Output) {
        let lines = self.lines.get_or_insert_with(read_lines);
        while lines.try_recv().is_ok() {}
        for line in prompt(&question) {
            output.talk(&line);
        }
        output.ask(">");
        self.open = Some(Open { question, declining: false });
    }

    /// Takes the question back, when it was closed elsewhere.
    pub(crate) fn forget(&mut self) {
        self.open = None;
    }

    /// The next line, while a question is open; never otherwise, and never after the terminal is closed.
    pub(crate) async fn line(&mut self) -> String {
        let wanted = self.open.is_some();
        if let Some(lines) = self.lines.as_mut().filter(|_| wanted)
            && let Some(line) = lines.recv().await
        {
            return line;
        }
        std::future::pending().await
    }

    /// What the line means for the open question.
    pub(crate) fn take(&mut self, line: &str) -> Option<(QuestionId, Typed)> {
        let open = self.open.as_mut()?;
        let id = open.question.question_id;
        let typed = if open.declining {
            Typed::Answer(Answer::Decline { reason: line.trim().to_owned() })
        } else {
            understood(&open.question.question, line.trim())
        };
        open.declining = matches!(typed, Typed::More(_));
        if matches!(typed, Typed::Answer(_)) {
            self.open = None;
        }
        Some((id, typed))
    }
}

/// The thread ends with the program: a read from a terminal can't be taken back.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn prompt(question: &QuestionView) -> Vec<String> {
    let who = brief(question.label.as_deref().unwrap_or("rally"), 24);
    let mut lines = vec![format!("{who} asks: {}", brief(&words::question(&question.question), COLUMNS))];
    match &question.question {
        QuestionKind::Approval { options, .. } => {
            lines
                .extend(words::asked_by(&question.question).map(|why| format!("  {}", brief(&why, COLUMNS))));
            for (place, option) in options.iter().enumerate() {
                lines.push(format!("  {}  {}", place + 1, brief(&option.name, COLUMNS)));
            }
            lines.push("type a number, `y` to allow once, or `n` to refuse".to_owned());
        }
        QuestionKind::Ask { form: Some(form), .. } => lines.extend(forms::prompt(form)),
        QuestionKind::Ask { form: None, .. } => lines.push("type the answer in one line".to_owned()),
        QuestionKind::Acceptance { .. } => lines.push("type `y` to accept, `n` to reject".to_owned()),
    }
    lines
}

fn understood(question: &QuestionKind, line: &str) -> Typed {
    let word = line.to_lowercase();
    let yes = matches!(word.as_str(), "y" | "yes");
    let no = matches!(word.as_str(), "n" | "no");
    match question {
        QuestionKind::Approval { options, .. } => {
            let chosen = word.parse::<usize>().ok().and_then(|number| options.get(number.checked_sub(1)?));
            match chosen {
                Some(option) => Typed::Answer(Answer::Option { option_id: option.option_id.clone() }),
                None if yes => Typed::Answer(Answer::Allow),
                None if no => Typed::More("why not"),
                None => Typed::Unclear("type one of the numbers, `y` or `n`"),
            }
        }
        QuestionKind::Acceptance { .. } if yes => Typed::Answer(Answer::Accept { reason: String::new() }),
        QuestionKind::Acceptance { .. } if no => Typed::More("why not"),
        QuestionKind::Acceptance { .. } => Typed::Unclear("type `y` or `n`"),
        QuestionKind::Ask { form: Some(form), .. } => match forms::understood(form, line) {
            Some(answer) => Typed::Answer(answer),
            None if no => Typed::More("why not"),
            None => Typed::Unclear(forms::HOW),
        },
        QuestionKind::Ask { .. } if line.is_empty() => Typed::Unclear("type the answer in one line"),
        QuestionKind::Ask { .. } => Typed::Answer(Answer::Text { text: line.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use rallypoint_model::question::ApprovalOption;

    use super::*;

    #[test]
    fn lines_mean_what_the_question_offers() {
        let option = ApprovalOption {
            option_id: "once".to_owned(),
            name: "Allow".to_owned(),
            kind: "allow_once".to_owned(),
        };
        let approval = QuestionKind::Approval {
            title: "rm x".to_owned(),
            tool_kind: String::new(),
            options: vec![option],
            because: None,
        };
        let acceptance = QuestionKind::Acceptance { text: "fine".to_owned() };
        let ask = QuestionKind::Ask { text: "which port".to_owned(), form: None };
        let once = Answer::Option { option_id: "once".to_owned() };
        assert_eq!(understood(&approval, "1"), Typed::Answer(once));
        assert_eq!(understood(&approval, "Y"), Typed::Answer(Answer::Allow));
        assert_eq!(understood(&approval, "n"), Typed::More("why not"));
        for line in ["0", "2", "", "maybe"] {
            assert!(matches!(understood(&approval, line), Typed::Unclear(_)), "{line}");
        }
        assert_eq!(understood(&acceptance, "yes"), Typed::Answer(Answer::Accept { reason: String::new() }));
        assert!(matches!(understood(&acceptance, ""), Typed::Unclear(_)));
        assert_eq!(understood(&ask, "80"), Typed::Answer(Answer::Text { text: "80".to_owned() }));
        assert!(matches!(understood(&ask, ""), Typed::Unclear(_)));
    }
}
