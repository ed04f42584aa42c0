//! The price table: the one that comes with the program, with the configuration's laid over it.

use std::collections::BTreeMap;

use rallypoint_model::money::{Currency, Money, Price, PriceTable};
use serde::Deserialize;

const BUILT_IN: &str = include_str!("../prices.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    date: String,
    currency: Currency,
    models: BTreeMap<String, Entry>,
}

/// Amounts for a million tokens, as text such as `"2.50"`: a number with a point would be rounded.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Entry {
    input: String,
    output: String,
    cache_read: Option<String>,
    cache_write: Option<String>,
    currency: Option<Currency>,
}

/// The built-in table with these entries added or put in place of its own. The error names what is wrong.
pub(crate) fn table(configured: &BTreeMap<String, Entry>) -> Result<PriceTable, String> {
    let file: File = toml::from_str(BUILT_IN).map_err(|error| format!("the built-in prices: {error}"))?;
    let mut table = PriceTable { date: file.date, models: BTreeMap::new() };
    for (name, entry) in file.models.iter().chain(configured) {
        let price = price(entry).map_err(|problem| format!("`prices.\"{name}\"`: {problem}"))?;
        table.models.insert(name.clone(), (price, entry.currency.unwrap_or(file.currency)));
    }
    Ok(table)
}

fn price(entry: &Entry) -> Result<Price, String> {
    let amount = |name: &str, text: &str| {
        // The currency stands beside it, for all of them.
        let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let money = text.parse::<Money>().ok().filter(|_| plain);
        money
            .map(|money| money.micros)
            .ok_or_else(|| format!("`{name}` is `{text}`; write an amount such as `\"2.50\"`"))
    };
    let optional =
        |name: &str, text: &Option<String>| text.as_deref().map(|text| amount(name, text)).transpose();
    Ok(Price {
        input: amount("input", &entry.input)?,
        output: amount("output", &entry.output)?,
        cache_read: optional("cacheRead", &entry.cache_read)?,
        cache_write: optional("cacheWrite", &entry.cache_write)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(input: &str) -> Entry {
        Entry {
            input: input.to_owned(),
            output: "1".to_owned(),
            cache_read: None,
            cache_write: None,
            currency: None,
        }
    }

    #[test]
    fn the_built_in_table_can_be_read_and_is_dated() {
        let table = table(&BTreeMap::new()).unwrap();
        assert!(table.date.parse::<jiff::civil::Date>().is_ok(), "{}", table.date);
        let (price, currency) = table.of("gpt-4o-mini").unwrap();
        assert_eq!((price.input, price.cache_read, currency.as_str()), (150_000, Some(75_000), "USD"));
    }

    #[test]
    fn a_configured_price_comes_first_and_a_wrong_one_is_named() {
        let configured = |input: &str| BTreeMap::from([("gpt-4o".to_owned(), entry(input))]);
        let changed = table(&configured("0.000001")).unwrap();
        assert_eq!(changed.of("gpt-4o").unwrap().0.input, 1);
        let wrong = table(&configured("cheap")).unwrap_err();
        assert!(wrong.contains("`prices.\"gpt-4o\"`: `input` is `cheap`"), "{wrong}");
    }
}
