use agent_client_protocol_schema::v1::{
    AgentRequest, ClientNotification, ClientRequest, ContentBlock, CreateElicitationResponse,
    ElicitationAction as Action, JsonRpcMessage, Request, RequestId, RequestPermissionOutcome,
    RequestPermissionResponse, Response,
};
use serde_json::Value;

use rallypoint_model::agent_io::{FileAsk, PromptPart};

use super::*;

fn line_of(input: &AgentInput) -> String {
    let bytes = encode(input, 41);
    let text = String::from_utf8(bytes).unwrap();
    let line = text.strip_suffix('\n').unwrap();
    assert!(!line.contains('\n'));
    line.to_owned()
}

/// The request as the schema crate reads it.
fn request_of(input: &AgentInput) -> ClientRequest {
    let message: JsonRpcMessage<Request<Value>> = serde_json::from_str(&line_of(input)).unwrap();
    let request = message.into_inner();
    assert_eq!(request.id, RequestId::Number(41));
    ClientRequest::from_method_and_params(&request.method, &request.params.unwrap()).unwrap()
}

#[test]
fn the_hello_advertises_what_we_serve_and_nothing_else() {
    let ClientRequest::InitializeRequest(hello) = request_of(&AgentInput::Initialize) else { panic!() };
    assert_eq!(hello.protocol_version, ProtocolVersion::V1);
    let capabilities = hello.client_capabilities;
    assert!(!capabilities.terminal && !capabilities.fs.read_text_file && !capabilities.fs.write_text_file);
    assert!(capabilities.plan.is_some() && capabilities.subagents.is_some());
    let air = &capabilities.meta.unwrap()["jetbrains"]["air"];
    assert_eq!(air["capabilities"], serde_json::json!(["sessionFailure"]));
    let elicitation = capabilities.elicitation.unwrap();
    assert!(elicitation.form.is_some() && elicitation.url.is_some());
    let session = capabilities.session.unwrap();
    assert!(session.notices.is_some() && session.compaction.is_some());
    assert!(session.config_options.unwrap().boolean.is_some());
    let info = hello.client_info.unwrap();
    assert_eq!((info.name.as_str(), info.version.as_str()), ("rallypoint", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_session_has_a_folder_and_no_servers() {
    let ClientRequest::NewSessionRequest(new) =
        request_of(&AgentInput::NewSession { cwd: "/w/ä b".to_owned(), tools: false })
    else {
        panic!()
    };
    assert_eq!(new.cwd.to_str(), Some("/w/ä b"));
    assert!(new.mcp_servers.is_empty());
    assert!(
        line_of(&AgentInput::NewSession { cwd: "/w".to_owned(), tools: false }).contains("\"mcpServers\":[]")
    );
}

#[test]
fn each_part_of_a_prompt_is_a_marked_block() {
    let parts = [
        PromptPart::Goal,
        PromptPart::Criteria,
        PromptPart::Task,
        PromptPart::Message,
        PromptPart::Evidence,
        PromptPart::Frame,
    ];
    let blocks = parts.map(|part| PromptBlock { part, text: format!("{}\nline", part.as_str()) }).to_vec();
    let input = AgentInput::Prompt { agent_session_id: "s-1".to_owned(), blocks, attachments: Vec::new() };
    let ClientRequest::PromptRequest(prompt) = request_of(&input) else { panic!() };
    assert_eq!(prompt.session_id, SessionId::new("s-1"));
    let seen: Vec<(String, Value)> = prompt
        .prompt
        .into_iter()
        .map(|block| match block {
            ContentBlock::Text(text) => (text.text, text.meta.unwrap()[PART_META_KEY].clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    for (part, (text, mark)) in parts.iter().zip(seen) {
        assert_eq!((text, mark), (format!("{}\nline", part.as_str()), Value::from(part.as_str())));
    }
}

#[test]
fn an_option_is_set_and_a_cancel_has_no_id() {
    let input = AgentInput::SetConfigOption {
        agent_session_id: "s".to_owned(),
        config_id: "mode".to_owned(),
        value: "plan".to_owned(),
        boolean: false,
    };
    let ClientRequest::SetSessionConfigOptionRequest(set) = request_of(&input) else { panic!() };
    assert_eq!(set.config_id.to_string(), "mode");
    let line: Value =
        serde_json::from_str(&line_of(&AgentInput::Cancel { agent_session_id: "s".to_owned() })).unwrap();
    assert!(line.get("id").is_none());
    let cancel = ClientNotification::from_method_and_params("session/cancel", &line["params"]).unwrap();
    assert!(
        matches!(cancel, ClientNotification::CancelNotification(cancel) if cancel.session_id == SessionId::new("s"))
    );
}

#[test]
fn a_mode_an_older_model_and_a_switch_are_set_each_in_its_way() {
    let agent_session_id = "s".to_owned();
    let mode = AgentInput::SetMode { agent_session_id: agent_session_id.clone(), mode_id: "plan".to_owned() };
    let ClientRequest::SetSessionModeRequest(set) = request_of(&mode) else { panic!() };
    assert_eq!(set.mode_id.to_string(), "plan");
    let (config_id, value) = ("fast".to_owned(), "true".to_owned());
    let switch = AgentInput::SetConfigOption {
        agent_session_id: agent_session_id.clone(),
        config_id,
        value,
        boolean: true,
    };
    let ClientRequest::SetSessionConfigOptionRequest(set) = request_of(&switch) else { panic!() };
    assert!(matches!(set.value, SessionConfigOptionValue::Boolean { value: true }));
    let model = AgentInput::SetModel { agent_session_id, model_id: "big".to_owned() };
    let line: Value = serde_json::from_str(&line_of(&model)).unwrap();
    assert_eq!((&line["method"], &line["params"]["modelId"]), (&"session/set_model".into(), &"big".into()));
}

#[test]
fn a_conversation_is_resumed_and_closed_by_its_id() {
    let resume =
        AgentInput::ResumeSession { agent_session_id: "s".to_owned(), cwd: "/w".to_owned(), tools: false };
    let ClientRequest::ResumeSessionRequest(resume) = request_of(&resume) else { panic!() };
    assert_eq!((resume.session_id, resume.cwd.to_str()), (SessionId::new("s"), Some("/w")));
    let close = AgentInput::CloseSession { agent_session_id: "s".to_owned() };
    let ClientRequest::CloseSessionRequest(close) = request_of(&close) else { panic!() };
    assert_eq!(close.session_id, SessionId::new("s"));
}

#[test]
fn what_a_person_did_with_a_form_is_what_the_schema_reads() {
    let read = |action: ElicitationAction| {
        let input = AgentInput::AnswerElicitation { request_id: "3".to_owned(), action };
        let message: JsonRpcMessage<Response<CreateElicitationResponse>> =
            serde_json::from_str(&line_of(&input)).unwrap();
        match message.into_inner() {
            Response::Result { result, .. } => result.action,
            Response::Error { error, .. } => panic!("{error:?}"),
        }
    };
    let Value::Object(content) = json!({"port": 80, "tags": ["a"], "on": true}) else { unreachable!() };
    let Action::Accept(accepted) = read(ElicitationAction::Accept { content: Some(content) }) else {
        panic!()
    };
    assert_eq!(accepted.content.unwrap().len(), 3);
    assert!(matches!(read(ElicitationAction::Accept { content: None }), Action::Accept(_)));
    assert!(matches!(read(ElicitationAction::Decline), Action::Decline));
    assert!(matches!(read(ElicitationAction::Cancel), Action::Cancel));
}

#[test]
fn files_are_advertised_where_they_are_served_and_answered_with_what_became_of_them() {
    let hello = |services: Vec<AgentService>| {
        let beside = Beside { services, ..Beside::default() };
        let line: Value = serde_json::from_slice(&encode_with(&AgentInput::Initialize, 1, &beside)).unwrap();
        line["params"]["clientCapabilities"]["fs"].clone()
    };
    assert_eq!(hello(vec![AgentService::Fs]), json!({"readTextFile": true, "writeTextFile": true}));
    assert_eq!(hello(vec![]), json!({"readTextFile": false, "writeTextFile": false}));
    let ask = FileAsk::Read { path: "/w/a".to_owned(), line: None, limit: None };
    let answer = |refused: Option<&str>, file: Option<Result<Value, RpcError>>| {
        let refused = refused.map(str::to_owned);
        let input = AgentInput::ServeFile { request_id: "9".to_owned(), ask: ask.clone(), refused };
        let beside = Beside { file, ..Beside::default() };
        serde_json::from_slice::<Value>(&encode_with(&input, 1, &beside)).unwrap()
    };
    let read = json!({"content": "x"});
    assert_eq!(answer(None, Some(Ok(read.clone()))), json!({"jsonrpc": "2.0", "id": 9, "result": read}));
    let missing = answer(None, Some(Err(RpcError::new(-32002, "not there"))));
    assert_eq!(missing["error"], json!({"code": -32002, "message": "not there"}));
    assert_eq!(answer(Some("no"), Some(Ok(read)))["error"]["message"], "no");
    let login = AgentInput::Authenticate { method_id: "key".to_owned() };
    let ClientRequest::AuthenticateRequest(login) = request_of(&login) else { panic!() };
    assert_eq!(login.method_id.to_string(), "key");
}

#[test]
fn a_permission_is_answered_under_the_agents_own_id() {
    let answer = |request_id: &str, option_id: Option<&str>| {
        let input = AgentInput::AnswerPermission {
            request_id: request_id.to_owned(),
            option_id: option_id.map(str::to_owned),
        };
        let message: JsonRpcMessage<Response<RequestPermissionResponse>> =
            serde_json::from_str(&line_of(&input)).unwrap();
        match message.into_inner() {
            Response::Result { id, result } => (id, result.outcome),
            Response::Error { error, .. } => panic!("{error:?}"),
        }
    };
    let (id, outcome) = answer("0", Some("allow"));
    assert_eq!(id, RequestId::Number(0));
    assert!(
        matches!(outcome, RequestPermissionOutcome::Selected(choice) if choice.option_id.to_string() == "allow")
    );
    let (id, outcome) = answer("\"u-1\"", None);
    assert_eq!(id, RequestId::Str("u-1".to_owned()));
    assert_eq!(outcome, RequestPermissionOutcome::Cancelled);
}

#[test]
fn ids_of_odd_forms_go_back_unchanged() {
    let line = |request_id: &str| {
        line_of(&AgentInput::RefuseMethod { request_id: request_id.to_owned(), method: "fs/x".to_owned() })
    };
    for id in ["1.50", "12345678901234567890123", "\"\\u0041\""] {
        assert!(line(id).contains(&format!("\"id\":{id},")), "{}", line(id));
    }
    assert!(line("no json").contains("\"id\":\"no json\""));
}

#[test]
fn a_method_that_is_not_served_is_refused() {
    let input =
        AgentInput::RefuseMethod { request_id: "7".to_owned(), method: "fs/read_text_file".to_owned() };
    let message: JsonRpcMessage<Response<Value>> = serde_json::from_str(&line_of(&input)).unwrap();
    let Response::Error { id, error } = message.into_inner() else { panic!() };
    assert_eq!((id, i32::from(error.code)), (RequestId::Number(7), -32601));
    assert!(error.message.contains("fs/read_text_file"));
}

/// What our own agents ask is what the schema knows; see `agent_side`.
#[test]
fn the_oracle_knows_a_permission_request() {
    let params = serde_json::json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []});
    let request = AgentRequest::from_method_and_params("session/request_permission", &params).unwrap();
    assert!(matches!(request, AgentRequest::RequestPermissionRequest(_)));
}
