//! What the data folder holds, by part, and what is left over in it.

use std::fs;
use std::path::Path;

use rallypoint_store::{DATABASE_FILE, Holdings, Reader};
use serde_json::json;

use super::{Finding, State};

/// Files looked at in one part; more are told as "at least".
const FILES: usize = 200_000;

/// Bytes of one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    bytes: u64,
    files: usize,
}

impl Size {
    fn words(self) -> String {
        let least = if self.files >= FILES { "at least " } else { "" };
        format!("{least}{}", bytes(self.bytes))
    }
}

pub(super) fn findings(folder: &Path) -> Vec<Finding> {
    let holdings = Reader::open_if_there(&folder.join(DATABASE_FILE))
        .and_then(|reader| reader.map(|reader| reader.holdings()).transpose());
    let mut findings = vec![disk_use(folder, holdings.as_ref().ok().and_then(Option::as_ref))];
    match holdings {
        Ok(None) => {}
        Ok(Some(holdings)) => {
            findings.extend([failed_deletes(&holdings), processes(&holdings), purged(&holdings)]);
        }
        Err(error) => findings.push(
            Finding::new("database", State::Warn, format!("it can't be looked into: {error}"))
                .next("start a daemon of this version once, as `rally task list` does"),
        ),
    }
    findings
}

fn disk_use(folder: &Path, holdings: Option<&Holdings>) -> Finding {
    let mut database = Size::default();
    for suffix in ["", "-wal", "-shm"] {
        let path = folder.join(format!("{DATABASE_FILE}{suffix}"));
        database.bytes += fs::symlink_metadata(path).map_or(0, |file| file.len());
    }
    let part = |name: &str| size_of(&folder.join(name));
    let (spools, transcripts, scratch) = (part("gen"), part("sessions"), part("scratch"));
    let results = holdings.map(|holdings| (holdings.results, holdings.result_bytes));
    let result_words = match results {
        Some((number, size)) => format!("{} in {number} results", bytes(size)),
        None => "results unknown".to_owned(),
    };
    let detail = format!(
        "database {} ({result_words}), spools {}, transcripts {}, scratch {}",
        bytes(database.bytes),
        spools.words(),
        transcripts.words(),
        scratch.words()
    );
    Finding::new("disk use", State::Ok, detail).data(json!({
        "databaseBytes": database.bytes,
        "resultBytes": results.map(|(_, bytes)| bytes),
        "results": results.map(|(number, _)| number),
        "spoolBytes": spools.bytes,
        "transcriptBytes": transcripts.bytes,
        "scratchBytes": scratch.bytes,
    }))
}

/// What a folder holds; links are not followed.
fn size_of(folder: &Path) -> Size {
    let mut size = Size::default();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let real = fs::symlink_metadata(&next).is_ok_and(|metadata| metadata.is_dir());
        let entries = if real { fs::read_dir(&next).into_iter().flatten() } else { continue };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            size.files += 1;
            if size.files >= FILES {
                return size;
            }
            if metadata.is_dir() {
                folders.push(entry.path());
            } else {
                size.bytes = size.bytes.saturating_add(metadata.len());
            }
        }
    }
    size
}

fn failed_deletes(holdings: &Holdings) -> Finding {
    let name = "failed deletes";
    let all = &holdings.failed_deletes;
    let Some(first) = all.first() else { return Finding::new(name, State::Ok, "none").data(json!([])) };
    let detail = match all.as_slice() {
        [_] => format!("`{}`, after {} attempts: {}", first.path, first.attempts, first.reason),
        several => format!(
            "{} things can't be removed, the first is `{}`, after {} attempts: {}",
            several.len(),
            first.path,
            first.attempts,
            first.reason
        ),
    };
    Finding::new(name, State::Warn, detail)
        .next("correct what keeps it there; it is tried again by itself")
        .data(json!(all))
}

fn processes(holdings: &Holdings) -> Finding {
    let name = "left processes";
    let all = &holdings.unclean;
    let data: Vec<_> =
        all.iter().map(|(id, left)| json!({ "generationId": id, "processes": left })).collect();
    let Some((first, _)) = all.first() else {
        return Finding::new(name, State::Ok, "none").data(json!(data));
    };
    let number: u32 = all.iter().map(|(_, left)| *left).sum();
    let detail =
        format!("{number} processes of {} agent starts could not be ended, the first is {first}", all.len());
    Finding::new(name, State::Warn, detail)
        .next("look for them with `ps` and end them by hand")
        .data(json!(data))
}

fn purged(holdings: &Holdings) -> Finding {
    let name = "purged text";
    if holdings.rewrite_due {
        Finding::new(name, State::Warn, "old pages of the database may still hold what was purged")
            .next("start the daemon anew: `rally daemon stop`, then any command")
    } else {
        Finding::new(name, State::Ok, "none is left in the database file")
    }
}

fn bytes(number: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = KIB * 1024;
    match number {
        0..KIB => format!("{number} B"),
        KIB..MIB => format!("{} KiB", number / KIB),
        _ => format!("{} MiB", number / MIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_no_links_and_have_units() {
        let folder = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("big"), vec![0; 10_000]).unwrap();
        fs::create_dir(folder.path().join("deep")).unwrap();
        fs::write(folder.path().join("deep/file"), vec![0; 2048]).unwrap();
        std::os::unix::fs::symlink(other.path(), folder.path().join("link")).unwrap();
        let size = size_of(folder.path());
        assert!((2048..3000).contains(&size.bytes), "{size:?}");
        assert_eq!(size_of(&folder.path().join("link")), Size::default());
        assert_eq!((bytes(3), bytes(2048), bytes(5 << 20)), ("3 B".into(), "2 KiB".into(), "5 MiB".into()));
    }

    #[test]
    fn a_folder_without_a_database_has_sizes_only() {
        let folder = tempfile::tempdir().unwrap();
        let found = findings(folder.path());
        assert_eq!(found.len(), 1);
        assert!(found[0].detail.contains("results unknown"), "{}", found[0].detail);
    }
}
