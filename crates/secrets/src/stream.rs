//! Redaction of text that arrives in pieces cut anywhere.

use crate::redactor::{ALL_HIDDEN, Redactor, Sight, Window, char_border};

/// Shows text as soon as it cannot be part of a secret any more. What [`RedactStream::push`] and
/// [`RedactStream::finish`] return joins to what [`Redactor::redact`] gives for the whole, however it was cut.
///
/// Never holds back more than the longest known form. `Debug` does not print what is held.
pub struct RedactStream {
    redactor: Redactor,
    /// The tail that may begin a known form.
    held: String,
    /// So many bytes of `held` belong to a hit whose placeholder has been given out.
    covered: usize,
    /// Whether the one placeholder for everything has been given out.
    all_hidden: bool,
}

impl RedactStream {
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: String::new(), covered: 0, all_hidden: false }
    }

    /// Takes the next piece and returns the text that is safe to show now.
    pub fn push(&mut self, text: &str) -> String {
        self.advance(text, Until::Settled)
    }

    /// Returns what was held back: there is no more to come. The stream can be used for another text after this.
    pub fn finish(&mut self) -> String {
        let shown = self.advance("", Until::End);
        self.all_hidden = false;
        shown
    }

    /// Number of bytes that wait for more text.
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    fn advance(&mut self, text: &str, until: Until) -> String {
        let known = match self.redactor.sight() {
            Sight::Nothing => return text.to_owned(),
            Sight::Everything if text.is_empty() || self.all_hidden => return String::new(),
            Sight::Everything => {
                self.all_hidden = true;
                return ALL_HIDDEN.to_owned();
            }
            Sight::Known(known) => known,
        };
        self.held.push_str(text);
        let mut scan = known.matcher.scan(0);
        scan.feed(&self.held);
        let until = match until {
            Until::Settled => char_border(&self.held, scan.settled()),
            Until::End => self.held.len(),
        };
        let mut shown = String::new();
        let covered =
            known.show(&mut shown, &self.held, scan.regions(), Window { covered: self.covered, until });
        self.covered = covered - until;
        self.held.drain(..until);
        shown
    }
}

impl std::fmt::Debug for RedactStream {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RedactStream").field("held_bytes", &self.held.len()).finish_non_exhaustive()
    }
}

/// How far a step goes.
#[derive(Clone, Copy)]
enum Until {
    /// Up to the tail that may begin a known form.
    Settled,
    /// To the end of the text.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretSet;

    fn stream(pairs: &[(&str, &str)]) -> RedactStream {
        Redactor::new(SecretSet::from_pairs(pairs.iter().copied())).stream()
    }

    #[test]
    fn clean_text_passes_at_once() {
        let mut stream = stream(&[("KEY", "sk-12345")]);
        assert_eq!(stream.push("nothing to hide. "), "nothing to hide. ");
        assert_eq!(stream.held_bytes(), 0);
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn a_beginning_waits_for_what_follows() {
        let mut stream = stream(&[("KEY", "sk-12345")]);
        assert_eq!(stream.push("the key is sk-12"), "the key is ");
        assert_eq!(stream.push("34"), "");
        assert_eq!(stream.push("5, keep it"), "[redacted:KEY], keep it");
    }

    #[test]
    fn a_false_start_is_shown_when_it_breaks_off() {
        let mut stream = stream(&[("KEY", "sk-12345")]);
        assert_eq!(stream.push("sk-1234"), "");
        assert_eq!(stream.push("6"), "sk-12346");
    }

    #[test]
    fn the_end_of_the_text_ends_the_wait() {
        let mut stream = stream(&[("KEY", "sk-12345")]);
        assert_eq!(stream.push("sk-12"), "");
        assert_eq!(stream.finish(), "sk-12");
        assert_eq!(stream.push("sk-12345"), "[redacted:KEY]");
    }

    #[test]
    fn a_longer_secret_may_follow_a_shorter_one() {
        let mut stream = stream(&[("SHORT", "abcdef"), ("LONG", "abcdef-and-more")]);
        assert_eq!(stream.push("abcdef-and"), "");
        assert_eq!(stream.push("-more."), "[redacted:LONG].");
        assert_eq!(stream.push("abcdef-and"), "");
        assert_eq!(stream.push("!"), "[redacted:SHORT]-and!");
    }

    #[test]
    fn an_endless_overlap_is_neither_held_nor_shown() {
        let mut stream = stream(&[("RULER", "------")]);
        let mut shown = String::new();
        for _ in 0..1000 {
            shown.push_str(&stream.push("---"));
            assert!(stream.held_bytes() < 6);
        }
        shown.push_str(&stream.push(" end"));
        assert_eq!(shown, "[redacted:RULER] end");
    }

    #[test]
    fn an_empty_set_changes_nothing() {
        let mut stream = Redactor::default().stream();
        assert_eq!(stream.push("sk-12345"), "sk-12345");
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn debug_does_not_print_what_is_held() {
        let mut stream = stream(&[("KEY", "sk-12345")]);
        stream.push("sk-1234");
        assert_eq!(format!("{stream:?}"), "RedactStream { held_bytes: 7, .. }");
    }
}
