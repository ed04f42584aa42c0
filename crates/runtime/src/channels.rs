//! The channels of the configuration, and the messages that are brought to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rallypoint_channels::{Outgoing, SigningKey, Sink, Webhook, WebhookError, WebhookTraits};
use rallypoint_engine::due::Sending;
use rallypoint_model::channel::ChannelFacts;
use rallypoint_model::command::Command;
use rallypoint_model::delivery::SinkAnswer;
use rallypoint_model::progress::OfferedProgress;
use rallypoint_process::fault_point::pass;
use serde::Deserialize;

use crate::attendant::{Attending, submit};
use crate::sources::SystemClock;

/// One channel as it is configured: `[channels.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(crate) enum ChannelConfig {
    /// Any program with an HTTP address.
    Webhook {
        /// Its address.
        url: String,
        /// Whether it takes a message of the same `Idempotency-Key` only once.
        #[serde(default)]
        takes_key: bool,
        /// Whether it edits what it has, by the id of its receipt.
        #[serde(default)]
        edits: bool,
        /// Whether it puts a post into a thread under another message.
        #[serde(default)]
        threads: bool,
        /// Variable of the daemon's environment whose value signs what is sent.
        #[serde(default)]
        secret_env: Option<String>,
    },
}

/// Every channel that is configured.
#[derive(Clone, Default)]
pub(crate) struct Channels {
    sinks: BTreeMap<String, Arc<dyn Sink>>,
    problems: BTreeMap<String, String>,
    secrets: BTreeMap<String, String>,
}

impl std::fmt::Debug for Channels {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Channels").field("sinks", &self.sinks).finish_non_exhaustive()
    }
}

impl Channels {
    /// Makes the sinks. An address that can't be used is an error of the configuration; a secret that is not set now
    /// holds back that channel alone.
    pub(crate) fn of_config(
        config: &BTreeMap<String, ChannelConfig>,
        patience: Duration,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, (String, WebhookError)> {
        let mut channels = Self::default();
        for (name, ChannelConfig::Webhook { url, takes_key, edits, threads, secret_env }) in config {
            let mut key = None;
            if let Some(secret_env) = secret_env {
                match variable(secret_env).filter(|value| !value.is_empty()) {
                    Some(value) => {
                        key = Some(SigningKey::new(value.as_bytes()));
                        channels.secrets.insert(secret_env.clone(), value);
                    }
                    None => {
                        let problem = format!(
                            "the variable `{secret_env}` of channel `{name}` was not set when the daemon started"
                        );
                        channels.problems.insert(name.clone(), problem);
                    }
                }
            }
            let traits = WebhookTraits { takes_key: *takes_key, edits: *edits, threads: *threads };
            let sink = Webhook::new(url, traits, key, patience).map_err(|error| (name.clone(), error))?;
            channels.sinks.insert(name.clone(), Arc::new(sink));
        }
        Ok(channels)
    }

    /// What the engine has to know of them.
    pub(crate) fn facts(&self) -> BTreeMap<String, ChannelFacts> {
        let facts = |name: &String, sink: &Arc<dyn Sink>| ChannelFacts {
            takes_key: sink.takes_key(),
            edits: sink.edits(),
            threads: sink.threads(),
            problem: self.problems.get(name).cloned(),
        };
        self.sinks.iter().map(|(name, sink)| (name.clone(), facts(name, sink))).collect()
    }

    /// Values that must be known to the redactor, by the names of their variables.
    pub(crate) fn secrets(&self) -> BTreeMap<String, String> {
        self.secrets.clone()
    }
}

/// Brings one message to its sink and hands in what came of it. The offer is committed already.
pub(crate) async fn send(shared: Attending, sending: Sending) {
    let (delivery_id, offer) = (sending.delivery_id, sending.offer);
    pass("channel:offered");
    let answer = bring(&shared, outgoing(sending)).await;
    pass("channel:sent");
    submit(&shared, Command::DeliveryAnswered { delivery_id, offer, answer }).await;
}

/// The same for a progress post.
pub(crate) async fn send_progress(shared: Attending, offered: OfferedProgress) {
    let (task_id, edition) = (offered.task_id, offered.edition);
    pass("progress:offered");
    let answer = bring(&shared, outgoing_progress(offered)).await;
    pass("progress:sent");
    submit(&shared, Command::ProgressAnswered { task_id, edition, answer }).await;
}

async fn bring(shared: &Attending, outgoing: Outgoing) -> SinkAnswer {
    let Some(sink) = shared.channels.sinks.get(&outgoing.conversation.channel).cloned() else {
        return SinkAnswer::Busy { why: "the channel is not configured".to_owned(), retry_after_ms: None };
    };
    // A sink that panics is a sink of which nobody can tell what it did.
    let offered = tokio::spawn(async move { sink.send(outgoing).await });
    offered.await.unwrap_or_else(|error| SinkAnswer::Unknown { why: format!("sending broke off: {error}") })
}

fn outgoing_progress(offered: OfferedProgress) -> Outgoing {
    Outgoing {
        key: offered.key,
        conversation: offered.conversation,
        text: offered.text,
        reply_to: offered.reply_to,
        message_id: offered.message_id,
        room_id: offered.room_id,
        task_id: Some(offered.task_id),
        progress: Some(offered.shape),
        at: SystemClock.now(),
    }
}

fn outgoing(sending: Sending) -> Outgoing {
    Outgoing {
        key: sending.sink_key,
        conversation: sending.conversation,
        text: sending.text,
        reply_to: sending.reply_to,
        message_id: sending.message_id,
        room_id: sending.room_id,
        task_id: sending.task_id,
        progress: None,
        at: SystemClock.now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(text: &str) -> Result<Channels, String> {
        let config: BTreeMap<String, ChannelConfig> =
            toml::from_str(text).map_err(|error| error.to_string())?;
        Channels::of_config(&config, Duration::from_secs(1), |_| None).map_err(|(_, error)| error.to_string())
    }

    #[test]
    fn a_secret_that_is_not_set_holds_back_its_channel_alone() {
        let text = "[one]\nkind = \"webhook\"\nurl = \"http://[::1]:9/\"\ntakesKey = true\n\
                    [two]\nkind = \"webhook\"\nurl = \"http://[::1]:9/\"\nsecretEnv = \"HOOK_SECRET\"\n";
        let facts = channels(text).unwrap().facts();
        assert_eq!(facts["one"], ChannelFacts { takes_key: true, ..ChannelFacts::default() });
        assert!(facts["two"].problem.as_ref().unwrap().contains("HOOK_SECRET"));
    }

    #[test]
    fn what_is_no_channel_is_refused_with_its_reason() {
        for (text, word) in [
            ("[one]\nkind = \"webhook\"\nurl = \"https://example.org/\"\n", "TLS"),
            ("[one]\nkind = \"webhook\"\nurl = \"http://[::1]:9/\"\ntakeskey = true\n", "takeskey"),
            ("[one]\nkind = \"pigeon\"\n", "pigeon"),
            ("[one]\nkind = \"webhook\"\n", "url"),
        ] {
            let error = channels(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
