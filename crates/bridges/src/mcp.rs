//! The tool server of a session.
//!
//! Protocol: Model Context Protocol, its tools over stdio (<https://modelcontextprotocol.io/specification>). A call is
//! named by the hello that it came after and by its JSON-RPC id, and is repeated under that name until the daemon has
//! decided it, over lost connections and new daemons. The daemon carries it out once.

mod calls;
mod protocol;
mod tools;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use rallypoint_acp::frames::{Line, LineAssembler};
use rallypoint_client::Client;
use rallypoint_model::ids::SessionId;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use calls::Caller;
use protocol::{Reaction, Server};

/// Longest line that is read. The daemon takes less, and says so.
const LINE_BYTES: usize = 4 * 1024 * 1024;
/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// How long a daemon may take to hear that a call is given up, once the input has ended.
const GIVE_UP: Duration = Duration::from_secs(2);

/// Where answers go, whole lines only.
type Output<W> = Arc<Mutex<W>>;

/// Serves the tools of a session until the input ends.
///
/// `client` shows the session's token. Errors are those of reading; what can't be written ends the serving as well,
/// since nobody is there any more.
pub async fn serve<R, W>(mut input: R, output: W, client: Client, session_id: SessionId) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let output: Output<W> = Arc::new(Mutex::new(output));
    let mut serving = Serving {
        server: Server::default(),
        caller: Caller { client, session_id },
        output,
        open: Arc::default(),
    };
    let mut assembler = LineAssembler::new(LINE_BYTES);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let read = input.read(&mut chunk).await?;
        let mut lines = Vec::new();
        let mut keep = |line: Line<'_>| match line {
            Line::Whole(text) => lines.push(Ok(text.into_owned())),
            Line::Oversized { bytes, .. } => lines.push(Err(bytes)),
        };
        if read == 0 {
            assembler.finish(|line| keep(line.line));
        } else {
            assembler.push(chunk.get(..read).unwrap_or_default(), |line| keep(line.line));
        }
        for line in lines {
            serving.take(line).await?;
        }
        if read == 0 {
            serving.give_up().await;
            return Ok(());
        }
    }
}

struct Serving<W> {
    server: Server,
    caller: Caller,
    output: Output<W>,
    /// Calls that are not answered, by their id as JSON text.
    open: Arc<OpenCalls>,
}

/// Taken out before the answer is written, so that an id is free again for whoever has read it.
type OpenCalls = std::sync::Mutex<BTreeMap<String, OpenCall>>;

fn lock(open: &OpenCalls) -> MutexGuard<'_, BTreeMap<String, OpenCall>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

struct OpenCall {
    /// The hello that it came after.
    process: String,
    task: AbortHandle,
}

impl<W: AsyncWrite + Unpin + Send + 'static> Serving<W> {
    async fn take(&mut self, line: Result<String, u64>) -> io::Result<()> {
        let reaction = match line {
            Ok(line) => self.server.take(&line, |id| lock(&self.open).contains_key(id)),
            Err(bytes) => protocol::too_long(bytes, LINE_BYTES),
        };
        match reaction {
            Reaction::Nothing => Ok(()),
            Reaction::Answer(frame) => send(&self.output, &frame).await,
            Reaction::Hello { answer, process, client } => {
                send(&self.output, &answer).await?;
                // Behind the answer: an agent does not get ready later because a daemon is busy.
                let caller = self.caller.clone();
                tokio::spawn(async move { caller.hello(&process, &client).await });
                Ok(())
            }
            Reaction::Call(call) => {
                let (caller, output, id) =
                    (self.caller.clone(), Arc::clone(&self.output), call.id.to_string());
                let process = call.process.clone();
                let (open, key) = (Arc::clone(&self.open), id.clone());
                // Held over the start: the call can't be over before it is in the list.
                let mut all = lock(&self.open);
                let task = tokio::spawn(async move {
                    let frame = caller.carry_out(&call, &output).await;
                    lock(&open).remove(&key);
                    // A reader that is gone ends the server where it reads.
                    let _gone = send(&output, &frame).await;
                });
                all.insert(id, OpenCall { process, task: task.abort_handle() });
                Ok(())
            }
            Reaction::Cancel { process, id } => {
                // Who gives a call up is not answered.
                let given_up = lock(&self.open).remove(&id);
                if let Some(call) = given_up {
                    call.task.abort();
                    let caller = self.caller.clone();
                    tokio::spawn(async move { caller.cancel(&process, &id).await });
                }
                Ok(())
            }
        }
    }

    /// Nobody is there for the answers any more: what waits for a person is withdrawn, if a daemon hears of it soon.
    /// Where none does, the end of the agent's turn or process withdraws it.
    async fn give_up(self) {
        let open = std::mem::take(&mut *lock(&self.open));
        for call in open.values() {
            call.task.abort();
        }
        for (id, call) in open {
            if timeout(GIVE_UP, self.caller.cancel(&call.process, &id)).await.is_err() {
                return;
            }
        }
    }
}

/// Writes one frame.
async fn send<W: AsyncWrite + Unpin>(output: &Mutex<W>, frame: &Value) -> io::Result<()> {
    let mut output = output.lock().await;
    output.write_all(format!("{frame}\n").as_bytes()).await?;
    output.flush().await
}
