//! A room as a person reads it: when and who on the left, what on the right.

use rallypoint_model::message::{Message, Speaker};
use unicode_width::UnicodeWidthStr;

use crate::show::text::{Shown, brief, harmless, padded, wrapped};
use crate::show::time;

/// Columns for the speaker, where the names are long.
const SPEAKER_MAX: usize = 24;
/// Columns that the text gets at least.
const TEXT_MIN: usize = 30;

/// Lines for these messages, oldest first.
pub(crate) fn lines(messages: &[Message], columns: usize) -> Vec<String> {
    let speaker_width =
        messages.iter().map(|message| speaker(message).width()).max().unwrap_or(0).min(SPEAKER_MAX);
    let left = "00:00:00  ".len() + speaker_width + 2;
    let right = columns.saturating_sub(left).max(TEXT_MIN);
    let mut lines = Vec::new();
    let mut day = String::new();
    for message in messages {
        let at = time::day_and_clock(message.created_at);
        let (date, clock) = at.split_once(' ').unwrap_or((&at, ""));
        if day != date {
            date.clone_into(&mut day);
            lines.push(format!("-- {date} --"));
        }
        let text = wrapped(&harmless(message.text.trim_end(), Shown::Whole), right);
        let head = format!("{clock}  {}", padded(&brief(&speaker(message), SPEAKER_MAX), speaker_width + 2));
        let mut heads = Some(head).into_iter();
        for line in if text.is_empty() { vec![String::new()] } else { text } {
            let head = heads.next().unwrap_or_else(|| " ".repeat(left));
            lines.push(format!("{head}{line}").trim_end().to_owned());
        }
    }
    lines
}

fn speaker(message: &Message) -> String {
    match message.speaker {
        Speaker::SubAgent => format!("[{}]", message.name),
        Speaker::User | Speaker::MainAgent | Speaker::System => message.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rallypoint_model::time::Timestamp;
    use serde_json::json;

    use super::*;

    fn message(speaker: &str, name: &str, text: &str, at: i64) -> Message {
        let id = "0198a000-0000-7000-8000-000000000001";
        serde_json::from_value(json!({
            "id": id, "roomId": id, "entityId": id, "speaker": speaker, "name": name, "text": text, "source": "cli",
            "inReplyTo": null, "taskId": null, "metadata": {}, "createdAt": at,
        }))
        .unwrap()
    }

    #[test]
    fn long_texts_are_wrapped_beside_their_speaker() {
        let messages = [
            message("user", "anna", "write notes", 1_000),
            message("sub_agent", "shell", "one two three four five six seven\u{1b}[2J\nend", 2_000),
        ];
        let shown = lines(&messages, 49);
        let clock = |at: i64| time::clock(Timestamp(at));
        let day = time::day_and_clock(Timestamp(1_000));
        assert_eq!(
            shown,
            [
                format!("-- {} --", day.split(' ').next().unwrap()),
                format!("{}  anna     write notes", clock(1_000)),
                format!("{}  [shell]  one two three four five six", clock(2_000)),
                "                   seven".to_owned(),
                "                   end".to_owned(),
            ]
        );
    }
}
