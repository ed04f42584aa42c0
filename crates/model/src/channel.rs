//! Conversations on platforms.

use serde::{Deserialize, Serialize};

/// One place on a platform, as one value: no part of it is ever taken from somewhere else.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Conversation {
    /// Name of the channel in the configuration.
    pub channel: String,
    /// Which of our accounts there, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The chat, channel or person there, in the platform's own words.
    pub peer: String,
    /// The thread or topic; the conversation itself when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl Conversation {
    /// The same without blanks around its parts and without empty parts; `None` where channel or peer is empty.
    /// The parts stay texts as they came: `42` and `042` are two threads.
    pub fn normalised(&self) -> Option<Self> {
        let part = |text: &str| Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        Some(Self {
            channel: part(&self.channel)?,
            account: self.account.as_deref().and_then(part),
            peer: part(&self.peer)?,
            thread: self.thread.as_deref().and_then(part),
        })
    }

    /// One line for people: `channel/account peer #thread`.
    pub fn words(&self) -> String {
        let mut words = self.channel.clone();
        if let Some(account) = &self.account {
            words.push('/');
            words.push_str(account);
        }
        words.push(' ');
        words.push_str(&self.peer);
        if let Some(thread) = &self.thread {
            words.push_str(" #");
            words.push_str(thread);
        }
        words
    }
}

/// What is known of a configured channel. Operational: it is read at each start and is no fact of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelFacts {
    /// Whether it takes our key, so that the same message may be offered again.
    pub takes_key: bool,
    /// Whether a post of ours can be edited there.
    pub edits: bool,
    /// Whether a message there can have a thread under it.
    pub threads: bool,
    /// Why nothing can be sent there now, such as a secret that is not set.
    pub problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(peer: &str, thread: Option<&str>) -> Conversation {
        Conversation {
            channel: " hook ".to_owned(),
            account: Some("  ".to_owned()),
            peer: peer.to_owned(),
            thread: thread.map(str::to_owned),
        }
    }

    #[test]
    fn blanks_are_no_parts_and_thread_numbers_stay_texts() {
        let clean = conversation(" room ", Some(" 042 ")).normalised().unwrap();
        assert_eq!(clean.words(), "hook room #042");
        assert_eq!(clean.account, None);
        assert_eq!(conversation("room", Some(" ")).normalised().unwrap().thread, None);
        assert_eq!(conversation(" ", None).normalised(), None);
    }
}
