//! Requests that are carried out once, however often they come.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Place of a request's answer among its rows; decisions are counted from 0.
pub const ANSWER: i64 = -1;

/// What is kept of a request under its key: one decision of it, or its answer. Operational: no part of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRow {
    /// Who asked, and the key that came with it, as `caller|key`.
    pub key: String,
    /// Which decision of it, from 0, or [`ANSWER`].
    pub part: i64,
    /// SHA-256 of operation and input, hex: the same key with another digest is another request.
    pub digest: String,
    /// When it was decided.
    pub at: Timestamp,
    /// What came of it, as JSON.
    pub doc: String,
}
