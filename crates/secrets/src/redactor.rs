//! Replaces known secrets in whole texts, and tells writers of streams what they may release.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use crate::forms::all_forms;
use crate::matcher::{Form, Matcher, Region};
use crate::placeholder;
use crate::secret::{SecretSet, SecretText};
use crate::stream::RedactStream;

/// Most bytes of known forms that are searched for. A private key of 3 KB makes about 0.1 MB of forms, and a byte of
/// forms costs some 40 bytes of memory. Beyond this the redactor hides everything rather than something at random.
const MAX_FORM_BYTES: usize = 16 << 20;

/// Stands for any text when there are too many secrets to look for.
pub(crate) const ALL_HIDDEN: &str = "[redacted]";

/// Replaces every known form of every secret of a [`SecretSet`]. Cheap to clone, and never changed: more secrets make
/// a new one.
///
/// Of hits that begin together the longest counts, and hits that overlap are hidden as one under the name of the first.
/// Redacting twice gives the same text as redacting once.
#[derive(Clone)]
pub struct Redactor {
    inner: Arc<Inner>,
}

struct Inner {
    set: SecretSet,
    sight: Sight,
}

/// What the redactor looks for.
pub(crate) enum Sight {
    Nothing,
    Known(Known),
    /// The forms are too large to search for.
    Everything,
}

pub(crate) struct Known {
    pub(crate) matcher: Matcher,
    placeholders: Vec<String>,
}

impl Redactor {
    /// Builds the search for all forms of all secrets. Takes some tens of milliseconds for a private key, so build one per
    /// change of the set, not one per text.
    pub fn new(set: SecretSet) -> Self {
        Self::with_limit(set, MAX_FORM_BYTES)
    }

    /// The same secrets and more. Values too short to redact are named by [`Redactor::ignored`].
    #[must_use]
    pub fn with_added<N, V>(&self, pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<SecretText>,
    {
        let mut set = self.inner.set.clone();
        set.add_pairs(pairs);
        if set == self.inner.set { self.clone() } else { Self::new(set) }
    }

    /// Names of the values that are **not** hidden because they are too short.
    pub fn ignored(&self) -> &[String] {
        self.inner.set.ignored()
    }

    /// Whether nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.inner.set.is_empty()
    }

    /// Whether the secrets are so large that no search could be built, and every text is hidden as a whole.
    pub fn hides_everything(&self) -> bool {
        matches!(self.inner.sight, Sight::Everything)
    }

    /// The text with a placeholder for each hit; borrowed if there is none.
    pub fn redact<'text>(&self, text: &'text str) -> Cow<'text, str> {
        match &self.inner.sight {
            Sight::Nothing => Cow::Borrowed(text),
            Sight::Everything if text.is_empty() => Cow::Borrowed(text),
            Sight::Everything => Cow::Borrowed(ALL_HIDDEN),
            Sight::Known(known) => match known.matcher.search_from(text) {
                None => Cow::Borrowed(text),
                Some(from) => Cow::Owned(known.redact(text, from)),
            },
        }
    }

    /// Whether `redact` would change the text.
    pub fn contains_secret(&self, text: &str) -> bool {
        match &self.inner.sight {
            Sight::Nothing => false,
            Sight::Everything => !text.is_empty() && text != ALL_HIDDEN,
            Sight::Known(known) => known.matcher.contains_form(text),
        }
    }

    /// Length in bytes of the longest tail of `text` that begins some known form without being a whole one. A writer
    /// of a stream keeps this tail until more text arrives. Always at a character's border.
    ///
    /// A writer that also has to know about hits across its border uses [`RedactStream`] or [`Redactor::safe_split`].
    pub fn held_back(&self, text: &str) -> usize {
        match &self.inner.sight {
            Sight::Nothing => 0,
            Sight::Everything => text.len(),
            Sight::Known(known) => {
                let border = char_border(text, text.len().saturating_sub(known.matcher.open_tail(text)));
                text.len() - border
            }
        }
    }

    /// How many of the leading `pieces`, consecutive pieces of one stream, can be released now: no known form begins
    /// in them and ends, or may yet end, in the pieces after them. Each released group must be redacted as one string;
    /// the groups then join to what redacting the whole would give.
    ///
    /// A secret that overlaps itself, repeated without end (`------…`), never gives a border inside the repetition, so
    /// the caller needs a bound on what it holds; at the bound, redacting and releasing everything is safe for all
    /// complete hits.
    pub fn safe_split(&self, pieces: &[&str]) -> usize {
        let Sight::Known(known) = &self.inner.sight else {
            return pieces.len();
        };
        let mut scan = known.matcher.scan(0);
        for piece in pieces {
            scan.feed(piece);
        }
        let settled = scan.settled();
        let mut border = 0;
        let mut releasable = 0;
        for (index, piece) in pieces.iter().enumerate() {
            border += piece.len();
            if border > settled {
                break;
            }
            if !is_inside_a_region(border, scan.regions()) {
                releasable = index + 1;
            }
        }
        releasable
    }

    /// A stream that shows text as soon as it is safe.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(self.clone())
    }

    pub(crate) fn sight(&self) -> &Sight {
        &self.inner.sight
    }

    fn with_limit(set: SecretSet, max_form_bytes: usize) -> Self {
        let sight = look_for(&set, max_form_bytes);
        Self { inner: Arc::new(Inner { set, sight }) }
    }
}

impl Default for Redactor {
    /// Hides nothing.
    fn default() -> Self {
        Self::new(SecretSet::default())
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The tables hold the values byte by byte, so only the set, which hides them, is printed.
        out.debug_struct("Redactor").field("set", &self.inner.set).finish_non_exhaustive()
    }
}

impl Known {
    /// `from` is a place before the first hit.
    fn redact(&self, text: &str, from: usize) -> String {
        let from = char_border(text, from);
        let mut scan = self.matcher.scan(from);
        scan.feed(text.get(from..).unwrap_or_default());
        let mut shown = String::with_capacity(text.len());
        self.show(&mut shown, text, scan.regions(), Window { covered: 0, until: text.len() });
        shown
    }

    /// Appends the part of `text` in the window to `shown`, with a placeholder at the start of each region that begins
    /// in it, and returns how far the text is dealt with: beyond the window if a region reaches further.
    pub(crate) fn show(&self, shown: &mut String, text: &str, regions: &[Region], window: Window) -> usize {
        let mut covered = window.covered;
        for region in regions.iter().take_while(|region| region.start < window.until) {
            // A region that begins in what is covered already continues the hit before it.
            if region.start >= covered {
                shown.push_str(text.get(covered..region.start).unwrap_or_default());
                shown.push_str(self.placeholders.get(region.owner).map_or(ALL_HIDDEN, String::as_str));
            }
            covered = covered.max(region.end);
        }
        shown.push_str(text.get(covered..window.until).unwrap_or_default());
        covered.max(window.until)
    }
}

/// Places in bytes: up to `covered` a placeholder stands for the text already, from `until` on it is not settled yet.
pub(crate) struct Window {
    pub(crate) covered: usize,
    pub(crate) until: usize,
}

/// The nearest character's border at or before `place`. Forms are whole characters, so this is nearly always `place`.
pub(crate) fn char_border(text: &str, place: usize) -> usize {
    (0..=place.min(text.len())).rev().find(|border| text.is_char_boundary(*border)).unwrap_or(0)
}

fn is_inside_a_region(border: usize, regions: &[Region]) -> bool {
    let next = regions.partition_point(|region| region.end <= border);
    regions.get(next).is_some_and(|region| region.start < border)
}

fn look_for(set: &SecretSet, max_form_bytes: usize) -> Sight {
    if set.is_empty() {
        return Sight::Nothing;
    }
    let Some(forms) = known_forms(set, max_form_bytes) else {
        return Sight::Everything;
    };
    let Ok(matcher) = Matcher::new(&forms) else {
        return Sight::Everything;
    };
    let names = set.kept().iter().map(|secret| secret.name.as_str());
    let placeholders = placeholder::choose(names, &matcher, &forms);
    Sight::Known(Known { matcher, placeholders })
}

/// All forms of all secrets, each once; none if they are larger than allowed.
fn known_forms(set: &SecretSet, max_form_bytes: usize) -> Option<Vec<Form>> {
    let mut forms = BTreeMap::new();
    let mut bytes = 0;
    for (owner, secret) in set.kept().iter().enumerate() {
        for text in all_forms(secret.value.expose()) {
            let length = text.len();
            if let Entry::Vacant(place) = forms.entry(text) {
                place.insert(owner);
                bytes += length;
            }
            if bytes > max_form_bytes {
                return None;
            }
        }
    }
    Some(forms.into_iter().map(|(text, owner)| Form { text, owner }).collect())
}

#[cfg(test)]
mod tests;
