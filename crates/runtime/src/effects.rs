//! Carries out effects: one attendant per generation, one cleaning after it,
//! one round of checks per task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rallypoint_engine::due::{Attendance, Effect};
use rallypoint_model::ids::{DeliveryId, GenerationId, TaskId};
use tokio::sync::{Semaphore, mpsc, watch};

use crate::attendant::{Attending, attend};
use crate::channels::{send, send_progress};
use crate::checks::{end_leftovers, verify};
use crate::cleaning::clean;

/// Something that a worker tells the executor.
enum Done {
    Attended(GenerationId),
    Cleaned(GenerationId),
    Verified(TaskId, u32),
}

struct Executor {
    shared: Attending,
    attendants: BTreeMap<GenerationId, watch::Sender<Attendance>>,
    cleaning: BTreeSet<GenerationId>,
    /// Cleanings that wait for their attendant.
    clean_after: BTreeSet<GenerationId>,
    verifying: BTreeSet<(TaskId, u32)>,
    verifiers: Arc<Semaphore>,
    /// The latest offer of each delivery that was sent from here. An offer that is announced twice is sent once.
    sent: BTreeMap<DeliveryId, u32>,
    /// The latest progress post of each task that was sent from here.
    progress: BTreeMap<TaskId, u32>,
    done: mpsc::UnboundedSender<Done>,
}

/// Runs until the decider is gone.
pub(crate) async fn execute(shared: Attending, mut effects: mpsc::UnboundedReceiver<Vec<Effect>>) {
    end_leftovers(&shared).await;
    let (done, mut finished) = mpsc::unbounded_channel();
    let verifiers = Arc::new(Semaphore::new(shared.limits.lane_verifier.max(1) as usize));
    let mut executor = Executor {
        shared,
        attendants: BTreeMap::new(),
        cleaning: BTreeSet::new(),
        clean_after: BTreeSet::new(),
        verifying: BTreeSet::new(),
        verifiers,
        sent: BTreeMap::new(),
        progress: BTreeMap::new(),
        done,
    };
    loop {
        tokio::select! {
            batch = effects.recv() => match batch {
                Some(batch) => batch.into_iter().for_each(|effect| executor.effect(effect)),
                None => return,
            },
            Some(what) = finished.recv() => executor.finished(&what),
        }
    }
}

impl Executor {
    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Attend(attendance) => self.attend(attendance),
            Effect::Clean(id) => {
                if self.attendants.contains_key(&id) {
                    self.clean_after.insert(id);
                } else {
                    self.clean(id);
                }
            }
            Effect::Export(id) => {
                // It ends with the daemon, and the next one looks at every task that is over.
                let _ending = self.shared.exports.send(id);
            }
            Effect::Send(sending) => {
                let sent = self.sent.entry(sending.delivery_id).or_default();
                if *sent < sending.offer {
                    *sent = sending.offer;
                    tokio::spawn(send(self.shared.clone(), sending));
                }
            }
            Effect::Progress(offered) => {
                let sent = self.progress.entry(offered.task_id).or_default();
                if *sent < offered.edition {
                    *sent = offered.edition;
                    tokio::spawn(send_progress(self.shared.clone(), offered));
                }
            }
            Effect::Verify(round) => {
                let key = (round.task_id, round.round);
                if !self.verifying.insert(key) {
                    return;
                }
                let (shared, done, verifiers) =
                    (self.shared.clone(), self.done.clone(), Arc::clone(&self.verifiers));
                tokio::spawn(async move {
                    // The semaphore is never closed.
                    let _slot = verifiers.acquire().await;
                    verify(&shared, round).await;
                    let _ending = done.send(Done::Verified(key.0, key.1));
                });
            }
        }
    }

    fn attend(&mut self, attendance: Attendance) {
        let id = attendance.generation_id;
        if let Some(sender) = self.attendants.get(&id) {
            sender.send_replace(attendance);
            return;
        }
        let (sender, wanted) = watch::channel(attendance);
        self.attendants.insert(id, sender);
        let (shared, done) = (self.shared.clone(), self.done.clone());
        tokio::spawn(async move {
            attend(shared, wanted).await;
            let _ending = done.send(Done::Attended(id));
        });
    }

    fn clean(&mut self, id: GenerationId) {
        if !self.cleaning.insert(id) {
            return;
        }
        let (shared, done) = (self.shared.clone(), self.done.clone());
        tokio::spawn(async move {
            clean(&shared, id).await;
            let _ending = done.send(Done::Cleaned(id));
        });
    }

    fn finished(&mut self, what: &Done) {
        match what {
            Done::Attended(id) => {
                self.attendants.remove(id);
                if self.clean_after.remove(id) {
                    self.clean(*id);
                }
            }
            Done::Cleaned(id) => {
                self.cleaning.remove(id);
            }
            Done::Verified(task_id, round) => {
                self.verifying.remove(&(*task_id, *round));
            }
        }
    }
}
