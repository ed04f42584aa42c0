//! What is wanted of a conversation, held against what its agent offers.
//!
//! Mode, model and thought level are options of a category in the Agent Client Protocol v1 ("Session Config Options");
//! older agents offer modes and models in blocks of their own, which count where there is no such option.

use rallypoint_model::agent_io::AgentInput;
use rallypoint_model::agent_offer::{ConversationOffer, OfferedChoice, OfferedOption, OfferedValue, Wanted};

use crate::state::SetValue;

/// Something to be set, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where the value goes.
    pub way: Way,
    /// The value as the agent names it.
    pub value: String,
    /// Whether a run can't do without it.
    pub needed: bool,
}

/// Where a value goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// An option of the conversation.
    Option {
        /// Its id.
        id: String,
        /// Whether it is on or off.
        boolean: bool,
    },
    /// The mode, where it is no option.
    Mode,
    /// The model, where it is no option.
    Model,
}

/// What is wanted under one of these names.
#[derive(Clone, Copy, Debug)]
enum Named {
    Model,
    Mode,
    Thinking,
}

impl Named {
    fn word(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Mode => "mode",
            Self::Thinking => "thought level",
        }
    }

    /// Whether an option is this one: by its category, or by its id where it has none of the known ones.
    fn is(self, option: &OfferedOption) -> bool {
        let (categories, ids): (&[&str], &[&str]) = match self {
            Self::Model => (&["model"], &["model"]),
            Self::Mode => (&["mode"], &["mode"]),
            Self::Thinking => {
                (&["thought_level", "thinking"], &["thought_level", "thinking", "effort", "reasoning_effort"])
            }
        };
        let category = option.category.as_str();
        categories.contains(&category) || category.is_empty() && ids.contains(&option.id.as_str())
    }
}

impl Setting {
    /// Stands for the place of the value; two settings with one key exclude each other.
    pub fn key(&self) -> String {
        match &self.way {
            Way::Option { id, .. } => option_key(id),
            Way::Mode => "mode".to_owned(),
            Way::Model => "model".to_owned(),
        }
    }

    /// What is said to the agent.
    pub fn input(&self, agent_session_id: String) -> AgentInput {
        let value = self.value.clone();
        match &self.way {
            Way::Option { id, boolean } => AgentInput::SetConfigOption {
                agent_session_id,
                config_id: id.clone(),
                value,
                boolean: *boolean,
            },
            Way::Mode => AgentInput::SetMode { agent_session_id, mode_id: value },
            Way::Model => AgentInput::SetModel { agent_session_id, model_id: value },
        }
    }
}

/// Key and value of an input that sets something.
pub fn set_by(input: &AgentInput) -> Option<(String, &str)> {
    match input {
        AgentInput::SetConfigOption { config_id, value, .. } => Some((option_key(config_id), value)),
        AgentInput::SetMode { mode_id, .. } => Some(("mode".to_owned(), mode_id)),
        AgentInput::SetModel { model_id, .. } => Some(("model".to_owned(), model_id)),
        AgentInput::Initialize
        | AgentInput::Authenticate { .. }
        | AgentInput::ServeFile { .. }
        | AgentInput::NewSession { .. }
        | AgentInput::LoadSession { .. }
        | AgentInput::ResumeSession { .. }
        | AgentInput::CloseSession { .. }
        | AgentInput::Prompt { .. }
        | AgentInput::Steer { .. }
        | AgentInput::Cancel { .. }
        | AgentInput::AnswerPermission { .. }
        | AgentInput::AnswerElicitation { .. }
        | AgentInput::RefuseMethod { .. } => None,
    }
}

fn option_key(id: &str) -> String {
    format!("option {id}")
}

/// The next thing to be set before a prompt, one at a time: what an agent offers may depend on what was set before,
/// as the thought levels of a model do. An error says what is wanted and not offered, and what is.
pub fn next_setting(
    wanted: &Wanted,
    config: &[(String, String)],
    offer: &ConversationOffer,
    set: &[SetValue],
) -> Result<Option<Setting>, String> {
    let mut named = Vec::new();
    for (which, value) in
        [(Named::Model, &wanted.model), (Named::Mode, &wanted.mode), (Named::Thinking, &wanted.thinking)]
    {
        let Some(value) = value else { continue };
        let setting = named_setting(which, value, offer)?;
        if is_due(&setting, offer, set) {
            return Ok(Some(setting));
        }
        named.push(setting.key());
    }
    for (id, value) in config {
        let setting = option_setting(id, value, offer)?;
        if !named.contains(&setting.key()) && is_due(&setting, offer, set) {
            return Ok(Some(setting));
        }
    }
    Ok(None)
}

/// Whether what is wanted is offered; the error says what is.
pub fn check(wanted: &Wanted, config: &[(String, String)], offer: &ConversationOffer) -> Result<(), String> {
    for (which, value) in
        [(Named::Model, &wanted.model), (Named::Mode, &wanted.mode), (Named::Thinking, &wanted.thinking)]
    {
        if let Some(value) = value {
            named_setting(which, value, offer)?;
        }
    }
    config.iter().try_for_each(|(id, value)| option_setting(id, value, offer).map(|_| ()))
}

/// The model that holds in a conversation. Options are told anew whenever they change; the older block is told once, so
/// that what was set since counts.
pub fn model_in_use(offer: &ConversationOffer, set: &[SetValue]) -> Option<String> {
    let was_set = |key: &str| set.iter().find(|each| each.setting_id == key).map(|each| each.value.clone());
    let told = |current: &String| Some(current.clone()).filter(|current| !current.is_empty());
    match (offer.options.iter().find(|option| Named::Model.is(option)), &offer.models) {
        (Some(option), _) => told(&option.current).or_else(|| was_set(&option_key(&option.id))),
        (None, Some(models)) => was_set("model").or_else(|| told(&models.current)),
        (None, None) => was_set(&option_key("model")),
    }
}

/// Whether a run can't do without the value under this key.
pub fn is_needed(wanted: &Wanted, offer: &ConversationOffer, key: &str) -> bool {
    [(Named::Model, &wanted.model), (Named::Mode, &wanted.mode), (Named::Thinking, &wanted.thinking)]
        .into_iter()
        .filter_map(|(which, value)| named_setting(which, value.as_ref()?, offer).ok())
        .any(|setting| setting.key() == key)
}

fn is_due(setting: &Setting, offer: &ConversationOffer, set: &[SetValue]) -> bool {
    let key = setting.key();
    match set.iter().find(|each| each.setting_id == key) {
        Some(known) => known.value != setting.value,
        None => current(&setting.way, offer) != Some(setting.value.as_str()),
    }
}

fn current<'a>(way: &Way, offer: &'a ConversationOffer) -> Option<&'a str> {
    match way {
        Way::Option { id, .. } => {
            offer.options.iter().find(|option| option.id == *id).map(|option| option.current.as_str())
        }
        Way::Mode => offer.modes.as_ref().map(|modes| modes.current.as_str()),
        Way::Model => offer.models.as_ref().map(|models| models.current.as_str()),
    }
}

fn named_setting(which: Named, value: &str, offer: &ConversationOffer) -> Result<Setting, String> {
    if let Some(option) = offer.options.iter().find(|option| which.is(option)) {
        return Ok(Setting { needed: true, ..setting_of(which.word(), option, value)? });
    }
    let block: Option<(&OfferedChoice, Way)> = match which {
        Named::Model => offer.models.as_ref().map(|models| (models, Way::Model)),
        Named::Mode => offer.modes.as_ref().map(|modes| (modes, Way::Mode)),
        Named::Thinking => None,
    };
    let Some((choice, way)) = block else {
        return Err(format!(
            "the agent offers no choice of {}, so `{value}` can't be set; what it offers: {}",
            which.word(),
            names_of(offer)
        ));
    };
    let value = picked(which.word(), &choice.values, value)?;
    Ok(Setting { way, value, needed: true })
}

fn option_setting(id: &str, value: &str, offer: &ConversationOffer) -> Result<Setting, String> {
    match offer.options.iter().find(|option| option.id == id) {
        Some(option) => setting_of(&format!("value of the option `{id}`"), option, value),
        // An agent may know options that it does not list; it says itself when it does not.
        None => Ok(Setting {
            way: Way::Option { id: id.to_owned(), boolean: false },
            value: value.to_owned(),
            needed: false,
        }),
    }
}

fn setting_of(what: &str, option: &OfferedOption, value: &str) -> Result<Setting, String> {
    let boolean = option.kind == "boolean";
    let value = if boolean {
        let on_off =
            ["true", "false"].map(|word| OfferedValue { value: word.to_owned(), name: word.to_owned() });
        picked(what, &on_off, value)?
    } else {
        picked(what, &option.values, value)?
    };
    Ok(Setting { way: Way::Option { id: option.id.clone(), boolean }, value, needed: false })
}

/// The value itself, or the one that has this name. Where no values are listed, any will do.
fn picked(what: &str, values: &[OfferedValue], wanted: &str) -> Result<String, String> {
    let by_value = values.iter().find(|each| each.value == wanted);
    let found = by_value.or_else(|| values.iter().find(|each| each.name.eq_ignore_ascii_case(wanted)));
    match found {
        Some(found) => Ok(found.value.clone()),
        None if values.is_empty() => Ok(wanted.to_owned()),
        None => {
            let known: Vec<&str> = values.iter().map(|each| each.value.as_str()).collect();
            Err(format!("the {what} `{wanted}` is not offered; the agent offers: {}", known.join(", ")))
        }
    }
}

fn names_of(offer: &ConversationOffer) -> String {
    let options = offer.options.iter().map(|option| format!("the option `{}`", option.id));
    let modes = offer.modes.iter().map(|_| "modes".to_owned());
    let models = offer.models.iter().map(|_| "models".to_owned());
    let names: Vec<String> = modes.chain(models).chain(options).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(words: &[&str]) -> Vec<OfferedValue> {
        let value = |word: &&str| OfferedValue { value: (*word).to_owned(), name: word.to_uppercase() };
        words.iter().map(value).collect()
    }

    fn option(id: &str, category: &str, current: &str, words: &[&str]) -> OfferedOption {
        OfferedOption {
            id: id.to_owned(),
            category: category.to_owned(),
            kind: "select".to_owned(),
            current: current.to_owned(),
            values: values(words),
            ..OfferedOption::default()
        }
    }

    fn newer() -> ConversationOffer {
        ConversationOffer {
            modes: Some(OfferedChoice { current: "auto".to_owned(), values: values(&["auto", "plan"]) }),
            models: None,
            options: vec![
                option("mode", "mode", "auto", &["auto", "plan"]),
                option("llm", "model", "small", &["small", "big"]),
                option("effort", "thought_level", "low", &["low", "high"]),
                OfferedOption { kind: "boolean".to_owned(), ..option("fast", "other", "false", &[]) },
            ],
        }
    }

    fn older() -> ConversationOffer {
        let choice =
            |words: &[&str]| Some(OfferedChoice { current: words[0].to_owned(), values: values(words) });
        ConversationOffer { modes: choice(&["ask", "yolo"]), models: choice(&["m1", "m2"]), options: vec![] }
    }

    fn all(model: &str, mode: &str, thinking: &str) -> Wanted {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Wanted { model: some(model), mode: some(mode), thinking: some(thinking) }
    }

    /// What is set one after the other, as key and value.
    fn told(
        wanted: &Wanted,
        config: &[(&str, &str)],
        offer: &ConversationOffer,
    ) -> Result<Vec<String>, String> {
        let config: Vec<(String, String)> =
            config.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect();
        let (mut set, mut told) = (Vec::<SetValue>::new(), Vec::new());
        while let Some(setting) = next_setting(wanted, &config, offer, &set)? {
            told.push(format!(
                "{} = {}{}",
                setting.key(),
                setting.value,
                if setting.needed { "!" } else { "" }
            ));
            set.push(SetValue { setting_id: setting.key(), value: setting.value });
        }
        Ok(told)
    }

    #[test]
    fn options_are_found_by_their_category_and_older_blocks_where_there_is_none() {
        let wanted = all("big", "plan", "high");
        assert_eq!(
            told(&wanted, &[], &newer()).unwrap(),
            ["option llm = big!", "option mode = plan!", "option effort = high!"]
        );
        assert_eq!(told(&all("m2", "yolo", ""), &[], &older()).unwrap(), ["model = m2!", "mode = yolo!"]);
        // A name for people will do, and what holds already is not set again.
        assert_eq!(told(&all("BIG", "auto", "low"), &[], &newer()).unwrap(), ["option llm = big!"]);
    }

    #[test]
    fn what_is_wanted_by_name_wins_over_an_option_of_the_same_place() {
        let told =
            told(&all("", "plan", ""), &[("mode", "auto"), ("fast", "true"), ("hidden", "1")], &newer());
        assert_eq!(told.unwrap(), ["option mode = plan!", "option fast = true", "option hidden = 1"]);
    }

    #[test]
    fn what_is_not_offered_is_refused_with_what_is() {
        let refused = |wanted: Wanted, config: &[(&str, &str)], offer: &ConversationOffer| {
            told(&wanted, config, offer).unwrap_err()
        };
        assert_eq!(
            refused(all("huge", "", ""), &[], &newer()),
            "the model `huge` is not offered; the agent offers: small, big"
        );
        assert_eq!(
            refused(all("", "", "max"), &[], &older()),
            "the agent offers no choice of thought level, so `max` can't be set; what it offers: modes, models"
        );
        assert!(
            refused(all("x", "", ""), &[], &ConversationOffer::default())
                .ends_with("what it offers: nothing")
        );
        assert_eq!(
            refused(Wanted::default(), &[("fast", "maybe")], &newer()),
            "the value of the option `fast` `maybe` is not offered; the agent offers: true, false"
        );
    }
}
