//! The agreements about the shape of this repository, one file each.
//!
//! A check takes the tree and returns findings. All of them run, and all findings are shown, so that one run
//! is enough to know what there is to do.

use std::fmt;

use crate::finding::Finding;
use crate::tree::Tree;

mod case_ids;
mod code_map;
mod decisions;
mod dependency_direction;
mod file_length;
mod fixture_secrets;
mod licences;
mod machine_paths;
mod no_mod_rs;
mod rules_table;
mod test_habits;
mod unsafe_code;

type Check = fn(&Tree) -> Vec<Finding>;

const CHECKS: &[(&str, Check)] = &[
    ("dependency direction", dependency_direction::check),
    ("no mod.rs", no_mod_rs::check),
    ("file length", file_length::check),
    ("code map", code_map::check),
    ("licences", licences::check),
    ("fixture secrets", fixture_secrets::check),
    ("machine paths", machine_paths::check),
    ("unsafe code", unsafe_code::check),
    ("test habits", test_habits::check),
    ("rules table", rules_table::check),
    ("decisions", decisions::check),
    ("case ids", case_ids::check),
];

/// What came of one run: the checks that found something, with what they found.
#[derive(Debug)]
pub(crate) struct Report {
    checks: usize,
    broken: Vec<(&'static str, Vec<Finding>)>,
}

impl Report {
    pub(crate) fn is_clean(&self) -> bool {
        self.broken.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, findings) in &self.broken {
            writeln!(formatter, "{name}:")?;
            for finding in findings {
                for line in finding.to_string().lines() {
                    writeln!(formatter, "  {line}")?;
                }
            }
            writeln!(formatter)?;
        }
        let found: usize = self.broken.iter().map(|(_, findings)| findings.len()).sum();
        writeln!(
            formatter,
            "tidy: {} checks, {found} {}",
            self.checks,
            if found == 1 { "finding" } else { "findings" }
        )
    }
}

pub(crate) fn run(tree: &Tree) -> Report {
    let broken = CHECKS
        .iter()
        .map(|(name, check)| (*name, check(tree)))
        .filter(|(_, findings)| !findings.is_empty())
        .collect();
    Report { checks: CHECKS.len(), broken }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_lists_every_finding_under_its_check() {
        let report = Report {
            checks: 3,
            broken: vec![
                ("first", vec![Finding::new("a.rs", "is bad", "make it good")]),
                ("second", vec![Finding::at_line("b.rs", 7, "is worse", "remove it")]),
            ],
        };
        assert_eq!(
            report.to_string(),
            "first:\n  a.rs: is bad\n    hint: make it good\n\n\
             second:\n  b.rs:7: is worse\n    hint: remove it\n\n\
             tidy: 3 checks, 2 findings\n"
        );
        assert!(!report.is_clean());
    }

    #[test]
    fn a_clean_report_is_one_line() {
        let report = Report { checks: 3, broken: Vec::new() };
        assert_eq!(report.to_string(), "tidy: 3 checks, 0 findings\n");
        assert!(report.is_clean());
    }
}
