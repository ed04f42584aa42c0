//! The Agent Client Protocol, as far as Rallypoint speaks it.
//!
//! What comes in is read leniently ([`frames`], [`inbound`]): agents in the
//! field send kinds, values and fields that no released schema knows, and
//! strict types would refuse or change them. What goes out is built from the
//! official schema types ([`outbound`]), which are also the test oracle.
//! [`profiles`] says as data how to start and trust each kind of agent program,
//! and [`agent_side`] is the other end of the wire, for programs that are an
//! agent themselves.
//!
//! Nothing here spawns a process, stores anything or reads a clock; only
//! `agent_side` touches the reader and writer that it is handed.

pub mod agent_side;
mod failures;
pub mod frames;
pub mod inbound;
pub mod outbound;
pub mod profiles;
pub mod rpc;
