//! Tokens that agents name in updates, answers and errors.

use proptest::prelude::*;
use serde_json::{Value, json};

use rallypoint_model::agent_io::{AgentInput, AgentItem};
use rallypoint_model::usage::{TokenCounts, UsageKind};

use super::{Peer, PeerState, answer, peer, prompt};

fn chunk(session: &str, tokens: u64) -> String {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""},
        "_meta": {"usage": {"inputTokens": tokens, "outputTokens": 0}}}}})
    .to_string()
}

fn opened(kind: UsageKind) -> Peer {
    let mut peer = peer(kind);
    peer.items(&answer(&json!(2), json!({"sessionId": "s"})).to_string(), 1);
    peer
}

/// What the items say was used: by calls, and by an answer.
fn used(items: &[AgentItem]) -> Vec<(u64, bool)> {
    let of = |item: &AgentItem| match item {
        AgentItem::TokensUsed { answers, tokens, .. } => Some((tokens.input, answers.is_some())),
        AgentItem::PromptAnswered { usage, .. } => usage.as_ref().map(|usage| (usage.input, true)),
        _ => None,
    };
    items.iter().filter_map(of).collect()
}

#[test]
fn each_call_of_the_own_conversation_is_told_behind_its_chunk() {
    let mut peer = opened(UsageKind::PerTurn);
    let items = peer.items(&chunk("s", 10), 2);
    let tokens = TokenCounts { input: 10, ..TokenCounts::default() };
    assert!(matches!(items[0], AgentItem::Output { .. }), "{items:?}");
    assert_eq!(items[1], AgentItem::TokensUsed { frame: 2, answers: None, tokens });
    assert!(used(&peer.items(&chunk("child", 10), 3)).is_empty());
    assert!(used(&opened(UsageKind::None).items(&chunk("s", 10), 2)).is_empty());
}

#[test]
fn what_is_told_again_while_a_session_is_loaded_is_not_used_by_the_next_turn() {
    let mut peer = Peer::new(PeerState::default(), UsageKind::PerTurn);
    peer.expect(
        2,
        &AgentInput::LoadSession { agent_session_id: "s".to_owned(), cwd: "/w".to_owned(), tools: false },
    );
    assert!(used(&peer.items(&chunk("s", 10), 1)).is_empty());
    peer.items(&answer(&json!(2), json!({})).to_string(), 2);
    // Late, and still before the prompt.
    assert!(used(&peer.items(&chunk("s", 10), 3)).is_empty());
    peer.expect(3, &prompt());
    assert_eq!(used(&peer.items(&chunk("s", 7), 4)), [(7, false)]);
    let end = answer(&json!(3), json!({"stopReason": "end_turn"})).to_string();
    assert!(used(&peer.items(&end, 5)).is_empty());
    assert!(used(&peer.items(&chunk("s", 7), 6)).is_empty(), "after the turn");
}

#[test]
fn a_turn_that_fails_keeps_the_tokens_that_it_named() {
    let usage = json!({"inputTokens": 9, "outputTokens": 1});
    let air =
        json!({"jetbrains": {"air": {"sessionFailure": {"severity": "error", "title": "High demand"}}}});
    let named = answer(&json!(3), json!({"stopReason": "end_turn", "usage": usage, "_meta": air}));
    let error = |error: Value| json!({"jsonrpc": "2.0", "id": 3, "error": error});
    let within = error(json!({"code": -32603, "message": "gone", "data": {"usage": usage}}));
    let quota = json!({"quota": {"token_count": usage}});
    let beside = error(json!({"code": -32603, "message": "gone", "data": {"_meta": quota}}));
    for line in [named, within, beside] {
        let items = opened(UsageKind::PerTurn).items(&line.to_string(), 7);
        assert_eq!(used(&items), [(9, true)], "{line}");
        assert!(matches!(items.last(), Some(AgentItem::RequestFailed { seq: 3, .. })), "{items:?}");
        assert_eq!(opened(UsageKind::None).items(&line.to_string(), 7).len(), 1);
    }
}

#[derive(Clone, Debug)]
enum Line {
    Chunk(u64),
    Prompt,
    Answer(Option<u64>),
    Error,
    /// Our own restart: the peer goes on from what it kept.
    Restart,
    /// The agent's, which loads its session again with so many chunks of history.
    Load(usize),
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = prop_oneof![
        4 => (1_u64..50).prop_map(Line::Chunk),
        3 => Just(Line::Prompt),
        3 => proptest::option::of(1_u64..50).prop_map(Line::Answer),
        1 => Just(Line::Error),
        2 => Just(Line::Restart),
        1 => (0_usize..4).prop_map(Line::Load),
    ];
    proptest::collection::vec(line, 0..40)
}

proptest! {
    #[test]
    fn tokens_are_told_once_and_only_while_a_prompt_is_open(lines in lines()) {
        let mut peer = opened(UsageKind::PerTurn);
        let (mut seq, mut open) = (4, Some(3));
        for line in lines {
            match line {
                Line::Chunk(tokens) => {
                    let expected = if open.is_some() { vec![(tokens, false)] } else { Vec::new() };
                    prop_assert_eq!(used(&peer.items(&chunk("s", tokens), 9)), expected);
                }
                Line::Prompt if open.is_none() => {
                    seq += 1;
                    open = Some(seq);
                    peer.expect(seq, &prompt());
                }
                Line::Prompt => {}
                Line::Answer(tokens) => {
                    let usage = tokens.map(|tokens| json!({"inputTokens": tokens}));
                    let result = json!({"stopReason": "end_turn", "usage": usage});
                    let was = open.take();
                    let line = answer(&json!(was.unwrap_or(seq)), result).to_string();
                    let expected: Vec<_> = tokens.filter(|_| was.is_some()).map(|it| (it, true)).into_iter().collect();
                    prop_assert_eq!(used(&peer.items(&line, 9)), expected);
                    prop_assert!(used(&peer.items(&line, 10)).is_empty(), "the same answer twice");
                }
                Line::Error => {
                    let error = json!({"code": 1, "message": "m", "data": {"usage": {"inputTokens": 5}}});
                    let line = json!({"jsonrpc": "2.0", "id": open.unwrap_or(seq), "error": error}).to_string();
                    let expected = if open.take().is_some() { vec![(5, true)] } else { Vec::new() };
                    prop_assert_eq!(used(&peer.items(&line, 9)), expected);
                }
                Line::Restart => {
                    let kept = serde_json::to_string(peer.state()).unwrap();
                    peer = Peer::new(serde_json::from_str(&kept).unwrap(), UsageKind::PerTurn);
                }
                Line::Load(chunks) => {
                    peer = Peer::new(PeerState::default(), UsageKind::PerTurn);
                    open = None;
                    seq += 1;
                    let cwd = "/w".to_owned();
                    peer.expect(seq, &AgentInput::LoadSession { agent_session_id: "s".to_owned(), cwd, tools: false });
                    for _ in 0..chunks {
                        prop_assert!(used(&peer.items(&chunk("s", 3), 9)).is_empty());
                    }
                    peer.items(&answer(&json!(seq), json!({})).to_string(), 9);
                }
            }
        }
    }
}
