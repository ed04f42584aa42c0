//! Frames that no schema knows, broken ones, and what agents print between them.

use serde_json::json;

use rallypoint_acp::agent_side::Turn;

pub(super) fn junk(turn: &Turn) {
    turn.client.send_raw(b"\x1b[33mwarning:\x1b[0m cache is cold\n");
    turn.send_message_chunk("between ");
    turn.client.send_raw(b"\n   \n{\"level\":\"info\",\"id\":1,\"method\":\"GET\"}\n[1,2]\n\"text\"\n");
    turn.send_message_chunk("the lines");
    turn.client.send_raw(b"{\"jsonrpc\":\"2.0\",\"method\":\n");
}

pub(super) fn unknown_kinds(turn: &Turn) {
    turn.send_update(json!({"sessionUpdate": "hologram", "depth": 3}));
    turn.send_update(
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "smell", "of": "coffee"}}),
    );
    turn.send_update(json!({
        "sessionUpdate": "tool_call_update", "toolCallId": "t1", "kind": "teleport", "status": "dreaming",
        "content": [{"type": "sculpture"}], "vendorField": true,
    }));
    turn.client.notify("vendor/notify", json!({"sessionId": turn.session.session_id}));
    let said = match turn.client.request("vendor/ask", json!({"anything": "to declare"})) {
        Ok(_) => "it was answered".to_owned(),
        Err(error) => format!("it was answered with {}", error.code),
    };
    turn.send_message_chunk(&said);
}

pub(super) fn bad_utf8(turn: &Turn) {
    let frame = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": turn.session.session_id,
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "broken [HERE] text"}},
    }});
    let (before, after) =
        frame.to_string().split_once("HERE").map_or_else(Default::default, |(before, after)| {
            (before.as_bytes().to_vec(), after.as_bytes().to_vec())
        });
    turn.client.send_raw(&[&before[..], b"\xff\xc3\x28", &after[..], b"\n"].concat());
}

/// Three bytes at a time; a longer character is not cut.
pub(super) fn split(turn: &Turn, text: &str) {
    let mut chunk = String::new();
    for character in text.chars() {
        if !chunk.is_empty() && chunk.len() + character.len_utf8() > 3 {
            turn.send_message_chunk(&std::mem::take(&mut chunk));
        }
        chunk.push(character);
    }
    turn.send_message_chunk(&chunk);
}
