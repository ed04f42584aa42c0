//! What the source of the pure crates may not contain.

use std::path::Path;

use crate::prompts::{shipped, sources};

const IMPURE: [&str; 14] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::env",
    "SystemTime",
    "Instant::now",
    "now_v7",
    "new_v4",
    "tokio",
    "rand::",
    "println!",
    "thread_local!",
    "static mut",
];

#[test]
fn decisions_and_nouns_do_no_io_read_no_clock_and_make_no_ids() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut looked_at = 0;
    let mut found = Vec::new();
    for (path, text) in sources(&crates) {
        let inside = path.strip_prefix(&crates).expect("below").to_owned();
        if inside.starts_with("engine") || inside.starts_with("model") {
            looked_at += 1;
            let code = shipped(&path, &text);
            for word in IMPURE {
                if code.contains(word) {
                    found.push(format!("{}: {word}", inside.display()));
                }
            }
        }
    }
    assert_eq!(found, [""; 0]);
    assert!(looked_at > 30, "only {looked_at} files were found");
}

#[test]
fn what_looks_impure_is_found_in_code_and_not_in_comments_or_tests() {
    let text = "//! tokio\nuse std::fs;\n#[cfg(test)]\nmod tests {\n    println!();\n}\n";
    assert_eq!(shipped(Path::new("a.rs"), text), "use std::fs;");
    assert_eq!(shipped(Path::new("a/tests.rs"), text), "");
}
