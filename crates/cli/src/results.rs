//! `rally result`: the full output of a run.

use rallypoint_ops::types::{ResultView, RunRef};

use crate::arguments::ResultVerb;
use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;
use crate::resolve;
use crate::show::text::{Shown, for_stdout};

pub(crate) async fn carry_out(
    verb: ResultVerb,
    connector: &Connector,
    output: &mut Output,
) -> Result<u8, Failure> {
    let ResultVerb::Get { run } = verb;
    let client = connector.ready().await?;
    let run_id = resolve::run(&client, &run).await?;
    let view: ResultView = client.call("result.get", &RunRef { run_id }).await?;
    if output.is_json() {
        output.json(&view)?;
    } else {
        // A file gets every byte; a terminal must not be steered by what an agent wrote.
        let text = for_stdout(&view.text, Shown::Whole);
        output.raw(text.as_bytes())?;
        if !text.ends_with('\n') {
            output.raw(b"\n")?;
        }
    }
    Ok(0)
}
