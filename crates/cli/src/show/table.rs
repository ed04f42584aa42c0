//! Columns.

use std::io;

use unicode_width::UnicodeWidthStr;

use crate::output::Output;
use crate::show::text::{brief, padded, table_columns};

/// Space between two columns.
const GAP: usize = 2;

/// Rows of equally many cells; the last column takes the rest of the line.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: &[&str]) {
        self.rows.push(cells.iter().map(|cell| brief(cell, usize::MAX)).collect());
    }

    pub(crate) fn print(&self, output: &mut Output) -> io::Result<()> {
        for line in self.lines(table_columns()) {
            output.line(&line)?;
        }
        Ok(())
    }

    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let count = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..count).map(width).collect();
        let before_last: usize = widths.iter().take(count.saturating_sub(1)).map(|width| width + GAP).sum();
        // A last column that is squeezed to nothing says less than a line that is too long.
        let last = columns.saturating_sub(before_last).max(20);
        let line = |row: &Vec<String>| {
            let mut line = String::new();
            for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if place + 1 == count {
                    line.push_str(&brief(cell, last));
                } else {
                    line.push_str(&padded(cell, width + GAP));
                }
            }
            line.trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_one_is_cut() {
        let mut table = Table::new(&["ID", "TITLE"]);
        table.row(&["1", "short"]);
        table.row(&["12345", "a title that is far too long for the line"]);
        assert_eq!(table.lines(27), ["ID     TITLE", "1      short", "12345  a title that is far…"]);
    }
}
