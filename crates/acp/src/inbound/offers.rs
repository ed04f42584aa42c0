//! Modes, models and options that an agent offers in a conversation.
//!
//! Shapes: Agent Client Protocol v1, "Session Config Options" and "Session Modes", and the block `models` of agents
//! from before there were options.

use serde_json::{Map, Value};

use rallypoint_model::agent_offer::{
    ConversationOffer, OfferChange, OfferedChoice, OfferedOption, OfferedValue,
};

/// What the answer that opened a conversation offers; nothing when it says nothing of it.
pub(super) fn of_opened(result: &Value) -> Option<OfferChange> {
    let offer = ConversationOffer {
        modes: result.get("modes").and_then(|block| choice(block, "currentModeId", "availableModes", "id")),
        models: result
            .get("models")
            .and_then(|block| choice(block, "currentModelId", "availableModels", "modelId")),
        options: options(result).unwrap_or_default(),
    };
    (offer != ConversationOffer::default()).then_some(OfferChange::Whole { offer })
}

/// The options as they stand after one was set.
pub(super) fn of_answer(result: &Value) -> Option<OfferChange> {
    options(result).filter(|options| !options.is_empty()).map(|options| OfferChange::Options { options })
}

/// What an update changes in an offer, when it is about one.
pub(super) fn of_update(update: &Map<String, Value>) -> Option<OfferChange> {
    match update.get("sessionUpdate").and_then(Value::as_str)? {
        "config_option_update" => {
            listed(update.get("configOptions")?).map(|options| OfferChange::Options { options })
        }
        "current_mode_update" => {
            let mode = update.get("currentModeId").or_else(|| update.get("modeId"))?;
            mode.as_str().map(|mode_id| OfferChange::Mode { mode_id: mode_id.to_owned() })
        }
        _ => None,
    }
}

fn choice(block: &Value, current: &str, list: &str, id: &str) -> Option<OfferedChoice> {
    let items = block.get(list).and_then(Value::as_array)?;
    let values: Vec<OfferedValue> = items.iter().filter_map(|item| value(item, id)).collect();
    Some(OfferedChoice { current: text(block.get(current)), values })
}

fn options(holder: &Value) -> Option<Vec<OfferedOption>> {
    listed(holder.get("configOptions")?)
}

fn listed(options: &Value) -> Option<Vec<OfferedOption>> {
    Some(options.as_array()?.iter().filter_map(option).collect())
}

fn option(item: &Value) -> Option<OfferedOption> {
    let id = item.get("id").and_then(Value::as_str)?.to_owned();
    let name = item.get("name").and_then(Value::as_str).unwrap_or(&id).to_owned();
    let current = match item.get("currentValue") {
        Some(Value::Bool(on)) => on.to_string(),
        other => text(other),
    };
    let mut values = Vec::new();
    for each in item.get("options").and_then(Value::as_array).into_iter().flatten() {
        match each.get("options").and_then(Value::as_array) {
            // Values may come in groups.
            Some(group) => values.extend(group.iter().filter_map(|each| value(each, "value"))),
            None => values.extend(value(each, "value")),
        }
    }
    Some(OfferedOption {
        id,
        name,
        category: text(item.get("category")),
        kind: text(item.get("type")),
        current,
        values,
    })
}

fn value(item: &Value, id: &str) -> Option<OfferedValue> {
    let value = item.get(id).and_then(Value::as_str)?.to_owned();
    let name = item.get("name").and_then(Value::as_str).unwrap_or(&value).to_owned();
    Some(OfferedValue { value, name })
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(values: &[OfferedValue]) -> Vec<String> {
        values.iter().map(|each| format!("{}={}", each.value, each.name)).collect()
    }

    #[test]
    fn blocks_and_options_are_one_offer() {
        let result = json!({
            "sessionId": "s",
            "modes": {"currentModeId": "auto", "availableModes": [{"id": "auto", "name": "Auto"}, {"name": "lost"}]},
            "models": {"currentModelId": "m", "availableModels": [{"modelId": "m", "name": "M"}]},
            "configOptions": [
                {"id": "effort", "name": "Effort", "category": "thought_level", "type": "select", "currentValue": "low",
                 "options": [{"value": "low", "name": "Low"}, {"value": "high"}]},
                {"id": "llm", "type": "select", "currentValue": "a", "options": [
                    {"group": "g", "name": "G", "options": [{"value": "a", "name": "A"}]}]},
                {"id": "fast", "type": "boolean", "currentValue": true},
                {"id": "odd", "type": "slider", "currentValue": 3},
                {"name": "without an id"},
            ],
        });
        let Some(OfferChange::Whole { offer }) = of_opened(&result) else { panic!("no offer") };
        let modes = offer.modes.unwrap();
        assert_eq!((modes.current.as_str(), words(&modes.values)), ("auto", vec!["auto=Auto".to_owned()]));
        assert_eq!(words(&offer.models.unwrap().values), ["m=M"]);
        let seen: Vec<String> = offer
            .options
            .iter()
            .map(|each| {
                format!(
                    "{}/{}/{}/{}: {:?}",
                    each.id,
                    each.category,
                    each.kind,
                    each.current,
                    words(&each.values)
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                r#"effort/thought_level/select/low: ["low=Low", "high=high"]"#,
                r#"llm//select/a: ["a=A"]"#,
                "fast//boolean/true: []",
                "odd//slider/: []",
            ]
        );
    }

    #[test]
    fn no_offer_is_no_change() {
        assert_eq!(of_opened(&json!({"sessionId": "s", "modes": null, "configOptions": []})), None);
        assert_eq!(of_answer(&json!({})), None);
        assert_eq!(of_answer(&json!({"configOptions": []})), None);
        let of_update = |update: Value| of_update(update.as_object().unwrap());
        assert_eq!(of_update(json!({"sessionUpdate": "plan"})), None);
        assert_eq!(of_update(json!({"sessionUpdate": "current_mode_update", "currentModeId": 5})), None);
        let mode = of_update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}));
        assert_eq!(mode, Some(OfferChange::Mode { mode_id: "plan".to_owned() }));
    }
}
