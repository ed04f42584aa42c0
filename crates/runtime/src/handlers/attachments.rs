//! Files of a task that is being made: read, looked at, and bounded.

use std::io::Read;
use std::path::Path;

use rallypoint_engine::text::one_line;
use rallypoint_model::attachment::{Attachment, AttachmentContent, NewAttachment};
use rallypoint_model::limits::Limits;
use rallypoint_model::refusal::{Refusal, RefusalCode};
use rallypoint_ops::Problem;
use rallypoint_ops::types::AttachmentInput;
use rallypoint_secrets::Redactor;
use sha2::{Digest, Sha256};

/// Characters of a name that is told.
const NAME_CHARS: usize = 200;
/// Pictures that models look at, by their first bytes.
const IMAGES: [(&[u8], &str); 4] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
];

/// Reads the files. Known secrets in text are hidden before anything is stored.
pub(super) fn read(
    inputs: &[AttachmentInput],
    limits: &Limits,
    redactor: &Redactor,
) -> Result<Vec<NewAttachment>, Problem> {
    if inputs.len() > limits.attachments as usize {
        let message = format!("{} files, the limit `attachments` is {}", inputs.len(), limits.attachments);
        return Err(Refusal::new(RefusalCode::Limit, message)
            .with_hint("put them into the work folder and name them in the goal")
            .into());
    }
    inputs.iter().map(|input| file(Path::new(&input.path), limits, redactor)).collect()
}

fn file(path: &Path, limits: &Limits, redactor: &Redactor) -> Result<NewAttachment, Problem> {
    let shown = path.display().to_string();
    let refused = |what: String| {
        Problem::from(
            Refusal::new(RefusalCode::Invalid, format!("the file `{shown}` {what}"))
                .with_hint("name a file that can be read with `--attach FILE`"),
        )
    };
    if !path.is_absolute() {
        return Err(refused("is not an absolute path".to_owned()));
    }
    let metadata = std::fs::metadata(path).map_err(|error| refused(format!("can't be read: {error}")))?;
    if !metadata.is_file() {
        return Err(refused("is no file".to_owned()));
    }
    // One byte more than may be tells that there is more, also of a file that grows.
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(limits.attachment_bytes.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| refused(format!("can't be read: {error}")))?;
    if bytes.len() as u64 > limits.attachment_bytes {
        let message = format!(
            "the file `{shown}` has {} bytes, the limit `attachmentBytes` is {}",
            metadata.len().max(bytes.len() as u64),
            limits.attachment_bytes
        );
        return Err(Refusal::new(RefusalCode::Limit, message)
            .with_hint("put it into the work folder and name it in the goal")
            .into());
    }
    let (content, mime_type) = kind_of(path, &bytes);
    if let (AttachmentContent::Text, Ok(text)) = (content, std::str::from_utf8(&bytes)) {
        bytes = redactor.redact(text).into_owned().into_bytes();
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let attachment = Attachment {
        digest,
        bytes: bytes.len() as u64,
        content,
        mime_type: mime_type.to_owned(),
        name: one_line(&name, NAME_CHARS),
        path: shown,
    };
    Ok(NewAttachment { attachment, bytes })
}

/// What a file is, by its first bytes; text by its ending where that says more.
fn kind_of(path: &Path, bytes: &[u8]) -> (AttachmentContent, &'static str) {
    let image = IMAGES.iter().find(|(magic, _)| bytes.starts_with(magic));
    // The container of one kind of picture holds sound and film as well.
    let image = image.filter(|(magic, _)| *magic != b"RIFF" || bytes.get(8..12) == Some(b"WEBP"));
    if let Some((_, mime_type)) = image {
        return (AttachmentContent::Image, mime_type);
    }
    if bytes.contains(&0) || std::str::from_utf8(bytes).is_err() {
        return (AttachmentContent::Binary, "application/octet-stream");
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let mime_type = match ending.to_ascii_lowercase().as_str() {
        "md" => "text/markdown",
        "json" => "application/json",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        _ => "text/plain",
    };
    (AttachmentContent::Text, mime_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_content() {
        for (name, bytes, content, mime_type) in [
            ("a.txt", &b"\x89PNG\r\n\x1a\nrest"[..], AttachmentContent::Image, "image/png"),
            ("a", b"\xff\xd8\xff\xe0", AttachmentContent::Image, "image/jpeg"),
            ("a", b"RIFF\0\0\0\0WEBPx", AttachmentContent::Image, "image/webp"),
            ("a", b"RIFF\0\0\0\0WAVEx", AttachmentContent::Binary, "application/octet-stream"),
            ("a.png", b"no picture", AttachmentContent::Text, "text/plain"),
            ("a.MD", b"# x", AttachmentContent::Text, "text/markdown"),
            ("a.txt", b"a\0b", AttachmentContent::Binary, "application/octet-stream"),
            ("a.txt", b"\xff\xfe", AttachmentContent::Binary, "application/octet-stream"),
            ("a.txt", b"", AttachmentContent::Text, "text/plain"),
        ] {
            assert_eq!(kind_of(Path::new(name), bytes), (content, mime_type), "{name} {bytes:?}");
        }
    }
}
