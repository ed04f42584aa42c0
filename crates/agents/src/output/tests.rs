use super::*;

fn joined(chunks: &[&[u8]]) -> String {
    let (mut joiner, mut text) = (TextJoiner::default(), String::new());
    for chunk in chunks {
        joiner.push(chunk, &mut text);
    }
    joiner.finish(&mut text);
    text
}

#[test]
fn characters_survive_any_cut_and_bad_bytes_are_replaced() {
    let bytes = "aä✓😀z".as_bytes();
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            assert_eq!(joined(&[&bytes[..first], &bytes[first..second], &bytes[second..]]), "aä✓😀z");
        }
    }
    assert_eq!(joined(&[b"a\xff", b"b\xf0\x9f"]), "a\u{fffd}b\u{fffd}");
    assert_eq!(joined(&[b"\xe2", b"x\xe2"]), "\u{fffd}x\u{fffd}");
}

#[test]
fn splitting_respects_characters() {
    assert_eq!(split_front("äöü", 3), ("ä", "öü"));
    assert_eq!(split_front("ä", 1), ("ä", ""));
    assert_eq!(split_front("ab", 9), ("ab", ""));
}

#[test]
fn head_and_tail_of_a_long_output_are_kept() {
    let mut output = HeadTail::default();
    for number in 0..10_000 {
        output.push(&format!("line {number} ä\n"));
    }
    let shown = output.shown();
    assert!(shown.starts_with("line 0 ä\n") && shown.ends_with("line 9999 ä\n"));
    assert!(shown.contains("bytes left out]") && shown.len() < HEAD_BYTES + TAIL_BYTES + 64);
    assert_eq!(output.last_lines(2), "line 9998 ä\nline 9999 ä");
}

#[test]
fn a_short_output_is_whole_and_one_huge_piece_is_bounded() {
    let mut output = HeadTail::default();
    output.push("a");
    output.push("b\n");
    assert_eq!(output.shown(), "ab\n");
    let mut output = HeadTail::default();
    output.push(&"ä".repeat(1_000_000));
    assert!(output.shown().len() < HEAD_BYTES + TAIL_BYTES + 64);
    assert_eq!(output.bytes, 2_000_000);
}

#[test]
fn lines_and_quotes() {
    assert_eq!(one_line("\n  echo a\necho b\n", 80), "echo a …");
    assert_eq!(one_line("abcdef", 3), "abc…");
    assert_eq!(code("echo `date`"), "`` echo `date` ``");
    assert_eq!(quoted("a\n```\n"), "    | a\n    | ```\n");
}

#[test]
fn an_open_fence_is_noticed_across_cuts() {
    let closing = |pieces: &[&str]| {
        let mut fence = OpenFence::default();
        for piece in pieces {
            fence.push(piece);
        }
        fence.closing()
    };
    assert_eq!(closing(&["a\n", "`", "``sh\n", "x"]), "\n```\n\n");
    assert_eq!(closing(&["```sh\nx\n```\n"]), "\n\n");
    assert_eq!(closing(&["```sh\nx\n```"]), "\n\n");
    assert_eq!(closing(&["a ``` b"]), "\n\n");
    let long = format!("```{}ä\n", "x".repeat(60));
    assert_eq!(closing(&[&long]), "\n```\n\n");
}
