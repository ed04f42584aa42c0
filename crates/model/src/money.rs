//! Money in millionths of a currency's unit, and what models cost.
//!
//! Costs are sums of very small amounts, so they are whole numbers throughout:
//! a million tokens at 3 USD are 3,000,000 millionths, one token is 3.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display, Formatter};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::usage::TokenCounts;

/// Millionths in one unit, and tokens that a price is for.
const MILLION: u64 = 1_000_000;

/// A currency by its three letters (ISO 4217).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The dollar of the United States, in which model providers publish their prices.
    pub const USD: Self = Self(*b"USD");

    /// Its letters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("???")
    }
}

impl FromStr for Currency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        match <[u8; 3]>::try_from(upper.as_bytes()) {
            Ok(letters) if letters.iter().all(u8::is_ascii_uppercase) => Ok(Self(letters)),
            _ => Err(format!("`{text}` is no currency; write three letters such as `USD`")),
        }
    }
}

impl Display for Currency {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Debug for Currency {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Currency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Currency {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Currency".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[A-Z]{3}$" })
    }
}

/// An amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Money {
    /// Of what.
    pub currency: Currency,
    /// Millionths of one unit.
    pub micros: u64,
}

impl Display for Money {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", decimal(self.micros), self.currency)
    }
}

/// Units with at least two decimals, and as many as it takes up to six.
pub fn decimal(micros: u64) -> String {
    let (units, rest) = (micros / MILLION, micros % MILLION);
    let mut decimals = format!("{rest:06}");
    while decimals.len() > 2 && decimals.ends_with('0') {
        decimals.pop();
    }
    format!("{units}.{decimals}")
}

/// `2.50USD`, `2.5 usd` or `3` (then in USD).
impl FromStr for Money {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
        let (amount, currency) = text.split_at(end);
        let currency = if currency.is_empty() { Currency::USD } else { currency.parse()? };
        let micros = micros_of(amount.trim()).ok_or_else(|| {
            format!("`{text}` is no amount; write it as `2.50USD`, with six decimals at most")
        })?;
        Ok(Self { currency, micros })
    }
}

fn micros_of(amount: &str) -> Option<u64> {
    let (units, decimals) = amount.split_once('.').unwrap_or((amount, ""));
    if units.is_empty() || decimals.len() > 6 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: u64 = format!("{decimals:0<6}").parse().ok()?;
    units.parse::<u64>().ok()?.checked_mul(MILLION)?.checked_add(micros)
}

/// What a million tokens of one model cost, in millionths of a unit. A kind of token without a price of its own costs
/// as much as one that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    /// Tokens read.
    pub input: u64,
    /// Tokens written, thought ones included.
    pub output: u64,
    /// Tokens read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<u64>,
    /// Tokens written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<u64>,
}

impl Price {
    /// What these tokens cost, rounded up to a whole millionth.
    pub fn of(&self, tokens: &TokenCounts) -> u64 {
        let part = |count: u64, price: u64| u128::from(count) * u128::from(price);
        let sum = part(tokens.input, self.input)
            + part(tokens.output, self.output)
            + part(tokens.reasoning, self.output)
            + part(tokens.cache_read, self.cache_read.unwrap_or(self.input))
            + part(tokens.cache_write, self.cache_write.unwrap_or(self.input));
        u64::try_from(sum.div_ceil(u128::from(MILLION))).unwrap_or(u64::MAX)
    }
}

/// Prices by the name of the model.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PriceTable {
    /// Day on which they were read from the providers' public lists, such as `2025-11-01`.
    pub date: String,
    /// Price and currency by name.
    pub models: BTreeMap<String, (Price, Currency)>,
}

impl PriceTable {
    /// The price of a model. A name with a provider before it (`provider/model`) is looked up as it is and then without;
    /// a dated or `latest` name of a known model costs what that model costs. Any other name is not known: a newer model
    /// with a similar name may cost something else.
    pub fn of(&self, model: &str) -> Option<(Price, Currency)> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        [model, bare]
            .into_iter()
            .find_map(|name| self.models.get(name).or_else(|| self.undated(name)))
            .copied()
    }

    fn undated(&self, name: &str) -> Option<&(Price, Currency)> {
        let end = name.rfind(['-', '@'])?;
        let (base, mark) = (name.get(..end)?, name.get(end + 1..)?);
        let dated = mark.len() >= 6 && mark.bytes().all(|byte| byte.is_ascii_digit());
        (dated || mark == "latest").then(|| self.models.get(base)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: u64, output: u64) -> Price {
        Price { input, output, cache_read: None, cache_write: None }
    }

    #[test]
    fn amounts_are_read_and_shown_without_loss() {
        for (text, micros, shown) in [
            ("2.50USD", 2_500_000, "2.50 USD"),
            ("3", 3_000_000, "3.00 USD"),
            ("0.000001 eur", 1, "0.000001 EUR"),
            ("12.3456", 12_345_600, "12.3456 USD"),
        ] {
            let money: Money = text.parse().unwrap();
            assert_eq!((money.micros, money.to_string().as_str()), (micros, shown), "{text}");
        }
        for wrong in [
            "",
            "USD",
            ".5",
            "-1",
            "1.0000001",
            "1,5",
            "2.50US",
            "2.50 dollars",
            "1e3",
            "99999999999999999999",
        ] {
            assert!(wrong.parse::<Money>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_kind_of_token_has_its_price_and_nothing_is_rounded_away() {
        let price =
            Price { cache_read: Some(300_000), cache_write: Some(3_750_000), ..price(3_000_000, 15_000_000) };
        let tokens = TokenCounts { input: 10, output: 4, reasoning: 1, cache_read: 100, cache_write: 8 };
        // 30 + 60 + 15 + 30 + 30
        assert_eq!(price.of(&tokens), 165);
        assert_eq!(price.of(&TokenCounts { cache_read: 1, ..TokenCounts::default() }), 1);
        assert_eq!(price.of(&TokenCounts::default()), 0);
    }

    #[test]
    fn only_the_same_model_has_the_price() {
        let models = [("sonnet-4", 3), ("sonnet-4-5", 4)]
            .map(|(name, input)| (name.to_owned(), (price(input, 9), Currency::USD)));
        let table = PriceTable { date: "2025-11-01".to_owned(), models: models.into() };
        for (name, input) in [
            ("sonnet-4", Some(3)),
            ("sonnet-4-5", Some(4)),
            ("sonnet-4-20250514", Some(3)),
            ("anthropic/sonnet-4-5-latest", Some(4)),
            ("sonnet-4@20250514", Some(3)),
            ("sonnet-4-9", None),
            ("sonnet", None),
            ("", None),
        ] {
            assert_eq!(table.of(name).map(|(price, _)| price.input), input, "{name}");
        }
    }
}
