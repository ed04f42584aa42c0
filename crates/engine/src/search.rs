//! Looking for words: what of an event can be found, what a person's words ask for, and the part of a text that shows
//! why it was found.

use rallypoint_model::agent_io::AgentOutput;
use rallypoint_model::event::Event;
use rallypoint_model::question::QuestionKind;

/// Characters of a text that are shown around what was found.
const SNIPPET_CHARS: usize = 160;
/// Characters of them before it.
const SNIPPET_BEFORE: usize = 40;
/// Words of one search that are looked at; more make it no better.
const MOST_WORDS: usize = 32;

/// The text by which an event can be found; `None` for one that holds no words of people or agents.
pub fn searchable(event: &Event) -> Option<String> {
    let text = match event {
        Event::MessagePosted { message, .. } => message.text.clone(),
        Event::TaskCreated { title, goal, criteria, .. } => {
            let criteria = criteria.iter().map(|criterion| criterion.text.as_str());
            [title.as_str(), goal].into_iter().chain(criteria).collect::<Vec<_>>().join("\n")
        }
        Event::TaskVerified { evidence, .. } => {
            evidence.iter().map(|each| each.detail.as_str()).collect::<Vec<_>>().join("\n")
        }
        Event::TaskOverridden { reason, .. } => reason.clone(),
        Event::QuestionOpened { question, .. } => match question {
            QuestionKind::Approval { title, .. } => title.clone(),
            QuestionKind::Ask { text, .. } | QuestionKind::Acceptance { text } => text.clone(),
        },
        Event::PermissionDecided { title, .. } => title.clone(),
        Event::RunEnded { summary, .. } => summary.clone(),
        Event::AgentOutput { output, replay: false, .. } => match output {
            AgentOutput::Message { text } | AgentOutput::Thought { text } => text.clone(),
            AgentOutput::ToolCall { call } => call.title.clone()?,
            AgentOutput::Notice { title, .. } => title.clone(),
            _ => return None,
        },
        _ => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

/// Words that are all to be in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Each a word or a phrase.
    pub parts: Vec<Part>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// As it was written, without quotes.
    pub text: String,
    /// Whether a longer word that begins so counts too.
    pub may_go_on: bool,
}

impl Query {
    /// What a person's words ask for: `"two words"` in quotes stand one after the other, each other word may be the
    /// beginning of a longer one. `None` where nothing is a word.
    pub fn parse(words: &str) -> Option<Self> {
        let mut parts = Vec::new();
        for (index, piece) in words.split('"').enumerate() {
            if index % 2 == 1 {
                parts.push(Part { text: piece.trim().to_owned(), may_go_on: false });
            } else {
                parts.extend(
                    piece.split_whitespace().map(|word| Part { text: word.to_owned(), may_go_on: true }),
                );
            }
        }
        parts.retain(|part| part.text.chars().any(char::is_alphanumeric));
        parts.truncate(MOST_WORDS);
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// Whether a part is of a script that puts no spaces between its words, so that an index of words can't find it.
    pub fn is_unspaced(&self) -> bool {
        self.parts.iter().any(|part| part.text.chars().any(is_unspaced))
    }
}

/// Scripts without spaces: Thai, Lao, Khmer, Burmese; Chinese and Japanese.
fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Part of a text on one line, around the first of the words that is in it, else its beginning.
pub fn snippet(text: &str, query: &Query) -> String {
    let plain: Vec<char> = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    let folded: Vec<char> = plain.iter().map(|letter| fold(*letter)).collect();
    let found = query.parts.iter().filter_map(|part| place(&folded, &part.text)).min().unwrap_or(0);
    let start = if plain.len() <= SNIPPET_CHARS { 0 } else { found.saturating_sub(SNIPPET_BEFORE) };
    let end = start.saturating_add(SNIPPET_CHARS).min(plain.len());
    let mut shown = String::new();
    if start > 0 {
        shown.push('…');
    }
    shown.extend(plain.get(start..end).unwrap_or_default());
    if end < plain.len() {
        shown.push('…');
    }
    shown
}

/// Lower case where that is one letter again, so that places stay.
fn fold(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

fn place(text: &[char], word: &str) -> Option<usize> {
    let word: Vec<char> = word.chars().map(fold).collect();
    text.windows(word.len().max(1)).position(|window| window == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(words: &str) -> Vec<(String, bool)> {
        let parts = Query::parse(words).map(|query| query.parts).unwrap_or_default();
        parts.into_iter().map(|part| (part.text, part.may_go_on)).collect()
    }

    #[test]
    fn words_may_go_on_and_phrases_may_not() {
        assert_eq!(
            parts("fix \"the parser\" now"),
            [("fix".to_owned(), true), ("the parser".to_owned(), false), ("now".to_owned(), true)]
        );
        assert_eq!(parts("an \"open phrase"), [("an".to_owned(), true), ("open phrase".to_owned(), false)]);
        assert_eq!(parts(" % _ -- \"\" \"!\" "), []);
        assert_eq!(parts(&"a ".repeat(1000)).len(), MOST_WORDS);
    }

    #[test]
    fn a_snippet_shows_what_was_found_whatever_its_case_and_place() {
        let query = Query::parse("ÄRGER").unwrap();
        let long = format!("{} viel Ärger\n\nhier {}", "x ".repeat(200), "y ".repeat(200));
        let shown = snippet(&long, &query);
        assert!(
            shown.contains("viel Ärger hier") && shown.starts_with('…') && shown.ends_with('…'),
            "{shown}"
        );
        assert_eq!(shown.chars().count(), SNIPPET_CHARS + 2);
        assert_eq!(snippet("a\nb", &query), "a b");
        assert_eq!(snippet("", &query), "");
        assert_eq!(snippet("İstanbul ärger", &query), "İstanbul ärger");
    }

    #[test]
    fn scripts_without_spaces_are_told_apart() {
        assert!(Query::parse("漢字").unwrap().is_unspaced());
        assert!(Query::parse("한국어 ok").is_some_and(|query| !query.is_unspaced()));
    }
}
