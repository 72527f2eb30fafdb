//! Text of the form `name:parameter=value,parameter=value`, taken apart. What it means is for others to say.

/// A name and what is set, in the order in which it stands. Neither is trimmed.
pub type Settings<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// Takes `text` apart.
///
/// # Errors
/// A setting is empty, sets nothing, or stands there twice.
pub fn settings(text: &str) -> Result<Settings<'_>, SettingsError> {
    let Some((name, list)) = text.split_once(':') else {
        return Ok((text, Vec::new()));
    };
    let mut all: Vec<(&str, &str)> = Vec::new();
    for setting in list.split(',') {
        if setting.is_empty() {
            return Err(SettingsError::Empty {
                text: text.to_string(),
            });
        }
        let (parameter, value) = setting
            .split_once('=')
            .ok_or_else(|| SettingsError::NoValue {
                setting: setting.to_string(),
            })?;
        if all.iter().any(|&(other, _)| other == parameter) {
            return Err(SettingsError::Twice {
                text: text.to_string(),
                parameter: parameter.to_string(),
            });
        }
        all.push((parameter, value));
    }
    Ok((name, all))
}

/// Settings that cannot be taken apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Nothing stands behind a colon or a comma.
    #[error("'{text}' has an empty setting; write name:parameter=value,parameter=value")]
    Empty {
        /// All of it.
        text: String,
    },
    /// A setting without `=`.
    #[error("'{setting}' sets nothing; write parameter=value")]
    NoValue {
        /// What was written.
        setting: String,
    },
    /// A parameter is set more than once.
    #[error("'{text}' sets {parameter} twice")]
    Twice {
        /// All of it.
        text: String,
        /// The parameter.
        parameter: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_taken_apart_in_their_order() {
        assert_eq!(settings("lru"), Ok(("lru", vec![])));
        let some = ("2q", vec![("out", "50%"), ("in", "a=b:c")]);
        assert_eq!(settings("2q:out=50%,in=a=b:c"), Ok(some));
    }

    #[test]
    fn what_is_missing_or_stands_twice_is_told() {
        let error = |text| settings(text).unwrap_err().to_string();
        for text in ["a:", "a:,b=1", "a:b=1,", "a:b=1,,c=2"] {
            assert_eq!(
                error(text),
                format!(
                    "'{text}' has an empty setting; write name:parameter=value,parameter=value"
                )
            );
        }
        assert_eq!(error("a:b"), "'b' sets nothing; write parameter=value");
        assert_eq!(error("a:b=1,c=2,b=1"), "'a:b=1,c=2,b=1' sets b twice");
    }
}
