//! Sees to one generation: finds or launches its shim, says what waits, reads
//! its spool, and ends it when that is decided.
//!
//! It remembers nothing that matters. After any restart it begins with the
//! committed state and the folder: a shim that lives is attached to, one that
//! is gone is declared gone under the folder's lock.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rallypoint_acp::inbound::{OpenRequest, Peer, PeerState};
use rallypoint_acp::outbound::{Beside, Contents, ToolServer, encode_with};
use rallypoint_acp::rpc::{INTERNAL_ERROR, RpcError};
use rallypoint_engine::due::Attendance;
use rallypoint_engine::state::InputKind;
use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::attachment::AttachmentForm;
use rallypoint_model::command::{Command, Outcome};
use rallypoint_model::ids::{GenerationId, TaskId};
use rallypoint_model::limits::Limits;
use rallypoint_model::refusal::Refusal;
use rallypoint_model::retention::Retention;
use rallypoint_model::session::{GenerationEnd, GenerationStatus, SpoolCursor};
use rallypoint_ops::tools::TOKEN_VARIABLE;
use rallypoint_process::StartSpec;
use rallypoint_process::client::{
    AttachError, Attached, RevokeError, SendError, ShimHandle, StartError, launch_shim_with_environment,
    revoke,
};
use rallypoint_process::fault_point::pass;
use rallypoint_process::spool::{SpoolError, SpoolReader, remove_segments_before, spool_end};
use rallypoint_process::sweep::RUN_MARKER_VARIABLE;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use crate::channels::Channels;
use crate::decider::Decider;
use crate::faults::Faults;
use crate::file_service;
use crate::folders::Folders;
use crate::funnel::SharedRedactor;
use crate::journal_reader::Readers;
use crate::launches::Environments;
use crate::resend;
use crate::session_tokens::SessionTokens;
use crate::spool_items::SpoolItems;

/// Records read before what they say is reported.
const RECORDS_AT_ONCE: usize = 512;
/// Pause after the store did not take a report (a full disk, an overload).
const STORE_PAUSE: Duration = Duration::from_millis(250);
/// Pause before an input is tried again that the shim could not take yet.
const INPUT_PAUSE: Duration = Duration::from_millis(200);
/// Attempts to reach a shim whose lock is held, each bounded by the connection's own deadline.
const ATTACH_ATTEMPTS: u32 = 40;
/// Pause between them.
const ATTACH_PAUSE: Duration = Duration::from_millis(150);
/// Time an agent has to answer that it closed its conversation; its input is closed then, whatever it did.
const CLOSE_GRACE: Duration = Duration::from_secs(1);
/// Time an agent has to leave after its input was closed.
const EOF_GRACE: Duration = Duration::from_secs(2);
/// How often the spool is looked at although the bell did not ring.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);

/// What every attendant needs.
#[derive(Clone, Debug)]
pub(crate) struct Attending {
    pub(crate) decider: Decider,
    pub(crate) folders: Folders,
    pub(crate) program: PathBuf,
    pub(crate) epoch: u64,
    pub(crate) limits: Arc<Limits>,
    pub(crate) redactor: SharedRedactor,
    pub(crate) environments: Environments,
    pub(crate) tokens: SessionTokens,
    pub(crate) faults: Faults,
    pub(crate) shim_environment: Vec<(String, String)>,
    pub(crate) retention: Arc<Retention>,
    pub(crate) exports: mpsc::UnboundedSender<TaskId>,
    pub(crate) channels: Channels,
    pub(crate) readers: Readers,
}

/// How an attendance ends.
enum End {
    /// The exit was read and is in the journal.
    Exited,
    /// It is in the journal as gone.
    Gone,
    /// A newer daemon has it, or this one is ending.
    LetGo,
    /// The connection is gone; look again.
    Reattach,
}

/// Sees to one generation until it has ended.
pub(crate) async fn attend(shared: Attending, wanted: watch::Receiver<Attendance>) {
    let id = wanted.borrow().generation_id;
    // Known before anything of the agent is read, which may show its environment.
    if wanted.borrow().launch.tools {
        shared.redactor.add_seal(id, shared.tokens.seal(id));
    }
    attend_to_end(&shared, wanted).await;
    shared.redactor.forget_seal(id);
}

async fn attend_to_end(shared: &Attending, mut wanted: watch::Receiver<Attendance>) {
    let id = wanted.borrow().generation_id;
    let folder = shared.folders.generation(id);
    loop {
        let attendance = wanted.borrow_and_update().clone();
        let end = match reach(shared, &attendance, &folder).await {
            Reached::Shim(handle, attached) => work(shared, &folder, handle, attached, &mut wanted).await,
            Reached::Gone(end) => declare(shared, &attendance, &folder, end).await,
            Reached::Unreachable => End::Reattach,
            Reached::LetGo => End::LetGo,
        };
        match end {
            End::Exited | End::Gone | End::LetGo => return,
            End::Reattach => sleep(ATTACH_PAUSE).await,
        }
    }
}

enum Reached {
    Shim(ShimHandle, Attached),
    Gone(GenerationEnd),
    Unreachable,
    LetGo,
}

/// Finds the shim, or launches it when nothing of it was ever there.
async fn reach(shared: &Attending, attendance: &Attendance, folder: &Path) -> Reached {
    for _ in 0..ATTACH_ATTEMPTS {
        match ShimHandle::attach(folder, shared.epoch).await {
            Ok((handle, attached)) => return ready_to_work(shared, attendance, handle, attached).await,
            Err(AttachError::Refused { epoch }) => {
                tracing::warn!(epoch, generation = %attendance.generation_id, "a newer daemon has this agent");
                return Reached::LetGo;
            }
            Err(AttachError::NoShim) => {
                let fresh = attendance.status == GenerationStatus::Launching
                    && spool_end(folder).unwrap_or(0) == 0
                    && !folder.join("revoked").exists();
                if fresh {
                    return launch(shared, attendance, folder).await;
                }
                if let Some(end) = revoke_gone(folder).await {
                    return Reached::Gone(end);
                }
            }
            Err(error) => tracing::debug!(%error, "the shim does not answer yet"),
        }
        sleep(ATTACH_PAUSE).await;
    }
    tracing::warn!(generation = %attendance.generation_id, "the shim holds its lock and does not answer");
    // Its lock says that it lives, so nothing may be declared; it is asked again as long as this daemon lives.
    Reached::Unreachable
}

/// Makes sure that no shim of this folder lives or ever will; nothing when one may.
async fn revoke_gone(folder: &Path) -> Option<GenerationEnd> {
    let revoking = folder.to_owned();
    match tokio::task::spawn_blocking(move || revoke(&revoking)).await {
        Ok(Ok(_guard)) => return Some(GenerationEnd::Lost),
        Ok(Err(RevokeError::Held { .. })) => {}
        Ok(Err(RevokeError::Io { source, .. })) if source.kind() == std::io::ErrorKind::NotFound => {
            return Some(GenerationEnd::NeverStarted);
        }
        Ok(Err(error)) => tracing::warn!(%error, "a generation's folder can't be revoked yet"),
        Err(error) => tracing::warn!(%error, "revoking was cut off"),
    }
    None
}

async fn launch(shared: &Attending, attendance: &Attendance, folder: &Path) -> Reached {
    let id = attendance.generation_id;
    if attendance.status == GenerationStatus::Stopping {
        return Reached::Gone(GenerationEnd::NeverStarted);
    }
    if let Err(error) = shared.folders.make_generation(id) {
        return start_failed(format!("its folder can't be made: {error}"));
    }
    pass("attendant:folder-made");
    if let Err(error) = launch_shim_with_environment(&shared.program, folder, &shared.shim_environment) {
        return start_failed(format!("the shim can't be launched: {error}"));
    }
    pass("attendant:launched");
    match ShimHandle::attach_launched(folder, shared.epoch).await {
        Ok((handle, attached)) => ready_to_work(shared, attendance, handle, attached).await,
        Err(AttachError::Refused { .. }) => Reached::LetGo,
        Err(error) => {
            tracing::warn!(%error, generation = %id, "a launched shim can't be reached");
            let revoking = folder.to_owned();
            let revoked = tokio::task::spawn_blocking(move || revoke(&revoking)).await;
            match revoked {
                Ok(Ok(_guard)) => Reached::Gone(GenerationEnd::NeverStarted),
                _ => start_failed(format!("the shim can't be reached: {error}")),
            }
        }
    }
}

/// Starts the agent in a shim that has none yet.
async fn ready_to_work(
    shared: &Attending,
    attendance: &Attendance,
    handle: ShimHandle,
    attached: Attached,
) -> Reached {
    if attached.started.is_some() || attached.exited.is_some() {
        if let Ok(Some(spec)) = handle.recall_start().await {
            // Secrets that only the shim still knows must be known before its spool is read.
            shared.redactor.add(secrets_of(&spec, attendance));
        }
        return Reached::Shim(handle, attached);
    }
    if attendance.status == GenerationStatus::Stopping {
        return Reached::Shim(handle, attached);
    }
    let environment = match shared.environments.of(attendance.task_id, &attendance.launch) {
        Ok(environment) => environment,
        Err(names) => return Reached::Gone(GenerationEnd::EnvironmentLost { names }),
    };
    let spec = StartSpec {
        argv: attendance.launch.argv.clone(),
        env: environment,
        cwd: PathBuf::from(&attendance.cwd),
        hard_deadline_ms: attendance.hard_deadline_ms,
        ownerless_max_ms: shared.limits.shim_ownerless_max_ms,
        spool_max_bytes: shared.limits.spool_max_bytes,
        marker: shared.folders.marker(attendance.generation_id),
    };
    let program = spec.argv.first().cloned().unwrap_or_default();
    pass("attendant:attached");
    match handle.start(spec).await {
        Ok(process) | Err(StartError::AlreadyStarted { process }) => {
            Reached::Shim(handle, Attached { started: Some(process), ..attached })
        }
        Err(StartError::Timeout | StartError::Closed) => {
            // Whether it started is not known; the folder knows.
            let folder = shared.folders.generation(attendance.generation_id);
            match ShimHandle::attach(&folder, shared.epoch).await {
                Ok((handle, attached)) if attached.started.is_some() => Reached::Shim(handle, attached),
                // The shim is gone. Nothing was said to its agent yet, if there was one.
                Err(AttachError::NoShim) => {
                    revoke_gone(&folder).await.map_or(Reached::Unreachable, Reached::Gone)
                }
                _ => start_failed(format!("`{program}` gave no sign of its start")),
            }
        }
        Err(StartError::NotFound { .. }) => start_failed(format!("the program `{program}` was not found")),
        Err(StartError::NotExecutable { .. }) => {
            start_failed(format!("the program `{program}` can't be executed"))
        }
        Err(StartError::BadCwd { .. }) => {
            start_failed(format!("the work folder `{}` can't be entered", attendance.cwd))
        }
        Err(error) => start_failed(error.to_string()),
    }
}

fn secrets_of(spec: &StartSpec, attendance: &Attendance) -> Vec<(String, String)> {
    spec.env.iter().filter(|(name, _)| attendance.launch.secret_names.contains(name)).cloned().collect()
}

fn start_failed(message: String) -> Reached {
    Reached::Gone(GenerationEnd::StartFailed { message })
}

/// Declares a generation gone, after reading what it left.
async fn declare(shared: &Attending, attendance: &Attendance, folder: &Path, end: GenerationEnd) -> End {
    let id = attendance.generation_id;
    let rebooted = shared.folders.rebooted_since(id);
    let mut reading = Reading::new(shared, attendance, folder).await;
    reading.read_all(shared).await;
    if reading.items.exited() {
        return End::Exited;
    }
    let end = match end {
        GenerationEnd::Lost if rebooted => GenerationEnd::Rebooted,
        GenerationEnd::Lost if spool_end(folder).unwrap_or(0) == 0 => GenerationEnd::NeverStarted,
        end => end,
    };
    submit(shared, Command::GenerationGone { generation_id: id, end }).await;
    End::Gone
}

/// The loop over a living shim.
async fn work(
    shared: &Attending,
    folder: &Path,
    handle: ShimHandle,
    attached: Attached,
    wanted: &mut watch::Receiver<Attendance>,
) -> End {
    let attendance = wanted.borrow_and_update().clone();
    let id = attendance.generation_id;
    pass("attendant:started");
    if attendance.status == GenerationStatus::Launching
        && attached.started.is_some()
        && submit(shared, Command::GenerationLaunched { generation_id: id }).await.is_none()
    {
        return End::LetGo;
    }
    let mut reading = Reading::new(shared, &attendance, folder).await;
    let mut sending = Sending { sent: attached.last_input_seq, retry: None };
    if let Some(seq) = resend::after_crash(shared.faults, folder, &handle, attached.last_input_seq).await {
        sending.sent = seq;
    }
    let mut stopping: Option<Stopping> = None;
    let mut close_until: Option<Instant> = None;
    let mut bell = handle.doorbell();
    loop {
        let attendance = wanted.borrow_and_update().clone();
        sending.send(shared, &handle, &attendance, &mut reading.items).await;
        let ring = *bell.borrow_and_update();
        if !reading.pump(shared).await {
            return End::LetGo;
        }
        if reading.items.exited() {
            pass("attendant:exited");
            if !shared.faults.no_sweep {
                finish(&handle).await;
            }
            return End::Exited;
        }
        if ring.closed {
            return End::Reattach;
        }
        if attendance.status == GenerationStatus::Stopping && stopping.is_none() {
            let until = *close_until.get_or_insert_with(|| Instant::now() + CLOSE_GRACE);
            if !reading.items.peer().is_closing() || Instant::now() >= until {
                stopping = Some(Stopping::begin(&handle, attached.started.is_some()).await);
            }
        }
        if let Some(stop) = &mut stopping {
            stop.step(&handle, shared.limits.stop_grace_ms).await;
            if attached.started.is_none() {
                finish(&handle).await;
                submit(
                    shared,
                    Command::GenerationGone { generation_id: id, end: GenerationEnd::NeverStarted },
                )
                .await;
                return End::Gone;
            }
        }
        let wake = [
            reading.items.flush_at(),
            sending.retry,
            stopping.as_ref().map(|stop| stop.next),
            close_until.filter(|_| stopping.is_none()),
            Some(Instant::now() + LOOK_ANYWAY),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or_else(Instant::now);
        tokio::select! {
            rung = bell.changed() => {
                if rung.is_err() {
                    return End::Reattach;
                }
            }
            changed = wanted.changed() => {
                if changed.is_err() {
                    return End::LetGo;
                }
            }
            () = tokio::time::sleep_until(wake.into()) => {}
        }
    }
}

async fn finish(handle: &ShimHandle) {
    if let Err(error) = handle.finish().await {
        // The cleaning that follows looks at what is left.
        tracing::debug!(%error, "the shim did not finish by itself");
    }
}

/// The ladder that ends an agent: input closed, TERM, KILL, each with its time.
struct Stopping {
    rung: u8,
    next: Instant,
}

impl Stopping {
    async fn begin(handle: &ShimHandle, started: bool) -> Self {
        if started && let Err(error) = handle.close_stdin().await {
            tracing::debug!(%error, "an agent's input can't be closed");
        }
        Self { rung: 0, next: Instant::now() + EOF_GRACE }
    }

    async fn step(&mut self, handle: &ShimHandle, grace_ms: i64) {
        if Instant::now() < self.next {
            return;
        }
        let grace = Duration::from_millis(u64::try_from(grace_ms).unwrap_or(0) / 2);
        let done = match self.rung {
            0 => handle.terminate().await,
            _ => handle.kill().await.map(|_| ()),
        };
        if let Err(error) = done {
            tracing::debug!(%error, rung = self.rung, "a rung of the stop ladder failed");
        }
        self.rung = self.rung.saturating_add(1);
        self.next = Instant::now() + grace;
    }
}

/// What was said to the shim.
struct Sending {
    sent: u64,
    retry: Option<Instant>,
}

impl Sending {
    async fn send(
        &mut self,
        shared: &Attending,
        handle: &ShimHandle,
        attendance: &Attendance,
        items: &mut SpoolItems,
    ) {
        self.retry = None;
        for (seq, input) in &attendance.inputs {
            if *seq <= self.sent {
                items.peer().expect(*seq, input);
                continue;
            }
            let Some(beside) = beside(shared, attendance, input).await else {
                self.retry = Some(Instant::now() + STORE_PAUSE);
                return;
            };
            items.peer().expect(*seq, input);
            pass("attendant:sending");
            match handle.send(*seq, encode_with(input, *seq, &beside)).await {
                Ok(()) => {
                    pass("attendant:sent");
                    self.sent = *seq;
                }
                Err(
                    SendError::Exited | SendError::StdinClosed | SendError::NotStarted | SendError::Closed,
                ) => return,
                Err(error) => {
                    tracing::debug!(%error, seq, "an input was not taken yet");
                    self.retry = Some(Instant::now() + INPUT_PAUSE);
                    return;
                }
            }
        }
    }
}

/// What stands beside an input on its line; nothing while the store can't be read.
async fn beside(shared: &Attending, attendance: &Attendance, input: &AgentInput) -> Option<Beside> {
    let contents = contents_of(shared, input).await?;
    let services = attendance.launch.services.clone();
    let file = match input {
        AgentInput::ServeFile { ask, refused: None, .. } => {
            let (ask, cwd) = (ask.clone(), PathBuf::from(&attendance.cwd));
            let most = shared.limits.served_file_bytes;
            let done = tokio::task::spawn_blocking(move || file_service::serve(&ask, &cwd, most)).await;
            Some(done.unwrap_or_else(|error| Err(RpcError::new(INTERNAL_ERROR, error.to_string()))))
        }
        _ => None,
    };
    let tools = attendance.launch.tools.then(|| tool_server(shared, attendance));
    Some(Beside { contents, services, tools, file })
}

/// How the agent starts our tool server. The token goes from here to the wire and nowhere else; the run marker goes
/// along because agents start such servers with an environment of their own making.
fn tool_server(shared: &Attending, attendance: &Attendance) -> ToolServer {
    let id = attendance.generation_id;
    ToolServer {
        program: shared.program.clone(),
        arguments: vec![
            "--data".to_owned(),
            shared.folders.root().display().to_string(),
            "mcp".to_owned(),
            "--session".to_owned(),
            attendance.session_id.to_string(),
        ],
        environment: vec![
            (TOKEN_VARIABLE.to_owned(), shared.tokens.of(id)),
            (RUN_MARKER_VARIABLE.to_owned(), shared.folders.marker(id)),
        ],
    }
}

/// The files that an input refers to; nothing while the store can't be read. What was removed from it is left out.
async fn contents_of(shared: &Attending, input: &AgentInput) -> Option<Contents> {
    let mut contents = Contents::new();
    let AgentInput::Prompt { attachments, .. } = input else { return Some(contents) };
    for file in attachments.iter().filter(|file| file.form != AttachmentForm::Link) {
        let digest = file.attachment.digest.clone();
        match shared.readers.read(move |reader| reader.blob(&digest)).await {
            Ok(Some(bytes)) => {
                contents.insert(file.attachment.digest.clone(), bytes);
            }
            Ok(None) => tracing::warn!(name = %file.attachment.name, "a file of a task is no longer stored"),
            Err(refusal) => {
                tracing::warn!(message = %refusal.message, "a file of a task can't be read yet");
                return None;
            }
        }
    }
    Some(contents)
}

/// The reading side: spool, items, reports.
struct Reading {
    id: GenerationId,
    folder: PathBuf,
    reader: Result<SpoolReader, SpoolError>,
    /// What was last told to be wrong with the spool.
    told: Option<String>,
    /// What is wrong with it now.
    problem: Option<String>,
    items: SpoolItems,
    stored: SpoolCursor,
}

impl Reading {
    async fn new(shared: &Attending, attendance: &Attendance, folder: &Path) -> Self {
        let cursor = committed_cursor(shared, attendance).await;
        let mut state =
            PeerState { agent_session_id: attendance.agent_session_id.clone(), ..PeerState::default() };
        for (seq, kind) in &attendance.kinds {
            let request = match kind {
                InputKind::Initialize => Some(OpenRequest::Initialize),
                InputKind::NewSession => Some(OpenRequest::SessionNew),
                InputKind::LoadSession => Some(OpenRequest::SessionLoad),
                InputKind::Prompt | InputKind::Steer => Some(OpenRequest::Prompt),
                InputKind::Option => Some(OpenRequest::SetOption),
                InputKind::Close => Some(OpenRequest::Close),
                InputKind::Authenticate => Some(OpenRequest::Authenticate),
                InputKind::Other => None,
            };
            if let Some(request) = request {
                state.open.insert(*seq, request);
            }
            state.last_expected = state.last_expected.max(*seq);
        }
        let peer = Peer::new(state, attendance.launch.usage_kind);
        Self {
            id: attendance.generation_id,
            folder: folder.to_owned(),
            reader: SpoolReader::open(folder, cursor.record),
            told: None,
            problem: None,
            items: SpoolItems::new(cursor, peer, shared.limits.line_bytes),
            stored: cursor,
        }
    }

    /// Reads and reports until nothing more is there. False when this daemon is ending.
    async fn pump(&mut self, shared: &Attending) -> bool {
        loop {
            let more = self.read_some();
            self.tell_problem(shared).await;
            let redactor = shared.redactor.current();
            while let Some(report) = self.items.ready(Instant::now(), &redactor) {
                if !self.report(shared, report).await {
                    return false;
                }
            }
            if self.items.cursor_moved(self.stored) {
                let report = self.items.cursor_report();
                if !self.report(shared, report).await {
                    return false;
                }
            }
            if !more {
                return true;
            }
        }
    }

    /// Reads to the end of a spool that nobody writes any more.
    async fn read_all(&mut self, shared: &Attending) {
        if !self.pump(shared).await {
            return;
        }
        // Nothing follows that could complete what was held back.
        let redactor = rallypoint_secrets::Redactor::default();
        let later = Instant::now() + Duration::from_secs(3600);
        while let Some(report) = self.items.ready(later, &redactor) {
            if !self.report(shared, report).await {
                return;
            }
        }
    }

    /// Says once what is wrong with the spool: a run whose agent can't be heard must not only look busy.
    async fn tell_problem(&mut self, shared: &Attending) {
        let Some(why) = self.problem.take().filter(|why| self.told.as_ref() != Some(why)) else { return };
        tracing::error!(why, generation = %self.id, "the spool can't be read on");
        self.told = Some(why.clone());
        submit(shared, Command::SpoolUnreadable { generation_id: self.id, why }).await;
    }

    fn read_some(&mut self) -> bool {
        if self.reader.is_err() {
            self.reader = SpoolReader::open(&self.folder, self.stored.record);
        }
        let reader = match &mut self.reader {
            Ok(reader) => reader,
            Err(error) => {
                self.problem = unreadable(error);
                return false;
            }
        };
        let now = Instant::now();
        for _ in 0..RECORDS_AT_ONCE {
            match reader.next() {
                Ok(Some(record)) => self.items.take(&record, now),
                Ok(None) => return false,
                Err(error) => {
                    self.problem = unreadable(&error);
                    return false;
                }
            }
        }
        true
    }

    async fn report(&mut self, shared: &Attending, report: rallypoint_model::agent_io::AgentReport) -> bool {
        let cursor = report.cursor;
        let command = Command::AgentReported { generation_id: self.id, report };
        if submit(shared, command).await.is_none() {
            return false;
        }
        pass("attendant:reported");
        self.stored = cursor;
        let (folder, record) = (self.folder.clone(), cursor.record);
        if let Err(error) = remove_segments_before(&folder, record) {
            tracing::debug!(%error, "an understood spool segment can't be removed yet");
        }
        true
    }
}

/// What is wrong with the bytes of a spool. Anything else, such as a file that is not there yet, passes by itself.
fn unreadable(error: &SpoolError) -> Option<String> {
    match error {
        SpoolError::UnsupportedVersion { .. } | SpoolError::Corrupt { .. } => Some(error.to_string()),
        other => {
            tracing::debug!(error = %other, "the spool can't be read on yet");
            None
        }
    }
}

/// Up to where the spool is understood. The attendance may be older: a cursor that moves asks for no effect, and text
/// that is read again from before it would be joined with what follows and stored twice.
async fn committed_cursor(shared: &Attending, attendance: &Attendance) -> SpoolCursor {
    let id = attendance.generation_id;
    let known =
        shared.decider.look(move |state| state.generations.get(&id).map(|generation| generation.cursor));
    known.await.ok().flatten().unwrap_or(attendance.cursor)
}

/// Has a command decided, again and again while the store can't take it.
/// `None` when the daemon is ending.
pub(crate) async fn submit(shared: &Attending, command: Command) -> Option<Outcome> {
    loop {
        match shared.decider.decide(command.clone()).await {
            Ok(outcome) => return Some(outcome),
            Err(Refusal { retryable: true, message, .. }) if message != "the daemon is ending" => {
                tracing::warn!(%message, "what an agent did can't be stored yet");
                sleep(STORE_PAUSE).await;
            }
            Err(_) => return None,
        }
    }
}
