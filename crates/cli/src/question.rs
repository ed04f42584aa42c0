//! `rally question`: what waits for a person.

use rallypoint_model::question::{Answer, AnsweringAgent};
use rallypoint_ops::types::{AnswerInput, Empty, ListQuestionsInput, QuestionList};
use serde_json::{Value, json};

use crate::arguments::QuestionVerb;
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::run::request::person;
use crate::show::task_view;

pub(crate) async fn carry_out(
    verb: QuestionVerb,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let client = connector.ready().await?;
    match verb {
        QuestionVerb::List => {
            let list: QuestionList = client.call("question.list", &ListQuestionsInput::default()).await?;
            if output.is_json() {
                output.json(&list)?;
            } else if list.items.is_empty() {
                output.talk("nothing waits for an answer");
            } else {
                for line in list.items.iter().flat_map(task_view::question) {
                    output.line(&line)?;
                }
            }
        }
        QuestionVerb::Answer { question, allow, decline, text, accept, option, field, as_agent } => {
            let question_id = resolve::question(&client, &question).await?;
            let answer = if field.is_empty() {
                answer(allow, decline, text, accept, option)?
            } else {
                Answer::Value { value: fields(field) }
            };
            let agent = match as_agent.as_deref() {
                None => None,
                Some("main") => Some(AnsweringAgent::MainAgent),
                Some(session) => {
                    Some(AnsweringAgent::Session { session_id: resolve::session(&client, session).await? })
                }
            };
            let input = AnswerInput { question_id, answer, by: person(), agent };
            let Empty {} = client.call("question.answer", &input).await?;
            if output.is_json() {
                output.json(&json!({ "questionId": question_id }))?;
            } else {
                output.line(&format!("question {question_id} is answered"))?;
            }
        }
    }
    Ok(0)
}

/// Typed values by the name of their field; what each has to be is known where the form is.
fn fields(typed: Vec<(String, String)>) -> Value {
    typed.into_iter().map(|(name, value)| (name, Value::String(value))).collect()
}

/// The one of them that was given; the definition of the arguments sees to it that it is one.
fn answer(
    allow: bool,
    decline: Option<String>,
    text: Option<String>,
    accept: bool,
    option: Option<String>,
) -> Result<Answer, Failure> {
    let given = [
        allow.then_some(Answer::Allow),
        accept.then(|| Answer::Accept { reason: String::new() }),
        decline.map(|reason| Answer::Decline { reason }),
        text.map(|text| Answer::Text { text }),
        option.map(|option_id| Answer::Option { option_id }),
    ];
    given.into_iter().flatten().next().ok_or_else(|| Failure::usage("there is no answer"))
}
