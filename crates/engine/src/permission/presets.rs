//! The table of presets: what each decides where no rule says otherwise.

use rallypoint_model::permission::{PermissionDecision, Preset};

/// What a request is, as far as presets tell requests apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// Reads files.
    Read,
    /// Searches files.
    Search,
    /// Thinks.
    Think,
    /// Edits, with every path that it names inside the work folder.
    EditInside,
    /// Edits elsewhere, or does not say where.
    EditOutside,
    /// Moves, with every path that it names inside the work folder.
    MoveInside,
    /// Moves elsewhere, or does not say where.
    MoveOutside,
    /// Deletes, with every path that it names inside the work folder.
    DeleteInside,
    /// Deletes elsewhere, or does not say where.
    DeleteOutside,
    /// Runs a command that a check of its task names, to the letter.
    ExecuteCheck,
    /// Runs a command that can be read and is not known as dangerous.
    ExecutePlain,
    /// Runs a command that is known as dangerous, can't be read, or writes outside the work folder.
    ExecuteRisky,
    /// Fetches something from outside.
    Fetch,
    /// Changes its own mode.
    SwitchMode,
    /// Anything else.
    Other,
}

impl Aspect {
    /// Every aspect, for tables and their tests.
    pub const ALL: [Self; 15] = [
        Self::Read,
        Self::Search,
        Self::Think,
        Self::EditInside,
        Self::EditOutside,
        Self::MoveInside,
        Self::MoveOutside,
        Self::DeleteInside,
        Self::DeleteOutside,
        Self::ExecuteCheck,
        Self::ExecutePlain,
        Self::ExecuteRisky,
        Self::Fetch,
        Self::SwitchMode,
        Self::Other,
    ];

    /// What a person is told.
    pub fn words(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Search => "search",
            Self::Think => "think",
            Self::EditInside => "edit inside the work folder",
            Self::EditOutside => "edit outside the work folder, or without a path",
            Self::MoveInside => "move inside the work folder",
            Self::MoveOutside => "move outside the work folder, or without a path",
            Self::DeleteInside => "delete inside the work folder",
            Self::DeleteOutside => "delete outside the work folder, or without a path",
            Self::ExecuteCheck => "execute a command that a check of the task names",
            Self::ExecutePlain => "execute a plain command",
            Self::ExecuteRisky => "execute a dangerous or unreadable command",
            Self::Fetch => "fetch",
            Self::SwitchMode => "switch mode",
            Self::Other => "a tool of another or unknown kind",
        }
    }
}

/// What a preset decides about an aspect.
pub fn default_of(preset: Preset, aspect: Aspect) -> PermissionDecision {
    use PermissionDecision::{Allow, Ask, Reject};
    let [readonly, verifier, standard, permissive, autonomous] = match aspect {
        Aspect::Read | Aspect::Search | Aspect::Think => [Allow, Allow, Allow, Allow, Allow],
        Aspect::EditInside => [Reject, Reject, Allow, Allow, Allow],
        Aspect::EditOutside => [Reject, Reject, Ask, Ask, Reject],
        Aspect::MoveInside => [Reject, Reject, Ask, Allow, Allow],
        Aspect::MoveOutside => [Reject, Reject, Ask, Ask, Reject],
        Aspect::DeleteInside => [Reject, Reject, Ask, Ask, Allow],
        Aspect::DeleteOutside => [Reject, Reject, Ask, Ask, Reject],
        Aspect::ExecuteCheck => [Reject, Allow, Ask, Allow, Allow],
        Aspect::ExecutePlain => [Reject, Reject, Ask, Allow, Allow],
        Aspect::ExecuteRisky => [Reject, Reject, Ask, Ask, Reject],
        Aspect::Fetch => [Reject, Reject, Ask, Ask, Allow],
        Aspect::SwitchMode | Aspect::Other => [Reject, Reject, Ask, Ask, Reject],
    };
    match preset {
        Preset::Readonly => readonly,
        Preset::Verifier => verifier,
        Preset::Standard => standard,
        Preset::Permissive => permissive,
        Preset::Autonomous => autonomous,
    }
}
