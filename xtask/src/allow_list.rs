//! Short lists of named exceptions: one a line, the name first, then the reason.
//!
//! An exception that no longer applies is a finding too, so that a list can only hold what is needed.

use crate::finding::Finding;
use crate::tree::Tree;

#[derive(Debug)]
pub(crate) struct AllowList {
    path: &'static str,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    line: usize,
    reason: String,
}

impl AllowList {
    /// A list that does not exist is empty.
    pub(crate) fn load(tree: &Tree, path: &'static str) -> Self {
        let text = tree.file(path).map_or("", |file| &file.text);
        let entries = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(line, content)| {
                let (name, reason) = content.split_once(char::is_whitespace).unwrap_or((content, ""));
                Entry { name: name.to_owned(), line, reason: reason.trim().to_owned() }
            })
            .collect();
        Self { path, entries }
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name == name)
    }

    /// What is wrong with the list itself, given the names that needed an exception.
    pub(crate) fn findings(&self, needed: &[String]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for entry in &self.entries {
            if entry.reason.is_empty() {
                findings.push(Finding::at_line(
                    self.path,
                    entry.line,
                    format!("the exception for `{}` has no reason", entry.name),
                    "write the reason after the name, on the same line",
                ));
            }
            if !needed.contains(&entry.name) {
                findings.push(Finding::at_line(
                    self.path,
                    entry.line,
                    format!("the exception for `{}` is not needed", entry.name),
                    "remove the line",
                ));
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    #[test]
    fn exceptions_need_a_reason_and_a_use() {
        let tree = tree_of(&[("list.txt", "# comment\n\nused  because of this\nbare\nstale some reason\n")]);
        let list = AllowList::load(&tree, "list.txt");
        assert!(list.contains("used"));
        assert!(!list.contains("because"));
        assert_eq!(
            headlines(&list.findings(&["used".to_owned(), "bare".to_owned()])),
            [
                "list.txt:4: the exception for `bare` has no reason",
                "list.txt:5: the exception for `stale` is not needed",
            ]
        );
    }
}
