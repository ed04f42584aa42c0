//! Finds known forms in text, and the tail of a text that may yet become one.
//!
//! One automaton (Aho and Corasick's) answers both: its state after the last byte stands for the longest tail that
//! begins some form. Hits that overlap are joined to one region, because hiding only the first of them would leave
//! the rest of the second in clear.
//!
//! The compact table of the automaton is chosen on purpose: the fast one needs some hundred bytes for each byte of each
//! form, which for a few private keys is hundreds of megabytes.

use std::collections::HashMap;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, BuildError, Input, MatchError, MatchKind};
use thiserror::Error;

/// Why no automaton could be built. Both mean that there is far too much to look for.
#[derive(Debug, Error)]
pub(crate) enum MatcherError {
    #[error("the known forms are too large to search for: {0}")]
    Build(#[from] BuildError),
    #[error("the search cannot be started: {0}")]
    Start(#[from] MatchError),
}

/// A form to look for, and the index of the secret it belongs to.
pub(crate) struct Form {
    pub(crate) text: String,
    pub(crate) owner: usize,
}

/// A stretch of text, in bytes, covered by one hit or by several that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The secret of the longest hit at the start of the region.
    pub(crate) owner: usize,
}

pub(crate) struct Matcher {
    automaton: NFA,
    start: StateID,
    owners: Vec<usize>,
    /// For every state: the length in bytes of the longest tail that begins a form and is not a whole one.
    open_tails: HashMap<StateID, usize>,
}

impl Matcher {
    pub(crate) fn new(forms: &[Form]) -> Result<Self, MatcherError> {
        let automaton = NFA::builder()
            .match_kind(MatchKind::Standard)
            .build(forms.iter().map(|form| form.text.as_bytes()))?;
        let start = automaton.start_state(Anchored::No)?;
        let open_tails = open_tails(&automaton, start, forms);
        Ok(Self { automaton, start, owners: forms.iter().map(|form| form.owner).collect(), open_tails })
    }

    pub(crate) fn contains_form(&self, text: &str) -> bool {
        self.search_from(text).is_some()
    }

    /// The place from which a scan finds every hit; none if there is no hit. This is the fast way past clean text.
    pub(crate) fn search_from(&self, text: &str) -> Option<usize> {
        match self.automaton.try_find(&Input::new(text).earliest(true)) {
            Ok(hit) => hit.map(|hit| hit.end().saturating_sub(self.automaton.max_pattern_len())),
            // Only a search of another kind than the automaton's can fail. Scanning everything is the safe answer.
            Err(_) => Some(0),
        }
    }

    pub(crate) fn scan(&self, at: usize) -> Scan<'_> {
        Scan { matcher: self, state: self.start, at, regions: Vec::new() }
    }

    /// Length of the longest tail of `text` that begins a form and is not a whole one, in bytes.
    pub(crate) fn open_tail(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let from = bytes.len().saturating_sub(self.automaton.max_pattern_len());
        let tail = bytes.get(from..).unwrap_or(bytes);
        self.open_tail_of(walk(&self.automaton, self.start, tail))
    }

    fn open_tail_of(&self, state: StateID) -> usize {
        self.open_tails.get(&state).copied().unwrap_or(0)
    }

    /// The longest form that ends in this state.
    fn longest_hit(&self, state: StateID) -> Option<(usize, usize)> {
        (0..self.automaton.match_len(state))
            .map(|index| self.automaton.match_pattern(state, index))
            .max_by_key(|pattern| self.automaton.pattern_len(*pattern))
            .map(|pattern| {
                let owner = self.owners.get(pattern.as_usize()).copied().unwrap_or(0);
                (self.automaton.pattern_len(pattern), owner)
            })
    }
}

/// One pass over text that may come in pieces.
pub(crate) struct Scan<'matcher> {
    matcher: &'matcher Matcher,
    state: StateID,
    at: usize,
    regions: Vec<Region>,
}

impl Scan<'_> {
    pub(crate) fn feed(&mut self, text: &str) {
        let automaton = &self.matcher.automaton;
        for byte in text.bytes() {
            self.state = automaton.next_state(Anchored::No, self.state, byte);
            self.at += 1;
            if automaton.is_match(self.state) {
                self.note_hit();
            }
        }
    }

    /// The regions so far, in order, none overlapping another.
    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// The place before which nothing can change any more: no form that is still open begins before it.
    pub(crate) fn settled(&self) -> usize {
        self.at.saturating_sub(self.matcher.open_tail_of(self.state))
    }

    fn note_hit(&mut self) {
        let Some((length, owner)) = self.matcher.longest_hit(self.state) else {
            return;
        };
        let mut region = Region { start: self.at.saturating_sub(length), end: self.at, owner };
        while let Some(earlier) = self.regions.pop_if(|earlier| earlier.end > region.start) {
            // At the same start the new hit is the longer one and gives the name.
            if earlier.start < region.start {
                region.start = earlier.start;
                region.owner = earlier.owner;
            }
        }
        self.regions.push(region);
    }
}

fn walk(automaton: &NFA, start: StateID, bytes: &[u8]) -> StateID {
    bytes.iter().fold(start, |state, byte| automaton.next_state(Anchored::No, state, *byte))
}

/// A state is a node in the tree of all forms, so its depth is the length of the tail it stands for. A leaf is a whole
/// form: for it the next shorter tail counts, which is the state reached without the form's first byte. Leaves are
/// taken in order of length, so that this state is known already.
fn open_tails(automaton: &NFA, start: StateID, forms: &[Form]) -> HashMap<StateID, usize> {
    let mut tails = HashMap::new();
    for form in forms {
        let mut state = start;
        for (index, byte) in form.text.bytes().enumerate() {
            state = automaton.next_state(Anchored::No, state, byte);
            if index + 1 < form.text.len() {
                tails.insert(state, index + 1);
            }
        }
    }
    let mut by_length: Vec<&Form> = forms.iter().collect();
    by_length.sort_by_key(|form| form.text.len());
    for form in by_length {
        let leaf = walk(automaton, start, form.text.as_bytes());
        if !tails.contains_key(&leaf) {
            let shorter = walk(automaton, start, form.text.as_bytes().get(1..).unwrap_or_default());
            let tail = tails.get(&shorter).copied().unwrap_or(0);
            tails.insert(leaf, tail);
        }
    }
    tails
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(forms: &[&str]) -> Result<Matcher, MatcherError> {
        let forms: Vec<Form> =
            forms.iter().enumerate().map(|(owner, text)| Form { text: (*text).to_owned(), owner }).collect();
        Matcher::new(&forms)
    }

    fn regions(matcher: &Matcher, text: &str) -> Vec<(usize, usize, usize)> {
        let mut scan = matcher.scan(0);
        scan.feed(text);
        scan.regions().iter().map(|region| (region.start, region.end, region.owner)).collect()
    }

    #[test]
    fn the_longest_hit_at_a_start_gives_the_name() -> Result<(), MatcherError> {
        let matcher = matcher(&["abcdef", "abcdefgh", "cdefgh"])?;
        assert_eq!(regions(&matcher, "xabcdefghx"), [(1, 9, 1)]);
        assert_eq!(regions(&matcher, "xabcdefx"), [(1, 7, 0)]);
        Ok(())
    }

    #[test]
    fn overlapping_hits_are_one_region_and_adjacent_ones_two() -> Result<(), MatcherError> {
        let matcher = matcher(&["abcdef", "defghi"])?;
        assert_eq!(regions(&matcher, "abcdefghi"), [(0, 9, 0)]);
        assert_eq!(regions(&matcher, "abcdefdefghi"), [(0, 6, 0), (6, 12, 1)]);
        Ok(())
    }

    #[test]
    fn a_late_long_hit_swallows_earlier_short_ones() -> Result<(), MatcherError> {
        let matcher = matcher(&["cc", "ee", "abccddeeff"])?;
        assert_eq!(regions(&matcher, "abccddeeff"), [(0, 10, 2)]);
        Ok(())
    }

    #[test]
    fn open_tail_is_the_longest_proper_beginning() -> Result<(), MatcherError> {
        let matcher = matcher(&["abcabd", "bcabdxyz", "abc"])?;
        for (text, length) in
            [("", 0), ("zzz", 0), ("za", 1), ("abcab", 5), ("abcabd", 5), ("abcabcab", 5), ("abc", 3)]
        {
            assert_eq!(matcher.open_tail(text), length, "{text}");
        }
        Ok(())
    }

    #[test]
    fn a_whole_form_that_ends_others_leaves_no_open_tail() -> Result<(), MatcherError> {
        let matcher = matcher(&["xyabc", "yabc", "abc"])?;
        assert_eq!(matcher.open_tail("xyabc"), 0);
        assert_eq!(matcher.open_tail("xyab"), 4);
        Ok(())
    }
}
