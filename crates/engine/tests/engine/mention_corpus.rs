//! Names in texts: `fixtures/router/mentions.json`, and what can be a name.

use proptest::prelude::*;
use rallypoint_engine::mentions::{is_nickname, mentions};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    case: String,
    text: String,
    names: Vec<String>,
}

#[test]
fn every_text_of_the_corpus_speaks_to_the_names_beside_it() {
    let rows: Vec<Row> =
        serde_json::from_str(include_str!("../../../../fixtures/router/mentions.json")).expect("a corpus");
    assert!(rows.len() > 30);
    let wrong: Vec<String> = rows
        .iter()
        .filter(|row| mentions(&row.text) != row.names)
        .map(|row| format!("{}: {:?} gives {:?}", row.case, row.text, mentions(&row.text)))
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn a_nickname_is_lower_case_words_joined_by_single_hyphens() {
    for name in ["bob", "b", "code-reader", "ada-2", "a1-b2-c3", &"a".repeat(30)] {
        assert!(is_nickname(name), "{name}");
    }
    for name in ["", " ", "Bob", "2bob", "-bob", "bob-", "a--b", "bob_2", "b ob", "bób", &"a".repeat(31)] {
        assert!(!is_nickname(name), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_name_between_spaces_is_found_in_any_text_without_marks(
        before in "[a-z ,.!?\n]{0,40}", name in "[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,4}){0,2}", after in "[a-z ,.!?]{0,40}",
    ) {
        // The last line of the text in front must not be indented like code.
        let text = format!("{before}\nx @{name} {after}");
        prop_assert_eq!(mentions(&text), vec![name]);
    }

    #[test]
    fn any_text_at_all_gives_names_without_signs_and_each_once(text in "\\PC{0,80}") {
        let names = mentions(&text);
        let unique: std::collections::BTreeSet<&String> = names.iter().collect();
        prop_assert_eq!(unique.len(), names.len());
        prop_assert!(names.iter().all(|name| !name.is_empty() && !name.contains('@')));
    }
}
