//! The registry as data: what palettes, menus and other front ends are made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::phrases::phrases_of;
use crate::registry::{Delivery, Method, OPERATIONS, Operation, Role};

/// One operation, for front ends that are made from the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationView {
    /// Stable name, `resource.verb`.
    pub name: String,
    /// One line for people, in English.
    pub summary: String,
    /// Under which translations of the line stand.
    pub message_id: String,
    /// Who may: `viewer`, `operator` or `admin`.
    pub role: String,
    /// Whether it destroys something, so that front ends ask first.
    pub destructive: bool,
    /// HTTP method.
    pub method: String,
    /// HTTP path; `{name}` is a field of the input.
    pub path: String,
    /// Whether the answer is a stream of events.
    pub streams: bool,
    /// Words after `rally` that reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cli: Option<String>,
    /// What is typed in chat for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slash: Option<String>,
    /// Words that mean it.
    pub phrases: Vec<String>,
}

/// Every operation there is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationList {
    /// The rows, by name.
    pub items: Vec<OperationView>,
}

/// The registry as data.
pub fn operations() -> OperationList {
    let mut items: Vec<OperationView> = OPERATIONS.iter().map(view).collect();
    items.sort_by(|one, other| one.name.cmp(&other.name));
    OperationList { items }
}

fn view(operation: &Operation) -> OperationView {
    OperationView {
        name: operation.name.to_owned(),
        summary: operation.summary.to_owned(),
        message_id: operation.message_id(),
        role: operation.role.as_str().to_owned(),
        destructive: operation.destructive,
        method: operation.method.as_str().to_owned(),
        path: operation.path.to_owned(),
        streams: operation.delivery == Delivery::Stream,
        cli: operation.cli.map(str::to_owned),
        slash: operation.slash(),
        phrases: phrases_of(operation.name).iter().map(|phrase| (*phrase).to_owned()).collect(),
    }
}

impl Operation {
    /// What is typed in chat for it: the words of the command line behind a slash. What belongs to the terminal alone
    /// (`run` follows its task, `daemon` ends what answers) has none.
    pub fn slash(&self) -> Option<String> {
        let words = self.cli?;
        let of_terminal = words.starts_with("daemon") || self.delivery == Delivery::Stream;
        (!of_terminal).then(|| format!("/{words}"))
    }

    /// Under which translations of its summary stand.
    pub fn message_id(&self) -> String {
        format!("operation.{}", self.name)
    }
}

impl Role {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Session => "session",
        }
    }
}

impl Method {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_operations_share_a_name_a_route_or_a_message_id() {
        let all = operations().items;
        let routes: BTreeSet<String> =
            all.iter().map(|each| format!("{} {}", each.method, each.path)).collect();
        let ids: BTreeSet<&String> = all.iter().map(|each| &each.message_id).collect();
        assert_eq!((routes.len(), ids.len()), (all.len(), all.len()));
        assert!(all.iter().all(|each| each.name.contains('.') && !each.summary.ends_with('.')));
    }

    #[test]
    fn a_read_changes_nothing_and_what_destroys_is_no_read() {
        for operation in OPERATIONS {
            let reads = operation.method == Method::Get;
            assert!(!(reads && operation.destructive), "{}", operation.name);
            assert!(!reads || operation.role == Role::Viewer, "{}", operation.name);
            assert!(reads || operation.role != Role::Viewer, "{}", operation.name);
        }
    }

    #[test]
    fn a_path_names_only_fields_of_its_input() {
        for operation in OPERATIONS {
            let mut generator = schemars::generate::SchemaSettings::draft2020_12()
                .with(|settings| settings.inline_subschemas = true)
                .into_generator();
            let schema = (operation.input)(&mut generator);
            let known = schema.get("properties").and_then(serde_json::Value::as_object);
            for segment in operation.path.split('/') {
                if let Some(name) = segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                    let has = known.is_some_and(|fields| fields.contains_key(name));
                    assert!(has, "`{}` has no field `{name}`", operation.name);
                }
            }
        }
    }
}
