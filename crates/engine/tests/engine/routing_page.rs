//! `docs/routing.md` shows examples of the vectors, word for word.

use std::fmt::Write as _;

use rallypoint_model::routing::RoomRole;

use crate::router_vectors::{Row, rows};

const PAGE: &str = include_str!("../../../../docs/routing.md");
const BEGIN: &str = "<!-- examples: begin -->\n";
const END: &str = "<!-- examples: end -->\n";

fn example(title: &str, row: &Row) -> String {
    let mut text = format!("### {title}\n\n");
    let rooms = match (&row.session.task_room, &row.session.worktree_room) {
        (Some(task), Some(peers)) if task == peers => format!("task and worktree room `{task}`"),
        (Some(task), Some(peers)) => format!("task room `{task}`, worktree room `{peers}`"),
        (Some(task), None) => format!("task room `{task}`"),
        (None, _) => "no room".to_owned(),
    };
    let cap = row.session.cap.map(|cap| format!(", a cap of {cap}")).unwrap_or_default();
    let _ = writeln!(text, "Given {rooms}{cap}, and these events of `ada`:\n");
    for event in &row.events {
        let payload = serde_json::to_string(&event.payload).expect("serialises");
        let _ = writeln!(text, "- `{}` with `{payload}`", event.event);
    }
    text.push_str("\nthese messages stand in rooms:\n\n");
    for post in &row.posts {
        let roles: Vec<&str> = post.roles.iter().map(|role| RoomRole::as_str(*role)).collect();
        let _ = writeln!(text, "- in `{}` as {}, `{}`:\n", post.room, roles.join(" and "), post.kind);
        for line in post.text.lines() {
            let _ = writeln!(text, "      {line}");
        }
        text.push('\n');
    }
    for (why, count) in &row.kept {
        let _ = writeln!(text, "Kept in the journal alone (`{why}`): {count}.\n");
    }
    text
}

#[test]
fn the_page_on_routing_shows_the_examples_of_the_vectors() {
    let rows = rows();
    let examples: Vec<String> =
        rows.iter().filter_map(|row| Some(example(row.example.as_deref()?, row))).collect();
    assert_eq!(examples.len(), 4, "one for each kind");
    let wanted = examples.concat();
    let shown = PAGE.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).map(|(shown, _)| shown);
    assert_eq!(shown, Some(wanted.as_str()), "put this between the marks of docs/routing.md:\n{wanted}");
}
