//! Which policies are compared.

use longshore_policy::simulator::Contender;
use longshore_policy::{About, Parameter, Unit, catalogue};
use serde_json::{Map, Value};

use crate::error::LabError;

/// What runs in the pool unless another policy is chosen, as the simulator knows it: Nb-GCLOCK with one thread.
pub const NATIVE: &str = "gclock:cap=3";

/// A policy, as it is called in answers.
#[derive(Clone, Debug)]
pub struct Named {
    /// The specification.
    pub text: String,
    /// What is run.
    pub contender: Contender,
}

impl Named {
    /// The policy of this specification.
    ///
    /// # Errors
    /// There is none.
    pub fn parse(text: &str) -> Result<Named, LabError> {
        let contender: Contender = text.parse()?;
        Ok(Named {
            text: contender.to_string(),
            contender,
        })
    }

    /// All parameters with their values, as they would be written.
    pub fn params(&self) -> Value {
        let Contender::Policy(spec) = &self.contender else {
            return Value::Object(Map::new());
        };
        let set = self
            .text
            .split_once(':')
            .map_or("", |(_, settings)| settings);
        let value = |parameter: &Parameter| {
            let mut set = set.split(',').filter_map(|setting| setting.split_once('='));
            let set = set.find(|(name, _)| *name == parameter.name);
            set.map_or_else(|| written(parameter), |(_, value)| typed(value))
        };
        let all = spec.about().parameters.iter();
        all.map(|parameter| (parameter.name.to_string(), value(parameter)))
            .collect()
    }
}

fn written(parameter: &Parameter) -> Value {
    match parameter.unit {
        Unit::Percent => typed(&format!("{}%", parameter.default)),
        Unit::Whole => typed(&parameter.default.to_string()),
    }
}

fn typed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string()))
}

/// The policies of a list such as `lru,2q:in=25%,out=50%,arc`; of none, and of `all`, all there are, OPT first.
///
/// A comma may stand before another policy or another parameter; what has `=` but no `:` before it is a parameter.
///
/// # Errors
/// One of them is unknown, or the list names none.
pub fn parse(list: Option<&str>) -> Result<Vec<Named>, LabError> {
    let texts: Vec<String> = match list {
        None | Some("all") => all(),
        Some(list) => split(list),
    };
    if texts.is_empty() {
        return Err(LabError::Usage("--policies: none is named".to_string()));
    }
    let mut named: Vec<Named> = Vec::new();
    for text in texts {
        let one = Named::parse(&text)?;
        if named.iter().all(|other| other.text != one.text) {
            named.push(one);
        }
    }
    Ok(named)
}

fn all() -> Vec<String> {
    let names = catalogue().map(|about: &About| about.name.to_string());
    std::iter::once("opt".to_string()).chain(names).collect()
}

/// The specifications of such a list; none where it names nothing. What is empty between two commas is handed on, for an
/// empty name is an error that tells which names there are.
pub(crate) fn split(list: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let parts = list.split(',').map(str::trim);
    if parts.clone().all(str::is_empty) {
        return texts;
    }
    for part in parts {
        let is_setting = part
            .split(':')
            .next()
            .is_some_and(|name| name.contains('='));
        match texts.last_mut() {
            Some(last) if is_setting => {
                last.push(if last.contains(':') { ',' } else { ':' });
                last.push_str(part);
            }
            _ => texts.push(part.to_string()),
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_policies_and_parameters() {
        assert_eq!(
            split("lru,2q:in=25%,out=50%, arc"),
            ["lru", "2q:in=25%,out=50%", "arc"]
        );
        assert_eq!(split(" ,"), [""; 0]);
        assert_eq!(split("lru,,arc,"), ["lru", "", "arc", ""]);
        let named = parse(Some("lru,gclock:cap=3,lru,gclock:cap=0")).unwrap();
        let texts: Vec<_> = named.iter().map(|named| named.text.as_str()).collect();
        assert_eq!(texts, ["lru", "gclock:cap=3", "gclock"], "each once");
    }

    #[test]
    fn all_are_the_catalogue_and_the_bound() {
        let all = parse(None).unwrap();
        assert_eq!(all.len(), catalogue().count() + 1);
        assert_eq!(all[0].text, "opt");
        assert_eq!(parse(Some("all")).unwrap().len(), all.len());
        let error = parse(Some("")).unwrap_err().to_string();
        assert_eq!(error, "--policies: none is named");
    }

    #[test]
    fn params_are_told_in_full() {
        let params = |text| Named::parse(text).unwrap().params().to_string();
        assert_eq!(params("gclock:cap=3"), r#"{"cap":3}"#);
        assert_eq!(params("gclock"), r#"{"cap":0}"#);
        assert_eq!(params("lru"), "{}");
        assert_eq!(params("opt"), "{}");
    }

    #[test]
    fn an_unknown_policy_is_an_error_that_lists_all() {
        let error = parse(Some("lru,nothing")).unwrap_err().to_string();
        assert!(
            error.contains("nothing") && error.contains("clock, gclock"),
            "{error}"
        );
        for list in ["lru,,arc", "lru,", "2q:in=25%,,out=50%"] {
            let error = parse(Some(list)).unwrap_err().to_string();
            assert!(
                error.starts_with("unknown replacement policy ''"),
                "{error}"
            );
        }
    }
}
