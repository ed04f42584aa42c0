//! Reads the text of a command as carefully as a policy must.
//!
//! This is no shell. What it is not sure of it calls hidden, and nothing that
//! is hidden is ever matched by an allow rule: variables, substitutions,
//! subshells, backslashes, comments, assignments, and shell characters inside
//! quotes, since nobody knows how many shells will read the text.

use serde_json::Value;

/// Characters with a meaning to some shell, besides quotes and blanks.
pub const METACHARACTERS: &str = ";&|<>(){}$`\\\n\r*?[]~#!";

/// Shells whose `-c` takes a command as one text.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];

/// Where a shell may lie so that it is taken for one. Elsewhere the same name may be anything.
const SHELL_FOLDERS: [&str; 5] = ["", "/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"];

/// Words after which a shell runs what follows.
const CONTROL_WORDS: [&str; 16] = [
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "select", "then",
    "until", "while", "[[",
];

/// A command as far as it can be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The text, trimmed; an argument list joined by blanks.
    pub text: String,
    /// Words of the single commands that it is made of.
    pub parts: Vec<Vec<String>>,
    /// Files that redirections name.
    pub redirects: Vec<String>,
    /// Whether a word may stand for other words (`*`, `~`).
    pub expands: bool,
    /// Whether it reads or writes through a redirection.
    pub redirected: bool,
    /// Why it can't be read, where it can't.
    pub hidden: Option<&'static str>,
}

impl CommandLine {
    /// Reads the `command` of a tool call: a text, or a list of arguments. A list that holds something else can't be
    /// read; `None` for anything that is neither.
    pub fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self::of_text(text)),
            Value::Array(items) => {
                let words: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                Some(words.map_or_else(|| Self::unreadable(value), |words| Self::of_arguments(&words)))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    }

    /// Reads one text, as a shell would be given it.
    pub fn of_text(text: &str) -> Self {
        let mut reader = Reader::default();
        reader.line.text = text.trim().to_owned();
        let letters: Vec<char> = reader.line.text.chars().collect();
        reader.read(&letters);
        reader.line
    }

    /// A command with the arguments that stand beside it.
    pub fn with_arguments(command: &Value, arguments: &[Value]) -> Option<Self> {
        let Value::String(program) = command else { return Self::of_value(command) };
        let words: Option<Vec<&str>> = arguments.iter().map(Value::as_str).collect();
        match words {
            // A program of several words would be split or not, as the agent likes.
            Some(words) if !program.trim().contains(char::is_whitespace) => {
                let all: Vec<&str> = std::iter::once(program.trim()).chain(words).collect();
                Some(Self::of_arguments(&all))
            }
            Some(words) => {
                let mut line = Self::of_text(
                    &std::iter::once(program.as_str()).chain(words).collect::<Vec<_>>().join(" "),
                );
                line.hidden.get_or_insert("its arguments stand apart from it");
                Some(line)
            }
            None => Some(Self::unreadable(&Value::Array(arguments.to_vec()))),
        }
    }

    /// The same, with variables set for it.
    pub fn with_variables(mut self) -> Self {
        self.hidden.get_or_insert("it comes with variables");
        self
    }

    fn unreadable(value: &Value) -> Self {
        let mut line = Self::of_text(&value.to_string());
        line.hidden.get_or_insert("it is no text");
        line
    }

    fn of_arguments(words: &[&str]) -> Self {
        if let [shell, flag, text] = words
            && SHELLS
                .iter()
                .any(|name| shell.strip_suffix(name).is_some_and(|folder| SHELL_FOLDERS.contains(&folder)))
            && flag.strip_prefix('-').and_then(|flag| flag.strip_suffix('c')).is_some_and(|more| {
                more.bytes().all(|letter| matches!(letter, b'e' | b'i' | b'l' | b'u' | b'x'))
            })
        {
            return Self::of_text(text);
        }
        let odd = |word: &&str| word.contains(|letter: char| is_special(letter) || letter.is_control());
        let hidden = if words.is_empty() || words.iter().all(|word| word.trim().is_empty()) {
            Some("it is empty")
        } else if words.iter().any(odd) {
            Some("an argument holds shell characters")
        } else {
            None
        };
        let mut line = Self { text: words.join(" "), hidden, ..Self::default() };
        line.parts.push(words.iter().map(|word| (*word).to_owned()).collect());
        line.hide_assignments();
        line
    }

    /// Whether it is made of words alone, so that an allow rule may match each of its parts.
    pub fn is_plain(&self) -> bool {
        self.hidden.is_none() && !self.expands && !self.redirected
    }

    /// Every word that may stand anywhere in the text, read twice: quotes as
    /// separators, and quotes as if they were not there. For rules that rather
    /// match too much than too little.
    pub fn rough_words(&self) -> [Vec<String>; 2] {
        let blank = |letter: char| letter.is_whitespace() || (is_special(letter) && letter != '\\');
        let split = |text: &str| {
            text.split(blank).filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<String>>()
        };
        let unquoted: String =
            self.text.chars().filter(|letter| !matches!(letter, '\'' | '"' | '\\')).collect();
        [split(&self.text), split(&unquoted)]
    }

    fn hide_assignments(&mut self) {
        let assigns =
            |part: &Vec<String>| part.first().is_none_or(|word| word.contains('=') || word.is_empty());
        let controls =
            |part: &Vec<String>| part.first().is_some_and(|word| CONTROL_WORDS.contains(&word.as_str()));
        if self.hidden.is_none() && self.parts.iter().any(assigns) {
            self.hidden = Some("a part of it begins with no program");
        }
        if self.hidden.is_none() && self.parts.iter().any(controls) {
            self.hidden = Some("it holds the control words of a shell");
        }
    }
}

fn is_special(letter: char) -> bool {
    METACHARACTERS.contains(letter) || matches!(letter, '\'' | '"')
}

#[derive(Default)]
struct Reader {
    line: CommandLine,
    part: Vec<String>,
    word: Option<String>,
    /// The next word is the file of a redirection.
    into_file: bool,
}

impl Reader {
    fn read(&mut self, letters: &[char]) {
        let mut rest = letters.iter().copied().peekable();
        while let Some(letter) = rest.next() {
            match letter {
                ' ' | '\t' => self.end_word(),
                '\'' | '"' => {
                    let inner: String = rest.by_ref().take_while(|next| *next != letter).collect();
                    // Counted again, since what is left says nothing of whether the quote was closed.
                    if inner.contains(|inside: char| METACHARACTERS.contains(inside)) {
                        self.hide("a quoted part holds shell characters");
                    }
                    self.word.get_or_insert_default().push_str(&inner);
                }
                '&' if rest.peek() == Some(&'>') => self.end_word(),
                ';' | '&' | '|' | '\n' => {
                    if matches!(rest.peek(), Some(next) if *next == letter && matches!(next, '&' | '|')) {
                        rest.next();
                    }
                    self.end_part();
                }
                '<' | '>' => {
                    self.begin_redirection();
                    while let Some(next) = rest.next_if(|next| matches!(next, '>' | '&' | '|' | '<')) {
                        if next == '<' {
                            self.hide("it holds a text of its own");
                        }
                    }
                }
                '*' | '?' | '[' | ']' | '~' => {
                    self.line.expands = true;
                    self.word.get_or_insert_default().push(letter);
                }
                '$' | '`' | '(' | ')' | '{' | '}' => {
                    self.hide("it holds variables, substitutions or groups");
                    self.word.get_or_insert_default().push(letter);
                }
                '\\' | '#' | '!' => {
                    self.hide("it holds a backslash, a comment or a negation");
                    self.word.get_or_insert_default().push(letter);
                }
                letter if letter.is_control() => self.hide("it holds control characters"),
                letter => self.word.get_or_insert_default().push(letter),
            }
        }
        for quote in ['\'', '"'] {
            if letters.iter().filter(|letter| **letter == quote).count() % 2 == 1 {
                self.hide("a quote has no end");
            }
        }
        let several = !self.line.parts.is_empty();
        self.end_word();
        if !self.part.is_empty() || !several {
            self.end_part();
        } else {
            self.hide("it ends with an operator");
        }
        if self.into_file {
            self.hide("a redirection names no file");
        }
        self.line.hide_assignments();
    }

    fn hide(&mut self, why: &'static str) {
        self.line.hidden.get_or_insert(why);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if !self.into_file {
            self.part.push(word);
            return;
        }
        self.into_file = false;
        let is_descriptor =
            word == "-" || (!word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_descriptor {
            self.line.redirects.push(word);
        }
    }

    fn begin_redirection(&mut self) {
        // The digits before it are a descriptor and no argument.
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.line.redirected = true;
        self.into_file = true;
    }

    fn end_part(&mut self) {
        self.end_word();
        let part = std::mem::take(&mut self.part);
        if part.is_empty() {
            self.hide("a part of it is empty");
        }
        self.line.parts.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<String> {
        CommandLine::of_text(text).parts.iter().map(|part| part.join(" ")).collect()
    }

    #[test]
    fn compound_commands_come_apart() {
        assert_eq!(parts("make test"), ["make test"]);
        assert_eq!(
            parts("make  'all tests' && ls|wc -l; true\nid & pwd"),
            ["make all tests", "ls", "wc -l", "true", "id", "pwd"]
        );
        assert_eq!(CommandLine::of_text("a && b").hidden, None);
    }

    #[test]
    fn what_can_not_be_read_is_hidden() {
        for text in [
            "",
            "  ",
            "ls $(id)",
            "ls `id`",
            "ls $HOME",
            "(ls)",
            "{ ls; }",
            "ls \\; id",
            "ls 'a;b'",
            "ls \"$(id)\"",
            "ls # x",
            "! ls",
            "A=1 ls",
            "ls &&",
            "ls ;; id",
            "'ls",
            "ls \"a",
            "cat <<EOF",
            "ls >",
            "ls\u{7}",
            "&& ls",
            "ls; A=1 id",
            "if true; then rm x; fi",
            "while true; do rm x; done",
            "'' ls",
        ] {
            assert!(CommandLine::of_text(text).hidden.is_some(), "{text:?} was read");
            assert!(!CommandLine::of_text(text).is_plain());
        }
    }

    #[test]
    fn redirections_name_their_files_and_expansions_are_marked() {
        let line = CommandLine::of_text("make 2>&1 >out.txt 2>>/dev/null < in");
        assert_eq!(line.parts, [["make"]]);
        assert_eq!(line.redirects, ["out.txt", "/dev/null", "in"]);
        assert!(line.redirected && !line.is_plain() && line.hidden.is_none());
        assert_eq!(CommandLine::of_text("make &> log").redirects, ["log"]);
        let line = CommandLine::of_text("ls *.rs");
        assert!(line.expands && !line.is_plain() && line.hidden.is_none());
    }

    #[test]
    fn an_argument_list_is_one_command_and_a_shells_text_is_read_as_a_text() {
        let read = |value: Value| CommandLine::of_value(&value);
        let line = read(serde_json::json!(["git", "commit", "-m", "two words"])).unwrap();
        assert_eq!(line.parts, [["git", "commit", "-m", "two words"]]);
        assert!(line.is_plain());
        let line = read(serde_json::json!(["/bin/bash", "-lc", "make && id"])).unwrap();
        assert_eq!(line.parts.len(), 2);
        for odd in [
            serde_json::json!(["git", "status; id"]),
            serde_json::json!([]),
            serde_json::json!(["A=1", "x"]),
            serde_json::json!(["a", 1]),
            serde_json::json!(["then", "rm"]),
        ] {
            assert!(!read(odd.clone()).unwrap().is_plain(), "{odd}");
        }
        assert_eq!(read(serde_json::json!({"a": 1})), None);
        // A program that only has the name of a shell, and flags that are none of `-c`, are read as they stand.
        for [shell, flag] in [["./bash", "-c"], ["/tmp/sh", "-c"], ["bash", "--exec"], ["bash", "c"]] {
            let line = read(serde_json::json!([shell, flag, "make"])).unwrap();
            assert_eq!(line.parts, [[shell, flag, "make"]]);
        }
    }

    #[test]
    fn rough_words_see_through_quotes_and_substitutions() {
        let [apart, joined] = CommandLine::of_text("echo $(r''m -rf \"/x\"); 'sudo' id").rough_words();
        assert!(
            joined.contains(&"rm".to_owned()) && apart.contains(&"sudo".to_owned()),
            "{apart:?} {joined:?}"
        );
    }
}
