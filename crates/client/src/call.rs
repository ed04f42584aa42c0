//! One operation as one request, built from the registry.

use std::fmt::Write as _;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response};
use rallypoint_ops::registry::find;
use rallypoint_ops::{Method, Operation, Problem};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::{Client, ClientError, connect};

/// Time a call may take from sent to answered. The slowest one stores a command under load; a run's own time is
/// spent elsewhere.
const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// Largest answer taken. The full output of a run comes in one answer, so it is far above what is usual.
const ANSWER_MAX_BYTES: usize = 256 * 1024 * 1024;

pub(crate) async fn carry_out<I>(client: &Client, operation: &str, input: &I) -> Result<Vec<u8>, ClientError>
where
    I: Serialize + ?Sized,
{
    let mut request = request(declared(operation)?, input)?;
    if let Some(token) = &client.token {
        let mut shown = HeaderValue::from_str(&format!("Bearer {}", token.0))
            .map_err(|_| ClientError::Protocol("the token fits no header".to_owned()))?;
        shown.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, shown);
    }
    timeout(CALL_DEADLINE, async { whole(connect::send(&client.address, request).await?).await })
        .await
        .unwrap_or(Err(ClientError::Lost))
}

pub(crate) fn declared(operation: &str) -> Result<&'static Operation, ClientError> {
    find(operation).ok_or_else(|| ClientError::Protocol(format!("there is no operation `{operation}`")))
}

/// The request for an operation with this input.
pub(crate) fn request<I>(operation: &Operation, input: &I) -> Result<Request<Full<Bytes>>, ClientError>
where
    I: Serialize + ?Sized,
{
    let unfit = |what: String| ClientError::Protocol(format!("the input of `{}` {what}", operation.name));
    let Ok(Value::Object(mut fields)) = serde_json::to_value(input) else {
        return Err(unfit("is not an object".to_owned()));
    };
    let mut target = fill_path(operation, &mut fields).map_err(unfit)?;
    let (method, body) = match operation.method {
        Method::Get => {
            target.push_str(&query(&fields).map_err(unfit)?);
            ("GET", Bytes::new())
        }
        Method::Post => ("POST", Bytes::from(Value::Object(fields).to_string())),
        Method::Patch => ("PATCH", Bytes::from(Value::Object(fields).to_string())),
    };
    Request::builder()
        .method(method)
        .uri(target)
        .header(HOST, "localhost")
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(|error| unfit(format!("makes no request: {error}")))
}

/// Puts fields of the input into the path and takes them out of the rest.
fn fill_path(operation: &Operation, fields: &mut Map<String, Value>) -> Result<String, String> {
    let mut path = String::new();
    for (place, segment) in operation.path.split('/').enumerate() {
        if place > 0 {
            path.push('/');
        }
        match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            None => path.push_str(segment),
            Some(name) => match fields.remove(name).as_ref().and_then(text_of) {
                Some(text) if !text.is_empty() => path.push_str(&escaped(&text)),
                _ => return Err(format!("has no `{name}`")),
            },
        }
    }
    Ok(path)
}

fn query(fields: &Map<String, Value>) -> Result<String, String> {
    let mut query = String::new();
    // By name, so that the same input is the same address.
    let mut given: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
    given.sort_by_key(|(name, _)| *name);
    for (name, value) in given {
        let text = text_of(value).ok_or_else(|| format!("has a `{name}` that fits no address"))?;
        let mark = if query.is_empty() { '?' } else { '&' };
        query.push(mark);
        query.push_str(&escaped(name));
        query.push('=');
        query.push_str(&escaped(&text));
    }
    Ok(query)
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Percent escapes for everything but the characters that mean themselves everywhere.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(escaped, "%{byte:02X}")),
        }
    }
    escaped
}

/// The whole body of an answer, or the refusal that it is.
pub(crate) async fn whole(response: Response<Incoming>) -> Result<Vec<u8>, ClientError> {
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_MAX_BYTES)
        .collect()
        .await
        .map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                ClientError::Protocol(format!("the answer is larger than {ANSWER_MAX_BYTES} bytes"))
            } else {
                ClientError::Lost
            }
        })?
        .to_bytes();
    if status.is_success() {
        return Ok(body.to_vec());
    }
    if let Ok(problem) = serde_json::from_slice::<Problem>(&body) {
        return Err(ClientError::Refused(problem));
    }
    let head: String = String::from_utf8_lossy(&body).chars().take(200).collect();
    Err(ClientError::Protocol(format!("it answered {status}: {head}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn built(operation: &str, input: Value) -> Result<(String, Value), ClientError> {
        let request = request(find(operation).unwrap(), &input)?;
        let line = format!("{} {}", request.method(), request.uri());
        let body =
            futures_util::FutureExt::now_or_never(request.into_body().collect()).unwrap().unwrap().to_bytes();
        Ok((line, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    #[test]
    fn fields_go_where_the_registry_says() {
        let (line, body) = built("task.retry", json!({"taskId": "a/b c", "text": "go on"})).unwrap();
        assert_eq!((line.as_str(), body), ("POST /v1/tasks/a%2Fb%20c/retry", json!({"text": "go on"})));
        let input = json!({"roomId": "main", "limit": 20, "cursor": "a&b=ü", "taskId": null});
        let (line, body) = built("room.messages", input).unwrap();
        assert_eq!(
            (line.as_str(), body),
            ("GET /v1/rooms/main/messages?cursor=a%26b%3D%C3%BC&limit=20", Value::Null)
        );
        assert_eq!(built("daemon.status", json!({})).unwrap().0, "GET /v1/daemon");
    }

    #[test]
    fn an_input_that_does_not_fit_is_refused_here() {
        assert!(matches!(built("task.get", json!({})), Err(ClientError::Protocol(_))));
        assert!(matches!(built("task.get", json!({"taskId": ""})), Err(ClientError::Protocol(_))));
        assert!(matches!(built("task.list", json!({"status": ["done"]})), Err(ClientError::Protocol(_))));
        assert!(matches!(built("task.list", json!(7)), Err(ClientError::Protocol(_))));
        assert!(matches!(declared("task.dance"), Err(ClientError::Protocol(_))));
    }
}
