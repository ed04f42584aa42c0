//! Whether a rule matches a request.
//!
//! Deny and ask rules rather match too much: any path, any word of a command,
//! whatever follows. Allow rules rather match too little: every path inside its
//! pattern, every part of a command whole, and nothing that can't be read.
//! Paths are compared as text; a symbolic link that leads out of the work
//! folder can't be seen by code that may not look at the disk.

use rallypoint_model::permission::{PermissionRule, RuleEffect};

use super::command_line::CommandLine;
use super::request::{Face, Request, ToolKind};

/// Commands that no preset allows by itself: they destroy, send out, change what others own, or run what
/// another text says.
const DANGEROUS: &[&str] = &[
    ".",
    "apt *",
    "apt-get *",
    "at *",
    "bash -*",
    "builtin *",
    "busybox *",
    "cargo * publish",
    "chgrp *",
    "chmod *",
    "chown *",
    "chroot *",
    "command *",
    "crontab *",
    "csh -*",
    "curl *",
    "dash -*",
    "dd *",
    "diskutil *",
    "dnf *",
    "doas *",
    "docker *",
    "env *",
    "eval *",
    "exec *",
    "fdisk *",
    "find * -delete",
    "find * -exec*",
    "find * -fprint*",
    "find * -fls*",
    "find * -ok*",
    "fish -*",
    "ftp *",
    "gh *",
    "git * clean",
    "git * filter-branch",
    "git * push",
    "git * reset",
    "git -c*",
    "git --config-env*",
    "git --exec-path*",
    "halt",
    "ionice *",
    "iptables *",
    "kill *",
    "killall *",
    "ksh -*",
    "kubectl *",
    "launchctl *",
    "lua -*e*",
    "mkfs*",
    "mount *",
    "nc *",
    "ncat *",
    "netcat *",
    "nice *",
    "node --eval*",
    "node -*e*",
    "node -*p*",
    "nohup *",
    "npm * exec",
    "npm * publish",
    "nsenter *",
    "npx *",
    "parallel *",
    "passwd",
    "perl -*e*",
    "perl -*E*",
    "php -*r*",
    "pkill *",
    "podman *",
    "poweroff",
    "python* -*c*",
    "reboot",
    "rm *",
    "rmdir *",
    "rsync *",
    "ruby -*e*",
    "scp *",
    "script *",
    "service *",
    "setsid *",
    "sftp *",
    "sh -*",
    "shred *",
    "shutdown",
    "source *",
    "socat *",
    "ssh *",
    "stdbuf *",
    "su",
    "sudo *",
    "systemctl *",
    "tcsh -*",
    "tee *",
    "telnet *",
    "time *",
    "timeout *",
    "trap *",
    "truncate *",
    "twine *",
    "umount *",
    "unshare *",
    "watch *",
    "wget *",
    "xargs *",
    "yes",
    "zsh -*",
    "ifconfig *",
];

/// Programs that run whatever comes into them where no file is named.
const INTERPRETERS: &[&str] = &[
    "ash", "bash", "csh", "dash", "fish", "ksh", "lua", "node", "perl", "php", "python*", "ruby", "sh",
    "tcsh", "zsh",
];

/// Programs that write where their arguments say.
const WRITERS: &[&str] = &[
    "cp", "install", "ln", "mkdir", "mkfifo", "mv", "patch", "sed", "split", "tar", "touch", "unzip", "zip",
];

/// Where a path lies, by its text alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Below the work folder; absolute, without `.` and `..`.
    Inside(String),
    /// Elsewhere, or of a form that some tool may read in another way.
    Outside(String),
}

/// Says where a path lies.
pub(super) fn place(path: &str, workdir: &str) -> Place {
    let base = workdir.trim_end_matches('/');
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let mut segments: Vec<&str> = Vec::new();
    for segment in whole.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    let plain = format!("/{}", segments.join("/"));
    let odd = path.is_empty()
        || workdir.is_empty()
        || path.starts_with(['~', '$', '\'', '"'])
        // Some tool may trim it, take it for an address, or take the other slash for one.
        || path.trim() != path
        || path.contains("://")
        || path.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
        || path.contains('\\')
        || path.contains(char::is_control)
        || path.split('/').any(|segment| segment == "..");
    let below = plain.strip_prefix(base).is_some_and(|rest| rest.starts_with('/') && rest.len() > 1);
    if odd || !below { Place::Outside(plain) } else { Place::Inside(plain) }
}

/// Whether a deny or ask rule matches: any path, any word.
pub(super) fn touches(rule: &PermissionRule, request: &Request, face: &Face) -> bool {
    let path_touched = |path: &str| {
        let (Place::Inside(plain) | Place::Outside(plain)) = place(path, &request.workdir);
        let fits = |pattern: &String| {
            pattern == path || path_fits(pattern, &plain, &request.workdir, Reach::Anywhere)
        };
        rule.paths.iter().any(fits)
    };
    let command = request.command.as_ref().filter(|_| face.runs);
    let words = command.map(CommandLine::rough_words).unwrap_or_default();
    // `--file=.env` names a path too.
    let named =
        words.iter().flatten().flat_map(|word| [word.as_str(), word.rsplit('=').next().unwrap_or(word)]);
    matches_tool(rule, face)
        && (rule.paths.is_empty() || request.paths.iter().map(String::as_str).chain(named).any(path_touched))
        && (rule.commands.is_empty()
            || rule.commands.iter().any(|pattern| words.iter().any(|words| occurs(pattern, words))))
}

/// The first of the allow rules that together cover a face, by its place.
pub(super) fn allows(rules: &[PermissionRule], request: &Request, face: &Face) -> Option<usize> {
    let fitting: Vec<(usize, &PermissionRule)> = rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| rule.effect == RuleEffect::Allow && matches_tool(rule, face))
        .filter(|(_, rule)| rule.paths.is_empty() || all_paths_fit(rule, request))
        .collect();
    let whole = fitting.iter().find(|(_, rule)| rule.commands.is_empty()).map(|(number, _)| *number);
    if whole.is_some() {
        return whole.filter(|_| !may_hide_what_is_named(rules, request, face));
    }
    let command = request.command.as_ref().filter(|command| face.runs && command.is_plain())?;
    let rule_of = |part: &Vec<String>| {
        let fits = |rule: &PermissionRule| rule.commands.iter().any(|pattern| fits_whole(pattern, part));
        fitting.iter().find(|(_, rule)| fits(rule)).map(|(number, _)| *number)
    };
    let covered: Option<Vec<usize>> = command.parts.iter().map(rule_of).collect();
    covered?.into_iter().next()
}

/// Whether deny or ask rules name commands or paths and the request does not let them be seen. What allows a whole
/// kind of tool does not allow that, else a rule beside it would hold for honest requests only.
fn may_hide_what_is_named(rules: &[PermissionRule], request: &Request, face: &Face) -> bool {
    let mut strict =
        rules.iter().filter(|rule| rule.effect != RuleEffect::Allow && matches_tool(rule, face)).peekable();
    if strict.peek().is_none() {
        return false;
    }
    if face.runs {
        let unread = request.command.as_ref().is_none_or(|command| command.hidden.is_some());
        return unread && strict.any(|rule| !rule.commands.is_empty() || !rule.paths.is_empty());
    }
    match face.kind {
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => {
            request.paths.is_empty() && strict.any(|rule| !rule.paths.is_empty())
        }
        ToolKind::Read
        | ToolKind::Search
        | ToolKind::Execute
        | ToolKind::Think
        | ToolKind::Fetch
        | ToolKind::SwitchMode
        | ToolKind::Other => false,
    }
}

/// Whether a command that can be read is one that no preset allows by itself.
pub(super) fn is_dangerous(command: &CommandLine, workdir: &str) -> bool {
    command.parts.iter().any(|part| {
        DANGEROUS.iter().any(|pattern| begins(&words_of(pattern), part))
            || reads_its_program(part)
            || writes_elsewhere(part, workdir)
    })
}

fn is_one_of(names: &[&str], program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    names.iter().any(|pattern| wildcard(pattern, name))
}

/// `… | sh`: what it runs stands nowhere.
fn reads_its_program(part: &[String]) -> bool {
    let Some((program, arguments)) = part.split_first() else { return false };
    is_one_of(INTERPRETERS, program) && arguments.iter().all(|word| word.starts_with('-'))
}

/// A program that writes, with an argument that leads out of the work folder.
fn writes_elsewhere(part: &[String], workdir: &str) -> bool {
    let Some((program, arguments)) = part.split_first() else { return false };
    let leads_out = |word: &str| {
        (word.starts_with(['/', '~']) || word.split('/').any(|segment| segment == ".."))
            && !matches!(place(word, workdir), Place::Inside(_))
    };
    is_one_of(WRITERS, program)
        && arguments
            .iter()
            .any(|word| leads_out(word) || word.split_once('=').is_some_and(|(_, to)| leads_out(to)))
}

fn matches_tool(rule: &PermissionRule, face: &Face) -> bool {
    rule.tools.is_empty() || rule.tools.iter().any(|tool| tool == "*" || tool == face.kind.as_str())
}

fn all_paths_fit(rule: &PermissionRule, request: &Request) -> bool {
    let fits = |path: &String| {
        let (plain, whole_patterns_only) = match place(path, &request.workdir) {
            Place::Inside(plain) => (plain, false),
            // Outside, only a pattern that says so, and a path without tricks.
            Place::Outside(plain) if plain == path.trim_end_matches('/') => (plain, true),
            Place::Outside(_) => return false,
        };
        rule.paths
            .iter()
            .filter(|pattern| !whole_patterns_only || pattern.starts_with('/'))
            .any(|pattern| path_fits(pattern, &plain, &request.workdir, Reach::WorkFolder))
    };
    !request.paths.is_empty() && request.paths.iter().all(fits)
}

/// How far a relative pattern reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The work folder.
    WorkFolder,
    /// With `**` at its front, everywhere.
    Anywhere,
}

/// Whether a pattern matches an absolute path without `.` and `..`.
fn path_fits(pattern: &str, plain: &str, workdir: &str, reach: Reach) -> bool {
    if pattern.starts_with('/') || (reach == Reach::Anywhere && pattern.starts_with("**")) {
        return glob(pattern, plain);
    }
    let below = plain.strip_prefix(workdir.trim_end_matches('/')).filter(|rest| rest.starts_with('/'));
    below.is_some_and(|below| glob(pattern, below))
}

/// Matches folder by folder; `**` stands for any number of them, none included.
fn glob(pattern: &str, path: &str) -> bool {
    let plain = |segment: &&str| !segment.is_empty() && *segment != ".";
    let pattern: Vec<&str> = pattern.split('/').filter(plain).collect();
    let path: Vec<&str> = path.split('/').filter(plain).collect();
    // From the end: whether the rest of the pattern matches the rest of the path.
    let mut fits: Vec<bool> = (0..=path.len()).map(|from| from == path.len()).collect();
    let at = |list: &[bool], place: usize| list.get(place).copied().unwrap_or(false);
    for segment in pattern.iter().rev() {
        let mut next = vec![false; path.len().saturating_add(1)];
        for from in (0..=path.len()).rev() {
            let further = from.saturating_add(1);
            let here = if *segment == "**" {
                at(&fits, from) || at(&next, further)
            } else {
                path.get(from).is_some_and(|text| wildcard(segment, text)) && at(&fits, further)
            };
            if let Some(slot) = next.get_mut(from) {
                *slot = here;
            }
        }
        fits = next;
    }
    at(&fits, 0)
}

/// Whether a pattern with `*` and `?` is the whole text.
fn wildcard(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut place) = (0_usize, 0_usize);
    // Where the last star stood, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at = at.saturating_add(1);
            }
            Some(letter) if *letter == '?' || text.get(place) == Some(letter) => {
                at = at.saturating_add(1);
                place = place.saturating_add(1);
            }
            _ => {
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken.saturating_add(1)));
                at = star_at.saturating_add(1);
                place = taken.saturating_add(1);
            }
        }
    }
    pattern.iter().skip(at).all(|letter| *letter == '*')
}

/// The words of a pattern.
fn words_of(pattern: &str) -> Vec<&str> {
    pattern.split_whitespace().collect()
}

/// Whether the words of a pattern are a whole command; a last `*` takes any further words.
fn fits_whole(pattern: &str, words: &[String]) -> bool {
    let pattern = words_of(pattern);
    let (head, open) = match pattern.split_last() {
        Some((&"*", head)) if !head.is_empty() => (head, true),
        _ => (pattern.as_slice(), false),
    };
    let length_fits = if open { words.len() >= head.len() } else { words.len() == head.len() };
    length_fits && head.iter().zip(words).all(|(pattern, word)| wildcard(pattern, word))
}

/// Whether the words of a pattern occur anywhere in a text.
fn occurs(pattern: &str, words: &[String]) -> bool {
    let pattern = words_of(pattern);
    (0..words.len()).any(|from| begins(&pattern, words.get(from..).unwrap_or_default()))
}

/// Whether words begin as a pattern says, the program by any path; what
/// follows does not matter, and a `*` between words stands for any words.
fn begins(pattern: &[&str], words: &[String]) -> bool {
    let head = match pattern.split_last() {
        Some((&"*", head)) if !head.is_empty() => head,
        _ => pattern,
    };
    let (Some((program, arguments)), Some((word, rest))) = (head.split_first(), words.split_first()) else {
        return false;
    };
    let name = word.rsplit('/').next().unwrap_or(word);
    (wildcard(program, word) || wildcard(program, name)) && follow(arguments, rest)
}

/// Whether patterns match words from the first on.
fn follow(patterns: &[&str], words: &[String]) -> bool {
    match patterns.split_first() {
        None => true,
        Some((&"*", rest)) => {
            (0..=words.len()).any(|skipped| follow(rest, words.get(skipped..).unwrap_or_default()))
        }
        Some((pattern, rest)) => words
            .split_first()
            .is_some_and(|(word, further)| wildcard(pattern, word) && follow(rest, further)),
    }
}
