//! The two things the checks need from Markdown: the text under a heading, and the cells of a table row.

/// The lines under `heading` up to the next heading of the same or a higher level, with their numbers.
/// `None` when there is no such heading.
pub(crate) fn section<'a>(text: &'a str, heading: &str) -> Option<Vec<(usize, &'a str)>> {
    let level = heading_level(heading);
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.find(|(_, line)| line.trim_end() == heading)?;
    Some(lines.take_while(|(_, line)| !(1..=level).contains(&heading_level(line))).collect())
}

/// The trimmed cells of a row; `None` when the line is not one. A cell writes a bar of its own as `\|`.
pub(crate) fn table_cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = vec![String::new()];
    let mut previous = ' ';
    for character in inner.chars() {
        match (previous, character) {
            (earlier, '|') if earlier != '\\' => cells.push(String::new()),
            _ => cells.last_mut()?.push(character),
        }
        previous = character;
    }
    Some(cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

/// The number of `#` in front of a heading; zero when the line is none.
fn heading_level(line: &str) -> usize {
    let level = line.chars().take_while(|&character| character == '#').count();
    if line.chars().nth(level) == Some(' ') { level } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_level() {
        let text = "# Title\n## One\na\n### Inner\nb\n#no heading\n## Two\nc\n";
        assert_eq!(
            section(text, "## One"),
            Some(vec![(3, "a"), (4, "### Inner"), (5, "b"), (6, "#no heading")])
        );
        assert_eq!(section(text, "## Two"), Some(vec![(8, "c")]));
        assert_eq!(section(text, "## Three"), None);
    }

    #[test]
    fn cells_are_trimmed_and_may_hold_an_escaped_bar() {
        assert_eq!(table_cells("| 1 | a \\| b | |"), Some(vec!["1".into(), "a \\| b".into(), String::new()]));
        assert_eq!(table_cells("no row"), None);
    }
}
