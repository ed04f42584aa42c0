//! Calls with the token of a session: they are let into what the role `session` may, and into nothing else.
//!
//! On a port such a token opens nothing at all, since the gate there knows the access token alone.

use axum::http::HeaderMap;
use rallypoint_ops::{Operation, Role};
use rallypoint_runtime::{TokenHolder, is_session_token};

use crate::access::bearer;
use crate::problems::Refused;
use crate::routes::Served;

/// Whose session token a call shows, if it shows one. A call that may not be made, with one or for want of one, is
/// refused.
pub(crate) async fn permitted(
    served: &Served,
    operation: &Operation,
    headers: &HeaderMap,
) -> Result<Option<TokenHolder>, Refused> {
    let token = bearer(headers).filter(|token| is_session_token(token));
    match (token, operation.role) {
        (Some(token), Role::Session) => Ok(Some(served.daemon.holder_of_token(token).await?)),
        (Some(_), Role::Viewer | Role::Operator | Role::Admin) => {
            Err(Refused::forbidden(format!("the token of a session does not open `{}`", operation.name)))
        }
        (None, Role::Session) => Err(Refused::unauthenticated(format!(
            "`{}` is for the tool server of a session, which has a token of its own",
            operation.name
        ))),
        (None, Role::Viewer | Role::Operator | Role::Admin) => Ok(None),
    }
}
