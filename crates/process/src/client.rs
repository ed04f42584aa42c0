//! The daemon's side of a shim: launch it, attach to it, speak with it, and find out that it is gone.
//!
//! The socket is the way in and the doorbell; what the agent says is read from the spool. Every wait has a deadline,
//! because the other end may be stopped, swapped out or dead.

mod connection;
mod errors;
mod handle;
mod launch;
mod lock;

pub use crate::client::errors::{AttachError, ControlError, SendError, StartError};
pub use crate::client::handle::{Attached, Doorbell, KillReport, ShimHandle};
pub use crate::client::launch::{LaunchError, launch_shim, launch_shim_with_environment};
pub use crate::client::lock::{RevokeError, RevokeGuard, revoke, shim_is_gone};
