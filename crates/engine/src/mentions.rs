//! Names in a text: who of a group is spoken to with `@name`.
//!
//! The rule is `/@(\w[\w-]*)/` of Anima's message router, with guards: no
//! mention stands in code, in a quotation, in an e-mail address or in a longer
//! word such as a package name.

/// Longest nickname.
const NAME_CHARS: usize = 30;

/// The names that a text speaks to, lower case, each once, in order.
pub fn mentions(text: &str) -> Vec<String> {
    let spoken = without_quotations(text);
    let chars: Vec<char> = spoken.chars().collect();
    let at = |place: usize| chars.get(place).copied();
    let mut names: Vec<String> = Vec::new();
    let mut place = 0;
    while let Some(character) = at(place) {
        let before = place.checked_sub(1).and_then(at);
        place += 1;
        if character != '@' || before.is_some_and(joins_before) {
            continue;
        }
        let begin = place;
        while at(place).is_some_and(is_of_name) {
            place += 1;
        }
        let name: String = chars.get(begin..place).unwrap_or_default().iter().collect();
        let name = name.trim_end_matches('-').to_lowercase();
        let starts = name.chars().next().is_some_and(|first| first != '-');
        if starts && !goes_on(at(place), at(place + 1)) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Whether a name can be called: lower case words of letters and digits, joined by single hyphens.
pub fn is_nickname(name: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= NAME_CHARS
        && name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && name.split('-').all(word)
}

/// `\w`, with the letters of all languages, so that a longer name is not cut into another one.
fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '-'
}

/// What in front of the sign makes it part of an address or word.
fn joins_before(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '.' | '+' | '-' | '%' | '@' | '/' | '\\')
}

/// What behind a name makes it part of an address, package or path.
fn goes_on(next: Option<char>, after: Option<char>) -> bool {
    match next {
        Some('@' | '/') => true,
        Some('.') => after.is_some_and(char::is_alphanumeric),
        _ => false,
    }
}

/// The text with code and quotations blanked out.
fn without_quotations(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut fence: Option<char> = None;
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ['`', '~'].into_iter().find(|mark| start.starts_with(&mark.to_string().repeat(3)));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) if start.starts_with('>') || line.starts_with("    ") || line.starts_with('\t') => {}
            (None, None) => kept.push_str(&spoken(line)),
        }
        kept.push('\n');
    }
    kept
}

/// One line without what stands between backticks or quotation marks. A mark without its partner is a mere sign.
fn spoken(line: &str) -> String {
    const PAIRS: [(char, char); 4] = [('`', '`'), ('"', '"'), ('“', '”'), ('«', '»')];
    let mut kept = String::new();
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        let behind = rest.get(character.len_utf8()..).unwrap_or_default();
        let end = PAIRS
            .iter()
            .find(|(open, _)| *open == character)
            .and_then(|(_, close)| behind.find(*close).map(|end| end + close.len_utf8()));
        match end {
            Some(end) => {
                kept.push(' ');
                rest = behind.get(end..).unwrap_or_default();
            }
            None => {
                kept.push(character);
                rest = behind;
            }
        }
    }
    kept
}
