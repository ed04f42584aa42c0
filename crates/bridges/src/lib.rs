//! Front ends that speak to another program over a pair of pipes.
//!
//! [`acp_agent`] is Rallypoint in the place of an editor's agent.
//!
//! [`mcp`] gives an agent our tools: a server of the Model Context Protocol that the agent starts in its session.
//!
//! Everything here is a client of the daemon and holds no rules of its own. A daemon that is gone for a while is waited
//! for, and what was asked of it is asked again under the same name.

pub mod acp_agent;
pub mod mcp;
