//! What can be typed about rooms and the messages on their way out of them.

use clap::{Args, Subcommand};
use rallypoint_model::channel::Conversation;
use rallypoint_model::progress::ProgressMode;

#[derive(Debug, Subcommand)]
pub(crate) enum RoomVerb {
    /// List rooms
    List,
    /// Show what was said
    Show {
        /// Id, a part of it that no other room has, or `main`
        #[arg(default_value = "main")]
        room: String,
        /// Only messages of this task
        #[arg(long, value_name = "ID")]
        task: Option<String>,
        /// Messages from before the last reset too
        #[arg(long)]
        all: bool,
        /// Messages at most, the latest ones
        #[arg(long, default_value_t = 200)]
        limit: u32,
    },
    /// Make one, bound to a conversation on a platform or to none
    Create(CreateRoomArguments),
    /// Begin its conversation anew; what was said stays readable with `--all`
    Reset {
        /// Id, a part of it that no other room has, or `main`
        room: String,
    },
    /// Let its conversation hear of work that goes on in another way
    Progress {
        /// Id, a part of it that no other room has, or `main`
        room: String,
        /// `compact`: one post, edited; `threaded`: posts in a thread; `silent`: none
        #[arg(value_parser = progress_mode)]
        mode: ProgressMode,
    },
    /// Say something, or hand in what was said on its platform
    Say(SayArguments),
    /// Look for words in messages
    Search {
        /// What the messages hold
        text: String,
        /// Only in this room
        #[arg(long, value_name = "ID")]
        room: Option<String>,
        /// Messages at most, the latest ones
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
}

/// A new room.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["title", "channel"]))]
pub(crate) struct CreateRoomArguments {
    /// Its title [default: its conversation]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Whether it is for a task, for the peers of one, or for two [default: direct]
    #[arg(long, value_name = "KIND", conflicts_with = "channel", value_parser = clap::builder::PossibleValuesParser::new(["task", "worktree", "direct"]))]
    pub(crate) kind: Option<String>,
    /// Channel of the configuration that its conversation is on
    #[arg(long, value_name = "NAME", requires = "peer")]
    channel: Option<String>,
    /// The chat, channel or person there
    #[arg(long, value_name = "ID", requires = "channel")]
    peer: Option<String>,
    /// The thread or topic there
    #[arg(long, value_name = "ID", requires = "channel")]
    thread: Option<String>,
    /// Which of our accounts there
    #[arg(long, value_name = "ID", requires = "channel")]
    account: Option<String>,
    /// How its conversation hears of work that goes on: compact, threaded or silent [default: compact]
    #[arg(long, value_name = "MODE", value_parser = progress_mode, requires = "channel")]
    pub(crate) progress: Option<ProgressMode>,
}

/// The mode of this name.
pub(crate) fn progress_mode(text: &str) -> Result<ProgressMode, String> {
    ProgressMode::ALL
        .into_iter()
        .find(|mode| mode.as_str() == text)
        .ok_or_else(|| "the modes are compact, threaded and silent".to_owned())
}

impl CreateRoomArguments {
    /// The conversation, when one is named.
    pub(crate) fn conversation(&self) -> Option<Conversation> {
        Some(Conversation {
            channel: self.channel.clone()?,
            account: self.account.clone(),
            peer: self.peer.clone()?,
            thread: self.thread.clone(),
        })
    }
}

/// Something said.
#[derive(Debug, Args)]
pub(crate) struct SayArguments {
    /// Id of the room, a part of it that no other room has, or `main`
    pub(crate) room: String,
    /// The words
    pub(crate) text: String,
    /// Name of the person [default: yours]
    #[arg(long, value_name = "NAME")]
    pub(crate) sender: Option<String>,
    /// The platform's id of the message; the same id is the same message
    #[arg(long, value_name = "ID")]
    pub(crate) platform_message: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeliveryVerb {
    /// List what waits, and what nobody can tell the fate of
    List {
        /// Only of this room
        #[arg(long, value_name = "ID")]
        room: Option<String>,
        /// Those that have arrived or were given up too
        #[arg(long)]
        all: bool,
    },
    /// Show one
    Show {
        /// Id, or a part of it that no other delivery has
        delivery: String,
    },
    /// Send a message again that did not arrive, or that nobody can tell the fate of
    Retry {
        /// Id, or a part of it that no other delivery has
        delivery: String,
    },
    /// Give a message up
    Discard {
        /// Id, or a part of it that no other delivery has
        delivery: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}
