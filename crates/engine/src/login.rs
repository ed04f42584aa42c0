//! Whether an agent's error says that somebody has to log in.
//!
//! The Agent Client Protocol has one code for it (-32000), and agents that
//! don't use it: they answer with an internal error, a code of their own, or
//! the provider's HTTP status in words. A wrong guess costs a person one look
//! at the agent's words, which are shown either way; a missed one costs a
//! retry that cannot help.

/// JSON-RPC code of "authentication required" in the Agent Client Protocol.
pub const AUTH_REQUIRED: i64 = -32000;

/// Words that providers and agents use, in lower case.
const PHRASES: [&str; 19] = [
    "authentication required",
    "authentication failed",
    "authentication error",
    "authentication_error",
    "not authenticated",
    "unauthenticated",
    "unauthorized",
    "not logged in",
    "login required",
    "log in to",
    "please log in",
    "please login",
    "invalid api key",
    "invalid_api_key",
    "incorrect api key",
    "invalid x-api-key",
    "missing api key",
    "no api key",
    "token has expired",
];

/// Words before which a bare `401` is the HTTP status and no other number.
const STATUS_WORDS: [&str; 5] = ["http", "status", "error", "code", "api"];

/// Whether an error of an agent asks for a login.
pub fn asks_for_login(code: i64, message: &str) -> bool {
    if code == AUTH_REQUIRED {
        return true;
    }
    let message = message.to_lowercase();
    PHRASES.iter().any(|phrase| message.contains(phrase)) || names_status_401(&message)
}

/// `401` as a number of its own, after a word that says that it is a status, or first of all.
fn names_status_401(message: &str) -> bool {
    let words: Vec<&str> =
        message.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().any(|(place, word)| {
        let before = place.checked_sub(1).and_then(|place| words.get(place));
        *word == "401" && before.is_none_or(|before| STATUS_WORDS.contains(before))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_trouble_is_recognised_in_all_its_disguises() {
        for (code, message) in [
            (-32000, "whatever"),
            (-32603, "Internal error: 401 Incorrect API key provided"),
            (-31002, "API error from mistral: status 401"),
            (-32603, "Not logged in. Please run the program once."),
            (-32603, "HTTP 401"),
            (-32603, "401 {\"type\":\"error\"}"),
            (-32603, "{\"type\":\"authentication_error\"}"),
            (500, "Unauthorized"),
        ] {
            assert!(asks_for_login(code, message), "{code} {message}");
        }
    }

    #[test]
    fn other_trouble_asks_for_no_login() {
        for message in [
            "Internal error",
            "HTTP 500",
            "line 401 of the file is too long",
            "took 401 ms",
            "the rate limit of 14010 is reached",
            "rate limited (429)",
            "",
        ] {
            assert!(!asks_for_login(-32603, message), "{message}");
        }
    }

    #[test]
    fn an_error_about_a_login_is_known_by_its_words() {
        for message in [
            "Internal error: 401 no key",
            "HTTP Unauthorized",
            "Invalid API key provided",
            "Internal error: {\"code\":\"invalid_api_key\"}",
        ] {
            assert!(asks_for_login(-32603, message), "{message}");
        }
        for message in ["request 14012 failed", "500 try again", ""] {
            assert!(!asks_for_login(-32603, message), "{message}");
        }
    }
}
