//! Where everything is kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The absolute data folder: what was given, else `RALLY_HOME`, else `rallypoint` in the XDG data folder.
pub(crate) fn resolve(
    given: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, Failure> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let chosen = match given {
        Some(folder) if folder.as_os_str().is_empty() => {
            return Err(
                Failure::usage("`--data` is empty").with_hint("name a folder, or leave the option out")
            );
        }
        Some(folder) => folder.to_owned(),
        None => set("RALLY_HOME")
            .or_else(|| {
                // A relative one is to be ignored, says the base directory specification.
                let xdg = set("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
                xdg.or_else(|| set("HOME").map(|home| home.join(".local/share")))
                    .map(|base| base.join("rallypoint"))
            })
            .ok_or_else(|| {
                Failure::usage("there is no data folder: neither `RALLY_HOME` nor `HOME` is set")
                    .with_hint("name one with `--data DIR`")
            })?,
    };
    std::path::absolute(&chosen).map_err(|error| {
        Failure::usage(format!("the data folder `{}` can't be found: {error}", chosen.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(given: Option<&str>, variables: &[(&str, &str)]) -> Option<String> {
        let lookup = |name: &str| {
            variables.iter().find(|(each, _)| *each == name).map(|(_, value)| OsString::from(*value))
        };
        resolve(given.map(Path::new), lookup).ok().map(|path| path.display().to_string())
    }

    #[test]
    fn the_first_one_that_is_set_counts() {
        let all = [("RALLY_HOME", "/r"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(resolved(Some("/d"), &all).unwrap(), "/d");
        assert_eq!(resolved(None, &all).unwrap(), "/r");
        assert_eq!(resolved(None, &[("RALLY_HOME", ""), ("XDG_DATA_HOME", "/x")]).unwrap(), "/x/rallypoint");
        let relative = [("XDG_DATA_HOME", "x"), ("HOME", "/h")];
        assert_eq!(resolved(None, &relative).unwrap(), "/h/.local/share/rallypoint");
        assert_eq!(resolved(None, &[]), None);
        assert_eq!(resolved(Some(""), &all), None);
    }
}
