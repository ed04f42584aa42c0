//! What the permission preset `standard` decides without a person.
//!
//! Looking, thinking and editing files are let through; running commands,
//! deleting, moving, fetching and everything unknown are asked.

use rallypoint_model::agent_io::ToolCallView;
use rallypoint_model::question::ApprovalOption;

/// What the preset says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Take this option.
    Take(String),
    /// Ask a person.
    Ask,
}

/// Decides a request under `standard`.
pub fn standard(call: &ToolCallView, options: &[ApprovalOption], workdir: &str) -> Decision {
    let harmless = match call.tool_kind.as_deref() {
        Some("read" | "search" | "think") => true,
        Some("edit") => {
            !call.locations.is_empty() && call.locations.iter().all(|path| is_inside(path, workdir))
        }
        _ => false,
    };
    if !harmless {
        return Decision::Ask;
    }
    match option_of_kind(options, "allow_once") {
        Some(option) => Decision::Take(option.option_id.clone()),
        None => Decision::Ask,
    }
}

/// The first option of this kind. Ids and order differ in every agent, kinds don't.
pub fn option_of_kind<'a>(options: &'a [ApprovalOption], kind: &str) -> Option<&'a ApprovalOption> {
    options.iter().find(|option| option.kind == kind)
}

/// Whether a path stays in the work folder, by its text alone: no parent
/// steps, and absolute paths only below the folder.
fn is_inside(path: &str, workdir: &str) -> bool {
    if path.split('/').any(|segment| segment == "..") {
        return false;
    }
    if !path.starts_with('/') {
        return true;
    }
    let base = workdir.trim_end_matches('/');
    path.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: &str, locations: &[&str]) -> ToolCallView {
        ToolCallView {
            tool_call_id: "1".to_owned(),
            title: None,
            tool_kind: Some(kind.to_owned()),
            status: None,
            text: None,
            locations: locations.iter().map(|path| (*path).to_owned()).collect(),
            raw: serde_json::Value::Null,
        }
    }

    fn options() -> Vec<ApprovalOption> {
        [("no", "reject_once"), ("yes", "allow_once")]
            .iter()
            .map(|(id, kind)| ApprovalOption {
                option_id: (*id).to_owned(),
                name: (*id).to_owned(),
                kind: (*kind).to_owned(),
            })
            .collect()
    }

    #[test]
    fn edits_outside_the_work_folder_are_asked() {
        assert_eq!(standard(&call("edit", &["/w/a"]), &options(), "/w"), Decision::Take("yes".to_owned()));
        for path in ["/wx/a", "/etc/passwd", "/w/../etc", "../x"] {
            assert_eq!(standard(&call("edit", &[path]), &options(), "/w"), Decision::Ask, "{path}");
        }
        assert_eq!(standard(&call("edit", &[]), &options(), "/w"), Decision::Ask);
    }

    #[test]
    fn commands_and_unknown_kinds_are_asked() {
        for kind in ["execute", "delete", "move", "fetch", "other", "brand_new"] {
            assert_eq!(standard(&call(kind, &["/w/a"]), &options(), "/w"), Decision::Ask, "{kind}");
        }
    }
}
