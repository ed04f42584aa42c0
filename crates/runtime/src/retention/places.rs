//! Names and places of what is exported and swept, all inside the data folder.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rallypoint_model::ids::{GenerationId, SessionId, TaskId};
use rallypoint_model::time::Timestamp;

/// Folder of transcripts.
pub(crate) const SESSIONS: &str = "sessions";
/// Folder of work folders of tasks that name none.
pub(crate) const SCRATCH: &str = "scratch";
/// Folder of agent processes: shims, sockets, spools.
pub(crate) const GENERATIONS: &str = "gen";

/// What stands between a transcript's name and the time at which its task was archived.
const ARCHIVED: &str = ".deleted.";
/// That time: UTC, basic ISO 8601.
const TIME_FORM: &str = "%Y%m%dT%H%M%SZ";
/// Longest name of an agent in a path.
const SLUG_CHARS: usize = 64;

/// The agent's name as the name of a folder: letters, digits, `-`, `_` and dots that do not lead.
pub(crate) fn slug(agent_id: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let text: String =
        agent_id.chars().take(SLUG_CHARS).map(|letter| if plain(letter) { letter } else { '-' }).collect();
    let text = text.trim_start_matches('.');
    if text.is_empty() { "agent".to_owned() } else { text.to_owned() }
}

/// Path of a session's transcript within the data folder.
pub(crate) fn transcript(agent_id: &str, session_id: SessionId, archived_at: Option<Timestamp>) -> String {
    let name = format!("{SESSIONS}/{}/{session_id}.jsonl", slug(agent_id));
    match archived_at {
        None => name,
        Some(at) => format!("{name}{ARCHIVED}{}", basic_time(at)),
    }
}

/// Path of a task's scratch folder within the data folder.
pub(crate) fn scratch(task_id: TaskId) -> String {
    format!("{SCRATCH}/{task_id}")
}

/// Path of a generation's folder within the data folder.
pub(crate) fn generation(id: GenerationId) -> String {
    format!("{GENERATIONS}/{}", id.folder_name())
}

fn basic_time(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .unwrap_or_default()
        .to_zoned_datetime(TimeZone::UTC)
        .strftime(TIME_FORM)
        .to_string()
}

/// When the task of an archived transcript was archived, by the transcript's name.
pub(crate) fn archived_at(name: &str) -> Option<Timestamp> {
    let (_, time) = name.rsplit_once(ARCHIVED)?;
    let time = DateTime::strptime(TIME_FORM, time).ok()?;
    Some(Timestamp(TimeZone::UTC.to_timestamp(time).ok()?.as_millisecond()))
}

/// The session of a transcript, by its name.
pub(crate) fn session_of(name: &str) -> Option<SessionId> {
    name.split_once(".jsonl")?.0.parse().ok()
}

/// Names in a folder; none where there is no real folder.
pub(crate) fn names(root: &Path, relative: &str) -> Vec<String> {
    let Ok(folder) = inside(root, relative) else { return Vec::new() };
    if !fs::symlink_metadata(&folder).is_ok_and(|metadata| metadata.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
}

/// Makes a folder of the data folder, for this user alone.
pub(crate) fn make_folder(root: &Path, relative: &str) -> io::Result<PathBuf> {
    let mut folder = root.to_owned();
    for part in inside(root, relative)?.strip_prefix(root).map_err(io::Error::other)?.components() {
        folder.push(part);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    inside(root, &format!("{relative}/x"))?;
    Ok(folder)
}

/// The whole path of something in the data folder. Refused are paths that lead elsewhere, and links on the way.
pub(crate) fn inside(root: &Path, relative: &str) -> io::Result<PathBuf> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("`{relative}` {why}"));
    let path = Path::new(relative);
    let mut parts = path.components();
    let known = [SESSIONS, SCRATCH, GENERATIONS];
    if !known.iter().any(|name| path.starts_with(name))
        || !parts.all(|part| matches!(part, Component::Normal(_)))
    {
        return Err(refused("is no place of the data folder"));
    }
    let whole = root.join(path);
    for parent in whole.ancestors().skip(1).take_while(|parent| *parent != root) {
        if fs::symlink_metadata(parent).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(refused("leads over a link"));
        }
    }
    Ok(whole)
}

/// Removes a transcript, or a whole scratch or generation folder. A link is removed itself, never what it leads to.
/// What is gone already is as good as removed.
pub(crate) fn remove(root: &Path, relative: &str) -> io::Result<()> {
    let whole = inside(root, relative)?;
    if relative.split('/').count() < 2 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{relative}` is never removed whole"),
        ));
    }
    let removed = match fs::symlink_metadata(&whole) {
        // A folder where a transcript should be is none of ours.
        Ok(metadata) if metadata.is_dir() && !relative.starts_with(SESSIONS) => fs::remove_dir_all(&whole),
        Ok(_) => fs::remove_file(&whole),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_name_of_an_agent_never_leads_out_of_its_folder() {
        assert_eq!(slug("claude"), "claude");
        assert_eq!(slug("my agent/../x"), "my-agent-..-x");
        assert_eq!(slug("../../etc"), "-..-etc");
        assert_eq!(slug(".."), "agent");
        assert_eq!(slug(""), "agent");
        assert_eq!(slug(&"x".repeat(500)).len(), SLUG_CHARS);
    }

    #[test]
    fn an_archived_transcript_names_the_second_in_utc() {
        let session = SessionId(uuid::Uuid::from_u128(1));
        let at = Timestamp(1_790_000_000_999);
        let path = transcript("shell", session, Some(at));
        assert_eq!(
            path,
            "sessions/shell/00000000-0000-0000-0000-000000000001.jsonl.deleted.20260921T141320Z"
        );
        assert_eq!(archived_at(&path), Some(Timestamp(1_790_000_000_000)));
        assert_eq!(session_of("00000000-0000-0000-0000-000000000001.jsonl"), Some(session));
        assert_eq!(archived_at("x.jsonl.deleted.soon"), None);
        assert_eq!(archived_at("x.jsonl"), None);
    }

    #[test]
    fn nothing_outside_the_three_folders_and_nothing_behind_a_link_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::write(other.path().join("kept"), "x").unwrap();
        fs::create_dir_all(root.join("scratch/one/deep")).unwrap();
        fs::create_dir(root.join("sessions")).unwrap();
        symlink(other.path(), root.join("scratch/link")).unwrap();
        symlink(other.path(), root.join("scratch/one/deep/link")).unwrap();
        symlink(other.path(), root.join("sessions/shell")).unwrap();
        for path in
            ["rally.db", "scratch", "sessions", "scratch/../rally.db", "/etc/passwd", "scratch/./../gen"]
        {
            assert!(remove(root, path).is_err(), "{path}");
        }
        assert!(remove(root, "sessions/shell/kept").is_err());
        assert!(remove(root, "scratch/link/kept").is_err());
        remove(root, "scratch/one").unwrap();
        remove(root, "scratch/link").unwrap();
        remove(root, "scratch/never").unwrap();
        assert!(other.path().join("kept").exists());
        assert!(!root.join("scratch/one").exists() && !root.join("scratch/link").exists());
    }

    #[test]
    fn a_folder_in_place_of_a_transcript_is_not_removed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("sessions/shell/a.jsonl.deleted.20200101T000000Z")).unwrap();
        assert!(remove(root.path(), "sessions/shell/a.jsonl.deleted.20200101T000000Z").is_err());
    }
}
