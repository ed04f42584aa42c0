//! What a task is made from, checked before anything is started.

use std::path::{Path, PathBuf};

use rallypoint_model::task::AgentRequest;
use rallypoint_ops::types::{AttachmentInput, CreateTaskInput};
use uuid::Uuid;

use crate::arguments::RunArguments;
use crate::environment;
use crate::failure::Failure;

/// The request for these arguments; everything but the room.
pub(crate) fn build(arguments: &RunArguments, data_folder: &Path) -> Result<CreateTaskInput, Failure> {
    if arguments.goal.trim().is_empty() {
        return Err(
            Failure::usage("the goal is empty").with_hint("say what is to be reached: `rally run \"…\"`")
        );
    }
    if arguments.check.iter().any(|command| command.trim().is_empty()) {
        return Err(Failure::usage("a `--check` is empty").with_hint("give a command that must exit 0"));
    }
    Ok(CreateTaskInput {
        goal: arguments.goal.clone(),
        agents: agent(arguments)?.into_iter().collect(),
        cwd: Some(work_folder(arguments.cwd.as_deref())?),
        checks: arguments.check.clone(),
        accept: arguments.accept.clone(),
        timeout_ms: arguments.timeout.map_or(0, |timeout| timeout.0),
        unchecked: arguments.unchecked,
        attachments: arguments.attach.iter().map(|file| attached(file)).collect::<Result<_, _>>()?,
        permissions: arguments.permissions,
        priority: arguments.admission.priority(),
        budget: arguments.admission.budget(),
        // A message of a platform asks once, however often it is handed in.
        idempotency_key: arguments.platform_message.is_none().then(|| Uuid::new_v4().to_string()),
        platform_message_id: arguments.platform_message.clone(),
        progress: arguments.progress,
        environment: environment::for_agents(data_folder, &arguments.pass_env),
        requested_by: person(),
        source: Some("cli".to_owned()),
        ..Default::default()
    })
}

/// Name of the person at the keyboard, as far as the system knows it.
pub(crate) fn person() -> Option<String> {
    ["USER", "LOGNAME"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|name| !name.trim().is_empty())
}

fn agent(arguments: &RunArguments) -> Result<Option<AgentRequest>, Failure> {
    let agent = named_agent(arguments.agent.as_deref(), arguments.agent_cmd.as_deref(), &arguments.pass_env)?;
    let config = arguments.set.iter().cloned().collect();
    let program = arguments.agent_path.as_deref().map(program_at).transpose()?;
    let wanted = arguments.wanted.wanted();
    if agent.is_none() && !wanted.is_empty() {
        return Err(Failure::usage("`--model`, `--mode` and `--thinking` need an agent")
            .with_hint("name it with `--agent NAME` or `--agent-cmd COMMAND`"));
    }
    Ok(agent.map(|agent| AgentRequest { config, program, wanted, ..agent }))
}

/// The absolute path of an agent's program.
pub(crate) fn program_at(given: &Path) -> Result<String, Failure> {
    let refused = |what: &str| {
        Failure::usage(format!("the program `{}` {what}", given.display()))
            .with_hint("name the file of the agent's program with `--agent-path`")
    };
    let path = std::path::absolute(given).map_err(|error| refused(&format!("can't be found: {error}")))?;
    if !path.is_file() {
        return Err(refused("is not there"));
    }
    path.into_os_string().into_string().map_err(|_| refused("has a name that is not UTF-8"))
}

/// The agent of a name, a command line, or both.
pub(crate) fn named_agent(
    name: Option<&str>,
    command: Option<&str>,
    pass_env: &[String],
) -> Result<Option<AgentRequest>, Failure> {
    let argv = command.map(words).transpose()?;
    let program_name = argv.as_ref().and_then(|argv| argv.first()).map(|program| {
        let name = Path::new(program).file_name();
        name.map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned())
    });
    Ok(name.map(str::to_owned).or(program_name).map(|agent| AgentRequest {
        agent,
        label: None,
        task: None,
        argv,
        pass_env: pass_env.to_vec(),
        ..AgentRequest::default()
    }))
}

/// The file as the daemon finds it, which works in another folder.
fn attached(file: &Path) -> Result<AttachmentInput, Failure> {
    let refused = |what: &str| {
        Failure::usage(format!("the file `{}` {what}", file.display()))
            .with_hint("name a file that exists with `--attach FILE`")
    };
    let path = std::path::absolute(file).map_err(|error| refused(&format!("can't be found: {error}")))?;
    if !path.is_file() {
        return Err(refused(if path.exists() { "is no file" } else { "does not exist" }));
    }
    let path = path.into_os_string().into_string().map_err(|_| refused("has a name that is not UTF-8"))?;
    Ok(AttachmentInput { path })
}

pub(crate) fn work_folder(given: Option<&Path>) -> Result<String, Failure> {
    let folder = match given {
        Some(folder) => std::path::absolute(folder),
        None => std::env::current_dir(),
    };
    let shown = given.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let refused = |what: &str| {
        Failure::usage(format!("the work folder `{}` {what}", shown.display()))
            .with_hint("name a folder that exists with `--cwd DIR`")
    };
    let folder = folder.map_err(|error| refused(&format!("can't be found: {error}")))?;
    if !folder.exists() {
        return Err(refused("does not exist"));
    }
    if !folder.is_dir() {
        return Err(refused("is not a folder"));
    }
    folder.into_os_string().into_string().map_err(|_| refused("has a name that is not UTF-8"))
}

/// Words of a command line as a shell splits them: spaces, both kinds of quotes, backslash. Nothing is expanded.
fn words(line: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('"') | None, '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    let refused = |what: &str| {
        Failure::usage(format!("`--agent-cmd` {what}"))
            .with_hint("give a program and its arguments in one text")
    };
    match (quote, words.first()) {
        (Some(open), _) => Err(refused(&format!("has a {open} without its end"))),
        (None, None) => Err(refused("is empty")),
        (None, Some(program)) if program.is_empty() => Err(refused("names no program")),
        (None, Some(_)) => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Verb};

    fn built(words: &[&str]) -> Result<CreateTaskInput, Failure> {
        let line = ["rally", "run"].iter().chain(words);
        let Verb::Run(run) = Arguments::try_parse_from(line).unwrap().verb else { panic!("not a run") };
        build(&run, Path::new("/nowhere"))
    }

    #[test]
    fn a_goal_alone_is_a_request_with_a_key_of_its_own() {
        let first = built(&["write notes"]).unwrap();
        let second = built(&["write notes"]).unwrap();
        assert!(first.agents.is_empty() && first.checks.is_empty());
        assert_eq!(first.source.as_deref(), Some("cli"));
        assert_eq!(first.cwd.unwrap(), std::env::current_dir().unwrap().to_str().unwrap());
        assert_ne!(first.idempotency_key, second.idempotency_key);
    }

    #[test]
    fn an_agent_is_a_name_or_a_program() {
        let agent = |words: &[&str]| built(words).unwrap().agents.remove(0);
        let named = agent(&["x", "--agent", "codex"]);
        assert_eq!((named.agent.as_str(), named.argv), ("codex", None));
        let program = agent(&["x", "--agent-cmd", "/opt/my-agent --acp 'a b'"]);
        assert_eq!(program.agent, "my-agent");
        assert_eq!(program.argv.unwrap(), ["/opt/my-agent", "--acp", "a b"]);
        let both = agent(&["x", "--agent", "scripted", "--agent-cmd", "prog"]);
        assert_eq!((both.agent.as_str(), both.argv.unwrap().len()), ("scripted", 1));
    }

    #[test]
    fn command_lines_are_split_like_a_shell_does() {
        let split = |line: &str| words(line).unwrap();
        assert_eq!(split(r#"a  "b \"c" 'd\e' f\ g "" h"i"j"#), ["a", r#"b "c"#, r"d\e", "f g", "", "hij"]);
        for line in ["", "  ", "'a", "\"a", "''"] {
            assert!(words(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_can_never_work_is_refused_before_anything_starts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        assert!(built(&["  "]).unwrap_err().message().contains("goal is empty"));
        assert!(built(&["x", "--cwd", "/no/such/folder"]).unwrap_err().message().contains("does not exist"));
        assert!(built(&["x", "--cwd", path]).unwrap_err().message().contains("not a folder"));
        assert!(built(&["x", "--check", " "]).unwrap_err().message().contains("`--check` is empty"));
    }
}
