//! The one registry of operations.
//!
//! Each thing that a person or agent can do is declared here once: name, types
//! with schema, role, method and path, command line verb. Front ends are
//! generated from it or checked against it. Handlers live elsewhere.

pub mod overview;
pub mod phrases;
pub mod policy;
pub mod problem;
pub mod registry;
pub mod rooms;
pub mod search;
pub mod steering;
pub mod tools;
pub mod trees;
pub mod types;

pub use problem::{Problem, ProblemBody};
pub use registry::{Delivery, Method, OPERATIONS, Operation, Role};
