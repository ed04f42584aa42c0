//! How a test steers the model: `[[mock:WORD ARGUMENTS]]` in the user's text.

/// What the model is to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Marker {
    /// `say TEXT`: answer this text.
    Say(String),
    /// `shell COMMAND`: call the tool that runs commands, whatever its name.
    Shell(String),
    /// `escalate COMMAND`: the same, asking for rights beyond the agent's sandbox where the tool knows of one.
    Escalate(String),
    /// `write PATH TEXT`: call the tool that writes files. The path has no space in it.
    Write {
        /// Absolute path.
        path: String,
        /// What is to stand there.
        content: String,
    },
    /// `mcp TOOL JSON`: call the tool whose name ends so, looking for it with the agent's tool search when it is hidden.
    Mcp {
        /// End of its name.
        tool: String,
        /// Its arguments, a JSON object.
        arguments: String,
    },
    /// `slow N`: answer in N pieces, one a tick.
    Slow(u32),
    /// `hang`: begin an answer that never ends.
    Hang,
    /// `hang-once KEY`: the same, but only to the first request with this key.
    HangOnce(String),
    /// `error STATUS`: answer with this HTTP status.
    Error(u16),
    /// `bytes N`: answer N bytes of text.
    Bytes(usize),
}

const BEGIN: &str = "[[mock:";
const END: &str = "]]";

impl Marker {
    /// The last marker in a text. One that is not understood is none.
    pub fn last_in(text: &str) -> Option<Self> {
        let start = text.rfind(BEGIN)?;
        let (body, _) = text.get(start + BEGIN.len()..)?.split_once(END)?;
        Self::parse(body.trim())
    }

    fn parse(body: &str) -> Option<Self> {
        let (word, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
        let rest = rest.trim();
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        match word {
            "say" => some(rest).map(Self::Say),
            "shell" => some(rest).map(Self::Shell),
            "escalate" => some(rest).map(Self::Escalate),
            "write" => {
                let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
                some(path).map(|path| Self::Write { path, content: content.to_owned() })
            }
            "mcp" => {
                let (tool, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
                some(tool).map(|tool| Self::Mcp { tool, arguments: arguments.to_owned() })
            }
            "slow" => rest.parse().ok().map(Self::Slow),
            "hang" => Some(Self::Hang),
            "hang-once" => some(rest).map(Self::HangOnce),
            "error" => rest.parse().ok().filter(|status| (400..600).contains(status)).map(Self::Error),
            "bytes" => rest.parse().ok().map(Self::Bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read_where_they_stand_and_the_last_one_counts() {
        let cases = [
            ("do [[mock:shell echo 'a b' > c]] now", Some(Marker::Shell("echo 'a b' > c".to_owned()))),
            ("[[mock:say one]] [[mock:slow 3]]", Some(Marker::Slow(3))),
            ("[[mock:error 401]]", Some(Marker::Error(401))),
            ("[[mock:error 200]]", None),
            (
                "[[mock:write /a/b some text]]",
                Some(Marker::Write { path: "/a/b".into(), content: "some text".into() }),
            ),
            (
                "[[mock:mcp ask_user {\"q\":1}]]",
                Some(Marker::Mcp { tool: "ask_user".into(), arguments: "{\"q\":1}".into() }),
            ),
            ("[[mock:mcp list]]", Some(Marker::Mcp { tool: "list".into(), arguments: "{}".into() })),
            ("[[mock:hang-once k]]", Some(Marker::HangOnce("k".to_owned()))),
            ("[[mock:hang]]", Some(Marker::Hang)),
            ("[[mock:bytes 12]]", Some(Marker::Bytes(12))),
            ("[[mock:dance]]", None),
            ("[[mock:shell never ended", None),
            ("no marker", None),
        ];
        for (text, marker) in cases {
            assert_eq!(Marker::last_in(text), marker, "{text}");
        }
    }
}
