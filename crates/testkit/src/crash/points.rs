//! One crash at one named place, instead of many at any moment.

use std::time::{Duration, Instant};

use anyhow::bail;
use rallypoint_client::Client;
use rallypoint_ops::types::TaskView;
use rallypoint_process::fault_point::{DAEMON_VARIABLE, NOTE_SUFFIX, SHIM_VARIABLE};

use crate::crash::check::{Harm, check_answers, check_orphans, check_shown, check_work};
use crate::crash::{Request, Work};
use crate::daemon_process::DaemonProcess;
use crate::data_folder::DataFolder;
use crate::follower::{Followed, Follower};
use crate::journal::Journal;
use crate::violation::{Rule, Violation};

/// Time in which a point is reached, and afterwards everything comes to its end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// SIGKILL, as the kernel numbers it.
const KILLED: i32 = 9;

/// A place to crash at.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its name, which begins with `shim:` for a point of a shim.
    pub name: &'static str,
    /// The time it is passed that counts.
    pub at: u32,
}

impl Point {
    fn in_shim(&self) -> bool {
        self.name.starts_with("shim:")
    }
}

/// Lets some work come upon a point, starts a daemon again where it died there, and checks what came of the work. An
/// error where the point was never reached.
pub async fn crash_at(
    program: &std::path::Path,
    point: &Point,
    work: Work,
) -> anyhow::Result<Vec<Violation>> {
    let folder = DataFolder::new()?;
    let note = folder.path().join("fault-point");
    let variable = if point.in_shim() { SHIM_VARIABLE } else { DAEMON_VARIABLE };
    let environment = [
        (variable.to_owned(), format!("{}:{}", point.name, point.at)),
        (format!("{variable}{NOTE_SUFFIX}"), note.display().to_string()),
    ];
    let mut requests = [Request::new(program, &folder, "work", work)];
    let mut daemon = DaemonProcess::spawn_with(program, &folder, &environment)?;
    let client = Client::unix(folder.socket());
    let mut follower = Follower::start(&client);
    let give_up = Instant::now() + PATIENCE;
    loop {
        ask(&client, &mut requests).await;
        let died = if point.in_shim() { true } else { daemon.ended_by_signal()? == Some(KILLED) };
        if note.exists() && died {
            break;
        }
        if Instant::now() >= give_up || follower.look(finished) {
            bail!("{}:{} was never passed\n{}", point.name, point.at, daemon.log_tail());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    if !point.in_shim() {
        daemon = DaemonProcess::start(program, &folder, None).await?;
    }
    while requests.iter().any(|request| request.answers.is_empty()) {
        ask(&client, &mut requests).await;
        anyhow::ensure!(Instant::now() < give_up, "the request is never answered");
    }
    let mut violations = Vec::new();
    if !follower.until(PATIENCE, finished).await {
        let open = follower.look(Followed::open_ends).join("; ");
        violations.push(Violation::new(Rule::Ending, format!("there is still: {open}")));
    }
    violations.extend(check_orphans(&folder, &daemon.status().await?));
    daemon.stop().await?;
    let journal = Journal::read(&folder.database())?;
    let harm = if point.in_shim() { Harm::Possible } else { Harm::None };
    violations.extend(check_work(&journal, &requests, harm));
    violations.extend(check_answers(&journal, &requests));
    violations.extend(check_shown(&journal, &follower.finish()));
    Ok(violations)
}

fn finished(followed: &Followed) -> bool {
    !followed.state.tasks.is_empty() && followed.is_quiet()
}

/// Asks for what is not answered, as a client does that never heard whether it arrived.
async fn ask(client: &Client, requests: &mut [Request]) {
    for request in requests.iter_mut().filter(|request| request.answers.is_empty()) {
        if let Ok(view) = client.call::<_, TaskView>("task.create", &request.input).await {
            request.answers.push(view.task_id);
        }
    }
}
