//! `rally serve`: the daemon in this process.

use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rallypoint_client::Client;
use rallypoint_runtime::{Daemon, DaemonOptions, OpenError};
use rallypoint_server::{SOCKET_NAME, ServeOptions, serve};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};
use tracing_subscriber::EnvFilter;

use crate::arguments::ServeArguments;
use crate::autostart::{LOCKED, own_program};
use crate::data_folder;
use crate::failure::Failure;
use crate::open;
use crate::output::Output;

/// Time between two looks at whether the data folder is still there.
const FOLDER_LOOK: Duration = Duration::from_secs(2);
/// Time that agents get to end with the daemon of a throw-away folder. Their shims force them after seconds.
const END_DEADLINE: Duration = Duration::from_secs(20);
/// Time between two looks at whether they have.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Time between two looks at whether the socket answers, until it does.
const READY_LOOK: Duration = Duration::from_millis(5);

pub(crate) async fn carry_out(
    arguments: ServeArguments,
    data: Option<&Path>,
    output: &mut Output,
) -> Result<u8, Failure> {
    if arguments.detached {
        // A Ctrl-C in the terminal of the command that starts it is not meant for it. It fails only where it leads
        // a session or group already, which is as good.
        let _ = rustix::process::setsid();
    }
    if let Some(address) = arguments.listen.filter(|address| address.port() == 0) {
        return Err(
            Failure::usage(format!("`{address}` names no port")).with_hint("choose one, such as 4747")
        );
    }
    if arguments.ephemeral && data.is_some() {
        return Err(
            Failure::usage("`--ephemeral` and `--data` contradict each other").with_hint("leave one out")
        );
    }
    start_log();
    // Removed when it is dropped, at the end of this function.
    let throw_away = if arguments.ephemeral {
        Some(tempfile::Builder::new().prefix("rally-").tempdir().map_err(no_folder)?)
    } else {
        None
    };
    let data_folder = match &throw_away {
        Some(folder) => folder.path().to_owned(),
        None => data_folder::resolve(data, |name| std::env::var_os(name))?,
    };
    let daemon = Daemon::open(DaemonOptions {
        data_folder: data_folder.clone(),
        program: own_program()?,
        ends_when_idle: arguments.idle_exit,
    })
    .await
    .map_err(|error| cannot_open(&error))?;
    stop_on_signals(&daemon, throw_away.is_some())?;
    stop_without_folder(&daemon, &data_folder);
    let options = ServeOptions { data_folder: data_folder.clone(), listen: arguments.listen };
    let serving = serve(daemon, options);
    // It calls what is being served, so both go on at the same time.
    let saying = async {
        ready(&data_folder).await;
        say_ready(&arguments, &data_folder, output).await
    };
    tokio::pin!(serving, saying);
    tokio::select! {
        ended = &mut serving => ended.map_err(cannot_serve)?,
        said = &mut saying => {
            said?;
            serving.await.map_err(cannot_serve)?;
        }
    }
    Ok(0)
}

fn start_log() {
    let filter = EnvFilter::try_from_env("RALLY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .try_init();
    // It fails only when a log is there already, which is as good.
    drop(started);
}

fn no_folder(error: std::io::Error) -> Failure {
    Failure::failed(format!("a throw-away data folder can't be made: {error}"))
        .with_hint("`TMPDIR` says where temporary folders go")
}

fn cannot_open(error: &OpenError) -> Failure {
    let (code, hint) = match error {
        // A code of its own: the command that started it tells a lost race by this.
        OpenError::Locked { .. } => {
            (LOCKED, "`rally daemon status` shows the other one, `rally daemon stop` ends it".to_owned())
        }
        OpenError::Folder { .. } => {
            (1, "name a folder that can be written with `--data DIR` or `RALLY_HOME`".to_owned())
        }
        OpenError::Store { folder, .. } => {
            (1, format!("keep a copy of `{}`, then try an empty folder with `--data DIR`", folder.display()))
        }
        OpenError::Config { .. } => (1, "correct `rally.toml` in the data folder".to_owned()),
    };
    Failure::with_code(code, error.to_string().trim_end()).with_hint(hint)
}

fn cannot_serve(error: rallypoint_server::ServeError) -> Failure {
    let hint = match &error {
        rallypoint_server::ServeError::NotLoopback { .. } => "use an address such as 127.0.0.1:4747",
        rallypoint_server::ServeError::Listen { .. } => {
            "another program may use the port; choose another one"
        }
        rallypoint_server::ServeError::Token { .. } => {
            "the file must be readable by its owner; when it is removed, a new one is made"
        }
        rallypoint_server::ServeError::Socket { .. } => {
            "the data folder must be on a file system that takes sockets"
        }
        rallypoint_server::ServeError::Accept(_) => "start it again",
    };
    Failure::failed(error.to_string()).with_hint(hint)
}

fn stop_on_signals(daemon: &Daemon, end_work: bool) -> Result<(), Failure> {
    let listen =
        |kind| signal(kind).map_err(|error| Failure::failed(format!("signals can't be taken: {error}")));
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let daemon = daemon.clone();
    tokio::spawn(async move {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!("ending after {name}");
        if end_work {
            end_all_work(&daemon).await;
        }
        daemon.request_stop();
    });
    Ok(())
}

/// Agents outlive a daemon so that the next one finds them. For a throw-away folder there is no next one.
async fn end_all_work(daemon: &Daemon) {
    let tasks = daemon.call("task.list", json!({})).await.unwrap_or_default();
    let items = tasks.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    for task in items.iter().filter_map(|item| item.get("taskId")) {
        // A task that has ended refuses it, which is as good.
        drop(daemon.call("task.stop", json!({ "taskId": task, "by": "the end of the daemon" })).await);
    }
    let deadline = Instant::now() + END_DEADLINE;
    while Instant::now() < deadline {
        let status = daemon.call("daemon.status", json!({})).await.unwrap_or_default();
        if status.get("generations").and_then(Value::as_u64).unwrap_or(0) == 0 {
            return;
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// A daemon whose folder is gone serves nobody any more: no command finds it, and what it writes is lost.
fn stop_without_folder(daemon: &Daemon, data_folder: &Path) {
    let folder = data_folder.to_owned();
    let identity = identity_of(&folder);
    let daemon = daemon.clone();
    tokio::spawn(async move {
        while identity_of(&folder) == identity {
            sleep(FOLDER_LOOK).await;
        }
        tracing::warn!("ending, because the data folder `{}` is gone", folder.display());
        daemon.request_stop();
    });
}

fn identity_of(folder: &Path) -> Option<(u64, u64)> {
    folder.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

async fn ready(data_folder: &Path) {
    let socket: PathBuf = data_folder.join(SOCKET_NAME);
    // A socket that can't be reached by its path, because that is too long, is found by the commands all the same.
    while UnixStream::connect(&socket)
        .await
        .is_err_and(|error| error.kind() != std::io::ErrorKind::InvalidInput)
    {
        sleep(READY_LOOK).await;
    }
}

async fn say_ready(
    arguments: &ServeArguments,
    data_folder: &Path,
    output: &mut Output,
) -> Result<(), Failure> {
    if arguments.detached {
        tracing::info!("serving `{}`, version {}", data_folder.display(), env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    // Over the socket, as any command does; the port is opened with the first link.
    let link = if arguments.no_listen {
        None
    } else {
        Some(open::link(&Client::unix(data_folder.join(SOCKET_NAME))).await?)
    };
    let address = link.as_deref().and_then(|link| link.split_once("/open")).map(|(address, _)| address);
    if output.is_json() {
        output.json(&json!({
            "kind": "daemon.ready",
            "dataFolder": data_folder,
            "socket": data_folder.join(SOCKET_NAME),
            "listen": address,
            "open": link,
        }))?;
        return Ok(());
    }
    output.talk(&format!("serving `{}`, Ctrl-C ends it", data_folder.display()));
    if let Some(link) = &link {
        output.talk(&format!("open {link} in a browser; the link works once, `rally open` makes another"));
    }
    if arguments.ephemeral {
        output.talk(&format!("other terminals reach it with `--data {}`", data_folder.display()));
    }
    Ok(())
}
