//! `rally open`: a way in for a browser.

use rallypoint_client::Client;
use rallypoint_ops::types::{AccessLink, Empty};
use serde_json::json;

use crate::autostart::Connector;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) async fn carry_out(connector: &Connector, output: &mut Output) -> Result<u8, Failure> {
    let url = link(&connector.ready().await?).await?;
    if output.is_json() {
        output.json(&json!({ "url": url }))?;
    } else {
        output.line(&url)?;
        output.talk("the link works once and for some minutes; whoever opens it may do everything");
    }
    Ok(0)
}

/// A new link, through a port that is opened for it when there is none.
pub(crate) async fn link(client: &Client) -> Result<String, Failure> {
    let link: AccessLink = client.call("access.link", &Empty {}).await?;
    Ok(link.url)
}
