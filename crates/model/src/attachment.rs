//! Files that go to an agent with a goal.

use serde::{Deserialize, Serialize};

/// A file as it was when the task was made. Its content stands in the store under its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// SHA-256 of the stored bytes, hex.
    pub digest: String,
    /// Their number.
    pub bytes: u64,
    /// What the content is.
    pub content: AttachmentContent,
    /// Its type, such as `image/png`.
    pub mime_type: String,
    /// File name.
    pub name: String,
    /// Absolute path that it was read from.
    pub path: String,
}

/// What the content of a file is, as far as it matters for how it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentContent {
    /// Text in UTF-8.
    Text,
    /// A picture of a usual kind.
    Image,
    /// Anything else.
    Binary,
}

/// A file in a prompt, and how it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptAttachment {
    /// The file.
    pub attachment: Attachment,
    /// How.
    pub form: AttachmentForm,
}

/// How a file is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentForm {
    /// Its content as a picture.
    Image,
    /// Its content as a resource.
    Embedded,
    /// Its address, which every agent takes.
    Link,
}

/// A file with its content, before it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewAttachment {
    /// The file.
    pub attachment: Attachment,
    /// Its content.
    pub bytes: Vec<u8>,
}
