//! A request for permission as the policy reads it.

use rallypoint_model::agent_io::ToolCallView;
use serde_json::Value;

use super::command_line::CommandLine;
use super::matching::{Place, is_dangerous, place};
use super::presets::Aspect;

/// Kind of a tool, as the protocol names kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// Reads files.
    Read,
    /// Edits files.
    Edit,
    /// Deletes files.
    Delete,
    /// Moves files.
    Move,
    /// Searches.
    Search,
    /// Runs a command.
    Execute,
    /// Thinks.
    Think,
    /// Fetches something from outside.
    Fetch,
    /// Changes the agent's mode.
    SwitchMode,
    /// Anything else, and every kind that is unknown.
    Other,
}

impl ToolKind {
    /// Every kind, for tables and their tests.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Edit,
        Self::Delete,
        Self::Move,
        Self::Search,
        Self::Execute,
        Self::Think,
        Self::Fetch,
        Self::SwitchMode,
        Self::Other,
    ];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::SwitchMode => "switch_mode",
            Self::Other => "other",
        }
    }

    /// The kind of this word; `Other` for one that is not known.
    pub fn of(word: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word).unwrap_or(Self::Other)
    }
}

/// One thing that a request would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Face {
    pub(super) kind: ToolKind,
    /// Whether the command of the request belongs to it.
    pub(super) runs: bool,
}

/// A request, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Paths as they came, of locations and raw input.
    pub paths: Vec<String>,
    /// The command, when there is one.
    pub command: Option<CommandLine>,
    /// Absolute work folder.
    pub workdir: String,
    /// Commands that the checks of the task name.
    pub checks: Vec<String>,
    pub(super) faces: Vec<Face>,
}

impl Request {
    /// Reads a request from its parts.
    pub fn new(kind: &str, paths: Vec<String>, command: Option<CommandLine>, workdir: &str) -> Self {
        let kind = ToolKind::of(kind);
        let mut faces = Vec::new();
        if kind != ToolKind::Execute {
            faces.push(Face { kind, runs: false });
        }
        // An agent may call `cat` a read, and anything else too: what carries a command runs it.
        if kind == ToolKind::Execute || command.is_some() {
            faces.push(Face { kind: ToolKind::Execute, runs: true });
        }
        Self { paths, command, workdir: workdir.to_owned(), checks: Vec::new(), faces }
    }

    /// Reads the tool call of a request.
    pub fn of_call(call: &ToolCallView, workdir: &str) -> Self {
        let mut paths = call.locations.clone();
        let mut commands = Vec::new();
        if let Some(input) = call.raw.get("rawInput") {
            collect(input, 0, &mut paths, &mut commands);
        }
        if let Some(content) = call.raw.get("content").and_then(Value::as_array) {
            let changed = content.iter().filter_map(|block| block.get("path")).filter_map(Value::as_str);
            paths.extend(changed.map(str::to_owned));
        }
        paths.sort();
        paths.dedup();
        let command = joined(commands);
        Self::new(call.tool_kind.as_deref().unwrap_or("other"), paths, command, workdir)
    }

    /// The same request for a task with these checks.
    pub fn with_checks(mut self, checks: Vec<String>) -> Self {
        self.checks = checks;
        self
    }

    /// What a face of it is to a preset.
    pub(super) fn aspect(&self, face: &Face) -> Aspect {
        match face.kind {
            ToolKind::Read => Aspect::Read,
            ToolKind::Search => Aspect::Search,
            ToolKind::Think => Aspect::Think,
            ToolKind::Fetch => Aspect::Fetch,
            ToolKind::SwitchMode => Aspect::SwitchMode,
            ToolKind::Other => Aspect::Other,
            ToolKind::Edit if self.is_inside() => Aspect::EditInside,
            ToolKind::Edit => Aspect::EditOutside,
            ToolKind::Move if self.is_inside() => Aspect::MoveInside,
            ToolKind::Move => Aspect::MoveOutside,
            ToolKind::Delete if self.is_inside() => Aspect::DeleteInside,
            ToolKind::Delete => Aspect::DeleteOutside,
            ToolKind::Execute => self.command_aspect(),
        }
    }

    /// Whether it names paths, all of them inside the work folder.
    fn is_inside(&self) -> bool {
        !self.paths.is_empty() && self.paths.iter().all(|path| self.holds(path))
    }

    fn holds(&self, path: &str) -> bool {
        matches!(place(path, &self.workdir), Place::Inside(_))
    }

    fn command_aspect(&self) -> Aspect {
        let Some(command) = &self.command else { return Aspect::ExecuteRisky };
        let in_folder = self.paths.iter().all(|path| self.holds(path) || is_folder(path, &self.workdir));
        if in_folder && self.checks.iter().any(|check| check.trim() == command.text) {
            return Aspect::ExecuteCheck;
        }
        let writes_inside = command.redirects.iter().all(|file| file == "/dev/null" || self.holds(file));
        if command.hidden.is_some() || !writes_inside || !in_folder || is_dangerous(command, &self.workdir) {
            return Aspect::ExecuteRisky;
        }
        Aspect::ExecutePlain
    }
}

fn is_folder(path: &str, workdir: &str) -> bool {
    path == "." || path.trim_end_matches('/') == workdir.trim_end_matches('/')
}

/// How deep raw input is looked through.
const DEPTH: usize = 6;

/// Gathers what raw input calls paths and commands.
fn collect(value: &Value, depth: usize, paths: &mut Vec<String>, commands: &mut Vec<CommandLine>) {
    if depth > DEPTH {
        return;
    }
    match value {
        Value::Object(object) => {
            let arguments = object.iter().find_map(|(name, value)| match value {
                Value::Array(items) if matches!(&*name.to_ascii_lowercase(), "args" | "arguments") => {
                    Some(items)
                }
                _ => None,
            });
            let sets_variables = object.iter().any(|(name, value)| {
                let empty = match value {
                    Value::Object(members) => members.is_empty(),
                    Value::Array(items) => items.is_empty(),
                    Value::Null => true,
                    Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
                };
                !empty && matches!(&*name.to_ascii_lowercase(), "env" | "environment" | "envs")
            });
            for (name, value) in object {
                let name = name.to_ascii_lowercase();
                if matches!(name.as_str(), "command" | "cmd" | "script") {
                    let command = match arguments {
                        Some(arguments) if !arguments.is_empty() => {
                            CommandLine::with_arguments(value, arguments)
                        }
                        _ => CommandLine::of_value(value),
                    };
                    commands.extend(match command {
                        Some(command) if sets_variables => Some(command.with_variables()),
                        command => command,
                    });
                } else if names_path(&name) {
                    paths.extend(texts(value));
                } else if name == "changes"
                    && let Value::Object(files) = value
                {
                    paths.extend(files.keys().cloned());
                }
                if value.is_object() || value.is_array() {
                    collect(value, depth.saturating_add(1), paths, commands);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                collect(item, depth.saturating_add(1), paths, commands);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn names_path(name: &str) -> bool {
    let words =
        ["path", "paths", "file", "files", "filename", "cwd", "workdir", "dir", "directory", "folder"];
    let endings = ["path", "paths", "file", "files", "filename", "directory", "folder", "uri"];
    words.contains(&name)
        || (endings.iter().any(|ending| name.ends_with(ending)) && name != "profile")
        || matches!(name, "source" | "destination" | "dest" | "target" | "from" | "to")
}

/// Texts that may be paths: of one line.
fn texts(value: &Value) -> Vec<String> {
    let one = |value: &Value| value.as_str().filter(|text| !text.contains('\n')).map(str::to_owned);
    match value {
        Value::Array(items) => items.iter().filter_map(one).collect(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            one(value).into_iter().collect()
        }
    }
}

/// Several commands of one call are one compound command.
fn joined(commands: Vec<CommandLine>) -> Option<CommandLine> {
    let mut commands = commands.into_iter();
    let mut all = commands.next()?;
    for more in commands {
        if more == all {
            continue;
        }
        all.text = format!("{}\n{}", all.text, more.text);
        all.parts.extend(more.parts);
        all.redirects.extend(more.redirects);
        all.expands |= more.expands;
        all.redirected |= more.redirected;
        all.hidden = all.hidden.or(more.hidden);
    }
    Some(all)
}
