//! No file of the repository depends on, or tells about, the machine on which it was written.
//!
//! Looks for folders under a home, the administrator's home and a bare work folder, in every text file. The
//! needles are put together from halves, so that this file does not hold them.

use crate::finding::Finding;
use crate::rust_source::{after, before, line_at};
use crate::tree::{ContentKind, Tree};

const FOLDERS: &[&str] = &[concat!("/ro", "ot/"), concat!("/wo", "rk/")];
const HOMES: &str = concat!("/ho", "me/");

/// Written by other tools, which record what they need.
const SKIPPED: &[&str] = &["Cargo.lock"];

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files() {
        if file.kind == ContentKind::Binary || SKIPPED.contains(&file.path.as_str()) {
            continue;
        }
        for (offset, path) in paths_in(&file.text) {
            findings.push(Finding::at_line(
                &file.path,
                line_at(&file.text, offset),
                format!("a path of one machine: `{path}`"),
                "use a relative path, a temporary folder, or a made-up place such as `/srv/example`",
            ));
        }
    }
    findings
}

fn paths_in(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let offsets = text.match_indices(folder).map(|(offset, _)| offset);
        found.extend(
            offsets.filter(|&offset| starts_path(text, offset)).map(|offset| (offset, (*folder).to_owned())),
        );
    }
    for (offset, _) in text.match_indices(HOMES) {
        let rest = after(text, offset + HOMES.len());
        let name: String = rest.chars().take_while(|&character| is_name_char(character)).collect();
        let is_folder = after(rest, name.len()).starts_with('/');
        if starts_path(text, offset) && !name.is_empty() && is_folder {
            found.push((offset, format!("{HOMES}{name}/")));
        }
    }
    found.sort_unstable();
    found
}

/// Whether the slash at `offset` begins a path, and does not go on with one (`src/…`, `{root}/…`, `~/…`).
fn starts_path(text: &str, offset: usize) -> bool {
    let goes_on = |character: char| is_name_char(character) || "~/})>*]".contains(character);
    !before(text, offset).chars().next_back().is_some_and(goes_on)
}

fn is_name_char(character: char) -> bool {
    character.is_alphanumeric() || "._-$".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::headlines;
    use crate::temp_tree::tree_of;

    #[test]
    fn absolute_paths_are_found() {
        let [root, work] = FOLDERS else { panic!("two folders") };
        let text = format!("first\n\"{root}x\" and {work}y\ncwd={HOMES}someone/z\n");
        let tree =
            tree_of(&[("docs/a.md", &text), ("Cargo.lock", &text), ("fixtures/a.bin", &format!("\0{text}"))]);
        assert_eq!(
            headlines(&check(&tree)),
            [
                format!("docs/a.md:2: a path of one machine: `{root}`"),
                format!("docs/a.md:2: a path of one machine: `{work}`"),
                format!("docs/a.md:3: a path of one machine: `{HOMES}someone/`"),
            ]
        );
    }

    #[test]
    fn relative_paths_and_placeholders_pass() {
        let [root, work] = FOLDERS else { panic!("two folders") };
        let text = format!(
            "src{work}a {{root}}{work}b ~{root}c <dir>{work}d {HOMES}<name>/e {HOMES}{{name}}/f $HOME{work}g\n"
        );
        assert_eq!(check(&tree_of(&[("docs/a.md", &text)])), []);
    }
}
