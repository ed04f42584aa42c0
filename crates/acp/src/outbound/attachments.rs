//! Files of a prompt as content blocks.
//!
//! Shapes: Agent Client Protocol v1, "Content": pictures and resources carry their content, a resource link its address.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    BlobResourceContents, ContentBlock, EmbeddedResource, EmbeddedResourceResource, ImageContent,
    ResourceLink, TextResourceContents,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use rallypoint_model::attachment::{Attachment, AttachmentForm, PromptAttachment};

/// Contents of files by their digest. A file whose content is not here goes as its address.
pub type Contents = BTreeMap<String, Vec<u8>>;

pub(super) fn block(file: &PromptAttachment, contents: &Contents) -> ContentBlock {
    let attachment = &file.attachment;
    let uri = file_uri(&attachment.path);
    match (file.form, contents.get(&attachment.digest)) {
        (AttachmentForm::Image, Some(bytes)) => ContentBlock::Image(
            ImageContent::new(STANDARD.encode(bytes), attachment.mime_type.as_str()).uri(uri),
        ),
        (AttachmentForm::Embedded, Some(bytes)) => {
            let mime_type = attachment.mime_type.clone();
            let resource = match std::str::from_utf8(bytes) {
                Ok(text) => EmbeddedResourceResource::TextResourceContents(
                    TextResourceContents::new(text, uri).mime_type(mime_type),
                ),
                Err(_) => EmbeddedResourceResource::BlobResourceContents(
                    BlobResourceContents::new(STANDARD.encode(bytes), uri).mime_type(mime_type),
                ),
            };
            ContentBlock::Resource(EmbeddedResource::new(resource))
        }
        (AttachmentForm::Link, _) | (AttachmentForm::Image | AttachmentForm::Embedded, None) => {
            ContentBlock::ResourceLink(link(attachment, uri))
        }
    }
}

fn link(attachment: &Attachment, uri: String) -> ResourceLink {
    let size = i64::try_from(attachment.bytes).ok();
    ResourceLink::new(attachment.name.as_str(), uri).mime_type(attachment.mime_type.clone()).size(size)
}

/// The address of a file: everything but letters, digits and what RFC 3986 leaves unreserved is escaped.
fn file_uri(path: &str) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_' | b'~') {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use rallypoint_model::attachment::AttachmentContent;
    use serde_json::{Value, json};

    use super::*;

    fn sent(form: AttachmentForm, bytes: Option<&[u8]>) -> Value {
        let attachment = Attachment {
            digest: "d".to_owned(),
            bytes: 3,
            content: AttachmentContent::Text,
            mime_type: "text/plain".to_owned(),
            name: "a b.txt".to_owned(),
            path: "/w/a b.txt".to_owned(),
        };
        let contents = bytes.map(|bytes| ("d".to_owned(), bytes.to_vec())).into_iter().collect();
        serde_json::to_value(block(&PromptAttachment { attachment, form }, &contents)).unwrap()
    }

    #[test]
    fn each_form_is_a_block_of_its_own() {
        let uri = "file:///w/a%20b.txt";
        assert_eq!(
            sent(AttachmentForm::Embedded, Some(b"abc")),
            json!({"type": "resource", "resource": {"mimeType": "text/plain", "text": "abc", "uri": uri}})
        );
        assert_eq!(
            sent(AttachmentForm::Embedded, Some(b"\xff\xfe\xfd")),
            json!({"type": "resource", "resource": {"mimeType": "text/plain", "blob": "//79", "uri": uri}})
        );
        assert_eq!(
            sent(AttachmentForm::Image, Some(b"abc")),
            json!({"type": "image", "data": "YWJj", "mimeType": "text/plain", "uri": uri})
        );
        let link = json!({"type": "resource_link", "name": "a b.txt", "uri": uri, "mimeType": "text/plain", "size": 3});
        assert_eq!(sent(AttachmentForm::Link, Some(b"abc")), link);
        assert_eq!(sent(AttachmentForm::Image, None), link);
    }
}
