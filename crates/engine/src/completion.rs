//! Reading a completion report out of a worker's last words.

use rallypoint_model::completion::CompletionReport;

/// What the last words hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// No report.
    Absent,
    /// A report.
    Report(CompletionReport),
    /// Something that was meant as one and can't be read.
    Invalid(String),
}

/// Finds the last fenced `json` block, or takes the whole text when it is one object.
pub fn parse(text: &str) -> Found {
    if let Some(block) = last_json_fence(text) {
        return read(block);
    }
    let trimmed = text.trim();
    if trimmed.starts_with('{') && trimmed.ends_with('}') {
        // A bare object that has none of the report's keys is an answer, not a report.
        return match read(trimmed) {
            Found::Invalid(_) if !trimmed.contains("\"diffSummary\"") => Found::Absent,
            found => found,
        };
    }
    Found::Absent
}

fn read(text: &str) -> Found {
    match serde_json::from_str::<CompletionReport>(text) {
        Ok(report) => Found::Report(report),
        Err(error) => Found::Invalid(error.to_string()),
    }
}

fn last_json_fence(text: &str) -> Option<&str> {
    let mut found = None;
    let mut open: Option<(usize, bool)> = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some(info) = trimmed.strip_prefix("```") {
            match open {
                None => open = Some((offset + line.len(), info.trim().eq_ignore_ascii_case("json"))),
                Some((start, is_json)) => {
                    if is_json {
                        found = text.get(start..offset);
                    }
                    open = None;
                }
            }
        }
        offset += line.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use rallypoint_model::completion::ReportedStatus;

    const REPORT: &str = r#"{"diffSummary":"one file","filesChanged":["a"],"testResults":[],"acceptanceCriteriaStatus":[],"residualRisks":[]}"#;

    #[test]
    fn the_last_fence_wins() {
        let text = format!("x\n```json\n{{\"no\":1}}\n```\ny\n```json\n{REPORT}\n```\n");
        let Found::Report(report) = parse(&text) else { panic!("no report") };
        assert_eq!(report.status, ReportedStatus::Completed);
        assert_eq!(report.files_changed, ["a"]);
    }

    #[test]
    fn a_fence_that_is_not_json_is_invalid_not_absent() {
        assert!(matches!(parse("```json\nnope\n```"), Found::Invalid(_)));
    }

    #[test]
    fn no_fence_is_absent_and_a_bare_answer_object_too() {
        assert_eq!(parse("all done"), Found::Absent);
        assert_eq!(parse("{\"answer\": 42}"), Found::Absent);
        assert!(matches!(parse(REPORT), Found::Report(_)));
    }

    #[test]
    fn fences_of_other_languages_are_ignored() {
        assert_eq!(parse("```sh\necho {}\n```"), Found::Absent);
    }
}
