//! `rally mcp`: our tools for the agent of one session, over standard input and output.

use rallypoint_bridges::mcp::serve;
use rallypoint_ops::tools::TOKEN_VARIABLE;

use crate::arguments::McpArguments;
use crate::autostart::Connector;
use crate::failure::Failure;

/// Serves until the input ends. It starts no daemon: the one that has the session comes back, or the session ends.
pub(crate) async fn carry_out(arguments: &McpArguments, connector: &Connector) -> Result<u8, Failure> {
    let token = std::env::var(TOKEN_VARIABLE).map_err(|_| {
        Failure::usage(format!("`{TOKEN_VARIABLE}` is not set"))
            .with_hint("an agent starts `rally mcp` in its session, with what it is told when that is opened")
    })?;
    let client = connector.client().with_token(&token);
    serve(tokio::io::stdin(), tokio::io::stdout(), client, arguments.session)
        .await
        .map_err(|error| Failure::failed(format!("the input can't be read: {error}")))?;
    Ok(0)
}
