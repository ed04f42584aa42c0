//! Shortens output to its head and tail. The tail is the longer part: test runners put their verdict at the end.

use rallypoint_process::command::Captured;

/// Longest excerpt of one stream in bytes, without the line that says how much was cut.
pub const EXCERPT_MAX_BYTES: usize = 4096;

const HEAD_BYTES: usize = 1024;

/// What was kept of a stream, redacted, as one text; shortened to head and tail with the number of bytes left out
/// between them if it is longer than [`EXCERPT_MAX_BYTES`]. Cuts only between characters.
pub(crate) fn excerpt(captured: &Captured, redact: &dyn Fn(&str) -> String) -> String {
    if captured.cut_bytes == 0 {
        let text = redact(&format!("{}{}", captured.head, captured.tail));
        if text.len() <= EXCERPT_MAX_BYTES {
            return text;
        }
        return joined(&text, &text, text.len() as u64);
    }
    let (head, tail) = (redact(&captured.head), redact(&captured.tail));
    joined(&head, &tail, captured.cut_bytes.saturating_add((head.len() + tail.len()) as u64))
}

/// The beginning of `head`, the end of `tail`, and what of `all_bytes` is in neither.
fn joined(head: &str, tail: &str, all_bytes: u64) -> String {
    let head = head.get(..border_before(head, HEAD_BYTES)).unwrap_or_default();
    let tail_start = tail.len().saturating_sub(EXCERPT_MAX_BYTES - HEAD_BYTES);
    let tail = tail.get(border_after(tail, tail_start)..).unwrap_or_default();
    let cut = all_bytes.saturating_sub((head.len() + tail.len()) as u64);
    format!("{head}\n[{cut} bytes cut]\n{tail}")
}

fn border_before(text: &str, place: usize) -> usize {
    (0..=place.min(text.len())).rev().find(|border| text.is_char_boundary(*border)).unwrap_or(0)
}

fn border_after(text: &str, place: usize) -> usize {
    (place..text.len()).find(|border| text.is_char_boundary(*border)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Captured {
        Captured { head: text.to_owned(), tail: String::new(), cut_bytes: 0 }
    }

    #[test]
    fn short_text_is_whole() {
        assert_eq!(excerpt(&whole(""), &str::to_owned), "");
        let longest = "x".repeat(EXCERPT_MAX_BYTES);
        assert_eq!(excerpt(&whole(&longest), &str::to_owned), longest);
    }

    #[test]
    fn long_text_keeps_head_and_tail_and_names_the_cut() {
        let shown = excerpt(&whole(&format!("first{}last", "x".repeat(10_000))), &str::to_owned);
        assert!(shown.starts_with("firstx") && shown.ends_with("xlast"), "{shown}");
        assert!(shown.contains("\n[5913 bytes cut]\n"), "{shown}");
        assert_eq!(shown.len(), EXCERPT_MAX_BYTES + "\n[5913 bytes cut]\n".len());
    }

    #[test]
    fn what_was_cut_before_is_counted() {
        let captured = Captured { head: "h".repeat(2000), tail: "t".repeat(4000), cut_bytes: 5_000_000 };
        let shown = excerpt(&captured, &str::to_owned);
        let expected = format!("{}\n[5001904 bytes cut]\n{}", "h".repeat(1024), "t".repeat(3072));
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_secret_at_the_cut_is_hidden_before_it_is_cut() {
        let redact = |text: &str| text.replace("sk-0123456789", "[key]");
        for lead in HEAD_BYTES - 13..=HEAD_BYTES {
            let text = format!("{}sk-0123456789{}", "x".repeat(lead), "y".repeat(9000));
            assert!(!excerpt(&whole(&text), &redact).contains("sk-"), "{lead}");
        }
    }

    #[test]
    fn characters_stay_whole() {
        for lead in 0..3 {
            let shown = excerpt(&whole(&format!("{}{}", "x".repeat(lead), "€".repeat(5000))), &str::to_owned);
            assert!(shown.len() <= EXCERPT_MAX_BYTES + 30);
            assert!(shown.ends_with('€') && !shown.contains('\u{fffd}'));
        }
    }
}
