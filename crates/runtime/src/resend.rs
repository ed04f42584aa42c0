//! Fault switches `resend-after-crash` and `resend-repeated`: what a daemon does that sends a prompt again because it
//! is in doubt. Neither is ever done in use; the tests show with them that a second execution would be noticed.

use std::path::Path;

use rallypoint_process::client::ShimHandle;
use rallypoint_process::spool::{RecordKind, SpoolReader};

use crate::faults::Faults;

/// Sends the last prompt that the spool holds once more. Gives the last number that the shim has now.
pub(crate) async fn after_crash(
    faults: Faults,
    folder: &Path,
    handle: &ShimHandle,
    last_input_seq: u64,
) -> Option<u64> {
    if last_input_seq == 0 || !(faults.resend_after_crash || faults.resend_repeated) {
        return None;
    }
    let (mut reader, mut prompt) = (SpoolReader::open(folder, 0).ok()?, None);
    while let Ok(Some(record)) = reader.next() {
        if record.kind == RecordKind::In && String::from_utf8_lossy(&record.bytes).contains("session/prompt")
        {
            prompt = Some(record);
        }
    }
    let prompt = prompt?;
    let seq = if faults.resend_repeated { prompt.seq } else { last_input_seq.saturating_add(1) };
    handle.send(seq, prompt.bytes).await.ok()?;
    Some(seq.max(last_input_seq))
}
