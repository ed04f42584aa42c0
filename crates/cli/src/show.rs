//! How things look to a person.
//!
//! Words first, decoration never without them. What agents wrote passes [`text`] before it reaches a terminal.

pub(crate) mod live;
pub(crate) mod narrator;
pub(crate) mod table;
pub(crate) mod task_view;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod timeline;
pub(crate) mod usage;
pub(crate) mod words;
