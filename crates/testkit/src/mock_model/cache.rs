//! The prompt cache: how much of a request an earlier one began with.
//!
//! Providers cache a prefix by its bytes, and only from about a thousand tokens on. That is imitated, so that an agent's
//! token numbers look like those of a real provider and a changed prefix shows as what it costs.

use std::collections::VecDeque;

use sha2::{Digest, Sha256};

use super::conversation::{Api, Conversation};
use super::reply::Usage;

/// Bytes that count as one token.
const BYTES_PER_TOKEN: u64 = 4;
/// Shortest prefix that is cached, in tokens.
const SHORTEST: u64 = 1_024;
/// Requests that are remembered.
const REMEMBERED: usize = 512;

type Part = ([u8; 32], u64);

/// What earlier requests began with.
#[derive(Debug, Default)]
pub(super) struct PrefixCache {
    earlier: VecDeque<(Api, String, Vec<Part>)>,
}

impl PrefixCache {
    /// The input part of a request's usage. The request is remembered.
    pub(super) fn input_usage(&mut self, conversation: &Conversation) -> Usage {
        let parts: Vec<Part> = conversation
            .parts
            .iter()
            .map(|part| (Sha256::digest(part.as_bytes()).into(), part.len() as u64))
            .collect();
        let shared = self
            .earlier
            .iter()
            .filter(|(api, model, _)| *api == conversation.api && *model == conversation.model)
            .map(|(_, _, earlier)| shared_bytes(earlier, &parts))
            .max()
            .unwrap_or(0);
        let tokens = |bytes: u64| bytes.div_ceil(BYTES_PER_TOKEN);
        let whole = tokens(parts.iter().map(|(_, bytes)| bytes).sum::<u64>()).max(1);
        let read = Some(tokens(shared).min(whole)).filter(|read| *read >= SHORTEST).unwrap_or(0);
        let rest = whole - read;
        // Only Anthropic counts what is written to the cache apart.
        let write = if conversation.api == Api::AnthropicMessages && whole >= SHORTEST { rest } else { 0 };
        self.earlier.push_back((conversation.api, conversation.model.clone(), parts));
        if self.earlier.len() > REMEMBERED {
            self.earlier.pop_front();
        }
        Usage { input: rest - write, output: 0, cache_read: read, cache_write: write }
    }
}

/// Tokens of a text that is answered.
pub(super) fn output_tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(BYTES_PER_TOKEN).max(1)
}

fn shared_bytes(earlier: &[Part], parts: &[Part]) -> u64 {
    earlier.iter().zip(parts).take_while(|(one, other)| one == other).map(|(_, (_, bytes))| bytes).sum()
}

/// The bytes of one part, without the marks that move from request to request.
pub(super) fn part(value: &serde_json::Value) -> String {
    let mut value = value.clone();
    without_marks(&mut value);
    value.to_string()
}

fn without_marks(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(without_marks);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(without_marks),
        _ => {}
    }
}
