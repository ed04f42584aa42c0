//! Completion reports in what an agent says: a block for the machine that a reader has no use for.

use rallypoint_model::completion::CompletionReport;

const OPENING: &str = "```json";
const CLOSING: &str = "```";

/// Where a block begins that has not been closed yet, so that what it is can't be told.
pub(crate) fn open_block(text: &str) -> Option<usize> {
    let mut begin = None;
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        match begin {
            None if line.trim() == OPENING => begin = Some(place),
            Some(_) if line.trim() == CLOSING && line.ends_with('\n') => begin = None,
            _ => {}
        }
        place += line.len();
    }
    begin
}

/// The text without its reports. Other blocks stay.
pub(crate) fn without(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = block_at(rest) {
        let (before, block) = rest.split_at(begin);
        let body = block.get(OPENING.len()..).unwrap_or_default();
        let end = body.find("\n```").map_or(body.len(), |end| end + 1);
        let (inside, after) = body.split_at(end);
        kept.push_str(before);
        let after = after.strip_prefix(CLOSING).unwrap_or(after);
        if serde_json::from_str::<CompletionReport>(inside).is_err() {
            let whole = block.len() - after.len();
            kept.push_str(block.get(..whole).unwrap_or_default());
        }
        rest = after;
    }
    kept.push_str(rest);
    kept
}

fn block_at(text: &str) -> Option<usize> {
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == OPENING {
            return Some(place);
        }
        place += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "```json\n{\"diffSummary\":\"one\",\"filesChanged\":[],\"testResults\":[],\
                          \"acceptanceCriteriaStatus\":[],\"residualRisks\":[]}\n```\n";

    #[test]
    fn a_report_goes_and_other_blocks_stay() {
        assert_eq!(without(&format!("done\n{REPORT}bye\n")), "done\n\nbye\n");
        let other = "see\n```json\n{\"a\": 1}\n```\nand\n```sh\nls\n```\n";
        assert_eq!(without(other), other);
        let cut = "see\n```json\n{\"a\": ";
        assert_eq!(without(cut), cut);
    }

    #[test]
    fn a_block_is_open_until_its_last_line_is_whole() {
        assert_eq!(open_block("a\n```json\n{"), Some(2));
        assert_eq!(open_block("a\n```json\n{}\n```"), Some(2));
        assert_eq!(open_block("a\n```json\n{}\n```\n"), None);
        assert_eq!(open_block("a\n"), None);
    }
}
