//! Files that are read and written for an agent, inside of its work folder only.
//!
//! A path is opened relative to the folder in a way that the kernel ends at the folder's border, links included
//! (`openat2` with `RESOLVE_BENEATH`); looking first and opening then would leave a gap between the two.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use rallypoint_acp::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError};
use rallypoint_model::agent_io::FileAsk;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use serde_json::{Value, json};

/// Does what is asked and gives the result that the agent gets.
///
/// A write that is done twice leaves the file as one does: it is done before the shim takes its answer, so a restart in
/// between repeats it.
pub(crate) fn serve(ask: &FileAsk, cwd: &Path, most_bytes: u64) -> Result<Value, RpcError> {
    match ask {
        FileAsk::Read { path, line, limit } => {
            let text = read(path, cwd, most_bytes)?;
            Ok(json!({ "content": part(&text, *line, *limit) }))
        }
        FileAsk::Write { path, content } => {
            if content.len() as u64 > most_bytes {
                return Err(too_long(path, content.len() as u64, most_bytes));
            }
            let mut file = open(path, cwd, OFlags::WRONLY | OFlags::CREATE)?;
            file.set_len(0)
                .and_then(|()| file.write_all(content.as_bytes()))
                .map_err(|error| failed(path, "written", &error))?;
            Ok(json!({}))
        }
    }
}

fn read(path: &str, cwd: &Path, most_bytes: u64) -> Result<String, RpcError> {
    let file = open(path, cwd, OFlags::RDONLY)?;
    let length = file.metadata().map_err(|error| failed(path, "read", &error))?.len();
    let mut bytes = Vec::new();
    file.take(most_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| failed(path, "read", &error))?;
    if bytes.len() as u64 > most_bytes {
        return Err(too_long(path, length, most_bytes));
    }
    String::from_utf8(bytes)
        .map_err(|_| RpcError::new(INTERNAL_ERROR, format!("`{path}` is no text in UTF-8")))
}

/// Lines from a place that counts from 1, at most so many.
fn part(text: &str, line: Option<u64>, limit: Option<u64>) -> String {
    let skipped = line.map_or(0, |line| line.saturating_sub(1));
    let taken = limit.unwrap_or(u64::MAX);
    let amount = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    text.split_inclusive('\n').skip(amount(skipped)).take(amount(taken)).collect()
}

fn open(path: &str, cwd: &Path, flags: OFlags) -> Result<File, RpcError> {
    let inside = relative(path, cwd).ok_or_else(|| outside(path))?;
    let folder = openat(CWD, cwd, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| failed(path, "opened", &error.into()))?;
    // A pipe or device would block, or worse; it is looked at before anything is done with it.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let opened = openat2(&folder, &inside, flags, mode, resolve).map_err(|error| match error {
        rustix::io::Errno::XDEV | rustix::io::Errno::LOOP => outside(path),
        rustix::io::Errno::NOENT => {
            RpcError::new(RESOURCE_NOT_FOUND, format!("`{path}` or its folder does not exist"))
        }
        error => failed(path, "opened", &error.into()),
    })?;
    let kind = fstat(&opened).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if !matches!(kind, Ok(FileType::RegularFile)) {
        return Err(RpcError::new(INVALID_PARAMS, format!("`{path}` is no file")));
    }
    Ok(File::from(opened))
}

/// The path below the work folder, under the name that it was given or the one that it has without links.
fn relative(path: &str, cwd: &Path) -> Option<PathBuf> {
    let path = Path::new(path);
    let given = path.strip_prefix(cwd).ok().map(Path::to_owned);
    let inside = given.or_else(|| {
        let real = std::fs::canonicalize(cwd).ok()?;
        path.strip_prefix(real).ok().map(Path::to_owned)
    })?;
    let plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
    (plain && inside.components().next().is_some()).then_some(inside)
}

fn outside(path: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("`{path}` is not in the work folder"))
}

fn failed(path: &str, what: &str, error: &std::io::Error) -> RpcError {
    RpcError::new(INTERNAL_ERROR, format!("`{path}` can't be {what}: {error}"))
}

fn too_long(path: &str, bytes: u64, most: u64) -> RpcError {
    RpcError::new(
        INVALID_PARAMS,
        format!("`{path}` has {bytes} bytes, the limit `servedFileBytes` is {most}"),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn read_of(path: &Path, cwd: &Path) -> Result<Value, i64> {
        let ask = FileAsk::Read { path: path.display().to_string(), line: None, limit: None };
        serve(&ask, cwd, 100).map_err(|error| error.code)
    }

    fn write_of(path: &Path, cwd: &Path, content: &str) -> Result<Value, i64> {
        let ask = FileAsk::Write { path: path.display().to_string(), content: content.to_owned() };
        serve(&ask, cwd, 100).map_err(|error| error.code)
    }

    #[test]
    fn files_in_the_work_folder_are_read_and_written() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        let file = cwd.join("a.txt");
        assert_eq!(read_of(&file, cwd), Err(RESOURCE_NOT_FOUND));
        assert_eq!(write_of(&file, cwd, "one\ntwo\nthree\n"), Ok(json!({})));
        assert_eq!(write_of(&file, cwd, "1\n2\n3\n"), Ok(json!({})));
        assert_eq!(read_of(&file, cwd), Ok(json!({"content": "1\n2\n3\n"})));
        let ask = FileAsk::Read { path: file.display().to_string(), line: Some(2), limit: Some(1) };
        assert_eq!(serve(&ask, cwd, 100).unwrap(), json!({"content": "2\n"}));
        assert_eq!(write_of(&file, cwd, &"x".repeat(101)), Err(INVALID_PARAMS));
        std::fs::write(&file, "x".repeat(101)).unwrap();
        assert_eq!(read_of(&file, cwd), Err(INVALID_PARAMS));
    }

    #[test]
    fn nothing_outside_of_it_is_reached_by_any_way() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path().join("work");
        let secret = folder.path().join("secret");
        std::fs::create_dir(&cwd).unwrap();
        std::fs::write(&secret, "hidden").unwrap();
        symlink(&secret, cwd.join("file-link")).unwrap();
        symlink(folder.path(), cwd.join("folder-link")).unwrap();
        symlink("..", cwd.join("up-link")).unwrap();
        for path in [
            secret.clone(),
            cwd.join("../secret"),
            cwd.join("file-link"),
            cwd.join("folder-link/secret"),
            cwd.join("up-link/secret"),
            PathBuf::from("secret"),
            cwd.clone(),
        ] {
            assert_eq!(read_of(&path, &cwd), Err(INVALID_PARAMS), "{path:?}");
            assert_eq!(write_of(&path, &cwd, "changed"), Err(INVALID_PARAMS), "{path:?}");
        }
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "hidden");
    }

    #[test]
    fn a_link_that_stays_inside_is_followed_and_a_pipe_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        std::fs::write(cwd.join("a"), "inside").unwrap();
        symlink("a", cwd.join("link")).unwrap();
        assert_eq!(read_of(&cwd.join("link"), cwd), Ok(json!({"content": "inside"})));
        rustix::fs::mknodat(CWD, cwd.join("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(read_of(&cwd.join("pipe"), cwd), Err(INVALID_PARAMS));
    }
}
