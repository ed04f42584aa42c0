use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    text: Option<String>,
    oversized: Option<(u64, bool)>,
    /// Where the line ended, counted from the first byte of all.
    end: usize,
}

fn seen(line: AssembledLine<'_>, before: usize) -> Seen {
    match line.line {
        Line::Whole(text) => {
            Seen { text: Some(text.into_owned()), oversized: None, end: before + line.consumed }
        }
        Line::Oversized { bytes, may_be_answer } => {
            Seen { text: None, oversized: Some((bytes, may_be_answer)), end: before + line.consumed }
        }
    }
}

fn assemble(chunks: &[&[u8]], cap: usize) -> Vec<Seen> {
    let mut assembler = LineAssembler::new(cap);
    let mut lines = Vec::new();
    let mut before = 0;
    for chunk in chunks {
        let border = assembler.push(chunk, |line| lines.push(seen(line, before)));
        assert!(border <= chunk.len());
        before += chunk.len();
    }
    assembler.finish(|line| lines.push(seen(line, before)));
    assert_eq!(assembler.pending_bytes(), 0);
    lines
}

fn texts(lines: &[Seen]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.text.as_deref()).collect()
}

#[test]
fn every_cut_gives_the_same_lines() {
    let input = "{\"a\":1}\n\r\n  \nünïcode ✓\r\nbad \u{0}\nlast".as_bytes();
    let whole = assemble(&[input], 64);
    assert_eq!(texts(&whole), ["{\"a\":1}", "ünïcode ✓", "bad \u{0}", "last"]);
    for first in 0..=input.len() {
        for second in first..=input.len() {
            let chunks = [&input[..first], &input[first..second], &input[second..]];
            assert_eq!(assemble(&chunks, 64), whole, "cut at {first} and {second}");
        }
    }
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    assert_eq!(texts(&assemble(&[b"a\xffb\n"], 64)), ["a\u{fffd}b"]);
}

#[test]
fn a_line_over_the_cap_is_thrown_away_and_counted_and_the_next_one_is_whole() {
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\"{}\"}}\nnext\n", "x".repeat(5000));
    let expected = assemble(&[long.as_bytes()], 100);
    assert_eq!(expected[0].oversized, Some((long.len() as u64 - 6, true)));
    assert_eq!(texts(&expected), ["next"]);
    for size in [1, 7, 99, 100, 101, 1024, 4096] {
        let chunks: Vec<&[u8]> = long.as_bytes().chunks(size).collect();
        assert_eq!(assemble(&chunks, 100), expected, "chunks of {size}");
    }
}

#[test]
fn a_line_of_exactly_the_cap_is_kept() {
    assert_eq!(texts(&assemble(&[b"12345\n"], 5)), ["12345"]);
    assert!(texts(&assemble(&[b"123456\n"], 5)).is_empty());
}

#[test]
fn a_line_without_end_is_visible_while_it_grows() {
    let mut assembler = LineAssembler::new(10);
    assembler.push(b"0123456789", |_| unreachable!());
    assert_eq!(assembler.overrun_bytes(), None);
    assembler.push(b"a", |_| unreachable!());
    assert_eq!(assembler.overrun_bytes(), Some(11));
    assert_eq!(assembler.pending_bytes(), 11);
}

#[test]
fn consumed_points_behind_the_line_end_in_the_current_chunk() {
    let mut assembler = LineAssembler::new(64);
    assert_eq!(assembler.push(b"one", |_| unreachable!()), 0);
    let mut ends = Vec::new();
    assert_eq!(assembler.push(b" two\n\nthree\n\nfour", |line| ends.push(line.consumed)), 13);
    assert_eq!(ends, [5, 12]);
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_cuts(
        input in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'{'), Just(b'"'), any::<u8>()], 0..300),
        cuts in proptest::collection::vec(0_usize..300, 0..6),
        cap in 1_usize..64,
    ) {
        let whole = assemble(&[&input], cap);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(input.len())).collect();
        cuts.sort_unstable();
        let mut chunks: Vec<&[u8]> = Vec::new();
        let mut from = 0;
        for cut in cuts {
            chunks.push(&input[from..cut]);
            from = cut;
        }
        chunks.push(&input[from..]);
        prop_assert_eq!(assemble(&chunks, cap), whole);
    }
}
