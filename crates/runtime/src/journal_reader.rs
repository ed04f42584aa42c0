//! Reading the journal away from the decider.

use std::sync::{Arc, Mutex, PoisonError};

use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_store::{JournalReader, ReaderSource, StoreError};

/// Readers kept open for the next use.
const KEPT: usize = 4;

/// A few read connections, opened when needed.
#[derive(Clone)]
pub(crate) struct Readers {
    source: ReaderSource,
    kept: Arc<Mutex<Vec<Box<dyn JournalReader>>>>,
}

impl std::fmt::Debug for Readers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Readers").field("kept", &self.kept).finish_non_exhaustive()
    }
}

impl Readers {
    pub(crate) fn new(source: ReaderSource) -> Self {
        Self { source, kept: Arc::default() }
    }

    /// Runs a read on a thread that may block.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn JournalReader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let this = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let kept = this.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let reader = match kept {
                Some(reader) => reader,
                None => (this.source)()?,
            };
            let answer = read(&*reader);
            let mut kept = this.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < KEPT {
                kept.push(reader);
            }
            answer
        })
        .await;
        match done {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(internal(&error.to_string())),
            Err(error) => Err(internal(&error.to_string())),
        }
    }
}

fn internal(message: &str) -> Refusal {
    Refusal {
        code: RefusalCode::Internal,
        message: format!("the store could not be read: {message}"),
        hint: Some("try again; `rally doctor` looks at the data folder".to_owned()),
        retryable: true,
    }
}
