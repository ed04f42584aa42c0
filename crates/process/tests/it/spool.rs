//! The spool by itself: rolling, removing, torn tails, damage.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rallypoint_process::spool::{
    RecordKind, SpoolError, SpoolReader, SpoolWriter, remove_segments_before, spool_end, unread_bytes,
};
use tempfile::TempDir;

use crate::support::read_all;

/// Small, so that a few records fill it.
const SEGMENT_BYTES: u64 = 100;

fn append(writer: &mut SpoolWriter, text: &str) -> u64 {
    writer.append(RecordKind::Out, 0, 1, text.as_bytes()).unwrap()
}

fn texts(folder: &Path) -> Vec<String> {
    read_all(folder).into_iter().map(|record| String::from_utf8(record.bytes).unwrap()).collect()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn newest(folder: &Path) -> PathBuf {
    segments(folder).pop().unwrap()
}

#[test]
fn segments_roll_and_positions_lead_from_one_to_the_next_and_those_behind_are_removed() {
    let folder = TempDir::new().unwrap();
    let mut writer = SpoolWriter::open(folder.path(), SEGMENT_BYTES).unwrap();
    for number in 0..10 {
        append(&mut writer, &format!("record number {number}"));
    }
    assert!(segments(folder.path()).len() >= 4);
    let records = read_all(folder.path());
    assert_eq!(records.len(), 10);
    assert_eq!(records.last().unwrap().next_position, spool_end(folder.path()).unwrap());
    for (index, record) in records.iter().enumerate() {
        let mut reader = SpoolReader::open(folder.path(), record.position).unwrap();
        assert_eq!(reader.next().unwrap().as_ref(), Some(record), "from its own position");
        let mut reader = SpoolReader::open(folder.path(), record.next_position).unwrap();
        assert_eq!(reader.next().unwrap().as_ref(), records.get(index + 1), "from the stored cursor");
    }
    let cursor = records[5].next_position;
    assert_eq!(unread_bytes(folder.path(), cursor).unwrap(), spool_end(folder.path()).unwrap() - cursor);
    assert!(remove_segments_before(folder.path(), cursor).unwrap() > 0);
    assert_eq!(remove_segments_before(folder.path(), cursor).unwrap(), 0);
    let mut reader = SpoolReader::open(folder.path(), cursor).unwrap();
    assert_eq!(reader.next().unwrap().as_ref(), records.get(6));
    assert!(matches!(SpoolReader::open(folder.path(), 0), Err(SpoolError::Removed { .. })));
    // Even when all is read, the newest stays: the writer is in it.
    remove_segments_before(folder.path(), u64::MAX).unwrap();
    assert_eq!(segments(folder.path()).len(), 1);
}

#[test]
fn a_reader_that_came_first_sees_records_as_they_are_written() {
    let folder = TempDir::new().unwrap();
    let mut reader = SpoolReader::open(folder.path(), 0).unwrap();
    assert_eq!(reader.next().unwrap(), None);
    let mut writer = SpoolWriter::open(folder.path(), SEGMENT_BYTES).unwrap();
    assert_eq!(reader.next().unwrap(), None);
    for number in 0..20 {
        let end = append(&mut writer, &format!("{number}"));
        let record = reader.next().unwrap().unwrap();
        assert_eq!((record.bytes, record.next_position), (format!("{number}").into_bytes(), end));
        assert_eq!(reader.next().unwrap(), None);
    }
    assert!(matches!(
        SpoolReader::open(folder.path(), spool_end(folder.path()).unwrap() + 1),
        Err(SpoolError::BeyondEnd { .. })
    ));
}

#[test]
fn a_torn_tail_is_not_there_yet_and_is_cut_off_when_the_spool_is_opened_for_writing() {
    let whole = TempDir::new().unwrap();
    let mut writer = SpoolWriter::open(whole.path(), 1 << 20).unwrap();
    append(&mut writer, "first");
    let end = append(&mut writer, "second");
    append(&mut writer, "third");
    let bytes = fs::read(newest(whole.path())).unwrap();
    for length in usize::try_from(end).unwrap()..bytes.len() {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(newest(whole.path()).file_name().unwrap()), &bytes[..length]).unwrap();
        assert_eq!(texts(folder.path()), ["first", "second"], "cut at {length}");
        let mut writer = SpoolWriter::open(folder.path(), 1 << 20).unwrap();
        assert_eq!(writer.end(), end);
        append(&mut writer, "again");
        assert_eq!(texts(folder.path()), ["first", "second", "again"]);
    }
}

#[test]
fn zeros_and_a_broken_last_record_count_as_torn_but_not_in_a_final_segment() {
    let folder = TempDir::new().unwrap();
    let mut writer = SpoolWriter::open(folder.path(), 1 << 20).unwrap();
    append(&mut writer, "first");
    OpenOptions::new().append(true).open(newest(folder.path())).unwrap().write_all(&[0; 300]).unwrap();
    assert_eq!(texts(folder.path()), ["first"]);
    let mut writer = SpoolWriter::open(folder.path(), 1 << 20).unwrap();
    let end = append(&mut writer, "last");
    let file = OpenOptions::new().write(true).open(newest(folder.path())).unwrap();
    file.write_all_at(b"!", end - 1).unwrap();
    assert_eq!(texts(folder.path()), ["first"]);
    // With a later segment the same bytes are damage.
    fs::write(folder.path().join(format!("{end:020}.spool")), b"RSPL\x01\0\0\0").unwrap();
    let mut reader = SpoolReader::open(folder.path(), 0).unwrap();
    reader.next().unwrap();
    assert!(matches!(reader.next(), Err(SpoolError::Corrupt { .. })));
}

#[test]
fn damage_in_the_middle_is_an_error_at_its_position_and_stays_one() {
    let folder = TempDir::new().unwrap();
    let mut writer = SpoolWriter::open(folder.path(), 1 << 20).unwrap();
    let first_end = append(&mut writer, "first");
    append(&mut writer, "second");
    append(&mut writer, "third");
    let file = OpenOptions::new().write(true).open(newest(folder.path())).unwrap();
    file.write_all_at(b"!", first_end + 26).unwrap();
    let mut reader = SpoolReader::open(folder.path(), 0).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().bytes, b"first");
    for _ in 0..2 {
        match reader.next() {
            Err(SpoolError::Corrupt { position, .. }) => assert_eq!(position, first_end),
            other => panic!("{other:?}"),
        }
    }
    assert!(SpoolWriter::open(folder.path(), 1 << 20).is_err());
}

#[test]
fn another_format_and_another_file_are_told_apart() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(format!("{:020}.spool", 0));
    fs::write(&path, b"RSPL\x02\0\0\0").unwrap();
    assert!(matches!(
        SpoolReader::open(folder.path(), 0),
        Err(SpoolError::UnsupportedVersion { version: 2, .. })
    ));
    fs::write(&path, b"something else").unwrap();
    assert!(matches!(SpoolReader::open(folder.path(), 0), Err(SpoolError::Corrupt { .. })));
}

#[test]
fn a_record_without_bytes_and_one_larger_than_a_segment_are_kept() {
    let folder = TempDir::new().unwrap();
    let mut writer = SpoolWriter::open(folder.path(), SEGMENT_BYTES).unwrap();
    let large = vec![7; 600_000];
    writer.append(RecordKind::StdinClosed, 0, -5, b"").unwrap();
    writer.append(RecordKind::In, u64::MAX, i64::MIN, &large).unwrap();
    writer.append(RecordKind::Note, 0, 0, b"after").unwrap();
    let records = read_all(folder.path());
    assert_eq!((records[0].kind, records[0].at_ms), (RecordKind::StdinClosed, -5));
    assert_eq!((records[1].seq, records[1].at_ms), (u64::MAX, i64::MIN));
    assert_eq!(records[1].bytes, large);
    assert_eq!(records[2].bytes, b"after");
}

proptest! {
    // Each case is dozens of files.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_appended_over_reopenings_is_read_back(
        pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), any::<bool>()), 0..40),
    ) {
        let folder = TempDir::new().unwrap();
        let mut writer = SpoolWriter::open(folder.path(), 300).unwrap();
        for (bytes, reopen) in &pieces {
            if *reopen {
                writer = SpoolWriter::open(folder.path(), 300).unwrap();
            }
            writer.append(RecordKind::Err, 3, 4, bytes).unwrap();
        }
        let read: Vec<_> = read_all(folder.path()).into_iter().map(|record| record.bytes).collect();
        let written: Vec<_> = pieces.into_iter().map(|(bytes, _)| bytes).collect();
        prop_assert_eq!(read, written);
    }
}

/// Agents outlive an upgrade of the program in shims of the older one, so their spools must stay readable.
#[test]
fn a_spool_of_format_1_is_read_by_every_newer_build() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/spool-format-1");
    let records = read_all(&folder);
    let shape: Vec<(RecordKind, u64)> = records.iter().map(|record| (record.kind, record.seq)).collect();
    assert_eq!(
        shape,
        [
            (RecordKind::Start, 0),
            (RecordKind::In, 1),
            (RecordKind::Out, 0),
            (RecordKind::In, 2),
            (RecordKind::Out, 0),
            (RecordKind::In, 3),
            (RecordKind::Out, 0),
        ]
    );
    assert!(records.iter().all(|record| record.at_ms >= 1_796_000_000_000));
    let asked = String::from_utf8(records.last().unwrap().bytes.clone()).unwrap();
    assert!(asked.contains("session/request_permission"), "{asked}");
}
