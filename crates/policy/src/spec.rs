//! Specifications: a policy's name and what is set of its parameters, as text: `2q:in=25%,out=50%`.

use std::fmt;
use std::str::FromStr;

use crate::catalogue::{About, Parameter, Unit, Visitor, catalogue};
use crate::policies;
use crate::policy::Policy;
use crate::settings::{SettingsError, settings};

/// A policy of the catalogue with values for its parameters, all of them in range.
#[derive(Clone)]
pub struct Spec {
    about: &'static About,
    /// One for each parameter, in their order.
    values: Vec<f64>,
}

impl Spec {
    /// What the catalogue says of the policy.
    pub fn about(&self) -> &'static About {
        self.about
    }

    /// The policy, for a pool of `capacity` frames.
    ///
    /// # Errors
    /// [`SpecError::NoFrames`] when `capacity` is zero.
    pub fn build(&self, capacity: u32) -> Result<Box<dyn Policy>, SpecError> {
        struct Boxed;
        impl Visitor for Boxed {
            type Output = Box<dyn Policy>;
            fn visit<P: Policy + 'static>(self, policy: P) -> Box<dyn Policy> {
                Box::new(policy)
            }
        }
        self.visit(capacity, Boxed)
    }

    /// Builds the policy for a pool of `capacity` frames and hands it, with its own type, to `visitor`.
    ///
    /// # Errors
    /// [`SpecError::NoFrames`] when `capacity` is zero.
    pub fn visit<V: Visitor>(&self, capacity: u32, visitor: V) -> Result<V::Output, SpecError> {
        if capacity == 0 {
            return Err(SpecError::NoFrames);
        }
        let values = Values::new(self.about, &self.values);
        Ok(policies::visit(self.about.name, capacity, &values, visitor))
    }

    /// Bytes that the policy takes at most, for a pool of `capacity` frames whose numbers are below `frames`.
    pub fn bytes_max(&self, frames: u32, capacity: u32) -> usize {
        let memory = &self.about.memory;
        let percent = self.about.ghosts_percent(&self.values);
        // One leaves only after another has come.
        let ghosts = share(percent, capacity) + 1;
        memory.fixed + frames as usize * memory.frame + ghosts * memory.ghost
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), SpecError> {
        let parameters = self.about.parameters;
        let at = parameters.iter().position(|known| known.name == name);
        let at = at.ok_or_else(|| SpecError::UnknownParameter {
            policy: self.about.name,
            parameter: name.to_string(),
            known: known_parameters(self.about),
        })?;
        self.values[at] = read(&parameters[at], text).ok_or_else(|| SpecError::BadValue {
            policy: self.about.name,
            parameter: parameters[at].name,
            value: text.to_string(),
            allowed: allowed(&parameters[at]),
        })?;
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        let (name, settings) = settings(text)?;
        let about = catalogue().find(|about| about.name == name);
        let about = about.ok_or_else(|| SpecError::UnknownPolicy {
            policy: name.to_string(),
            known: catalogue()
                .map(|about| about.name)
                .collect::<Vec<_>>()
                .join(", "),
        })?;
        let values = about.parameters.iter().map(|known| known.default);
        let mut spec = Spec {
            about,
            values: values.collect(),
        };
        for (name, value) in settings {
            spec.set(name, value)?;
        }
        Ok(spec)
    }
}

/// The text that gives this specification: the name, and what is not as by default.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about.name)?;
        let mut separator = ':';
        for (parameter, &value) in self.about.parameters.iter().zip(&self.values) {
            if value != parameter.default {
                let (name, value) = (parameter.name, written(parameter.unit, value));
                write!(f, "{separator}{name}={value}")?;
                separator = ',';
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Spec) -> bool {
        self.about.name == other.about.name && self.values == other.values
    }
}

/// The values of a specification, for the policy that is being built.
///
/// Asking for a parameter that the policy's [`About`] does not have, or not in this unit, is a panic: every policy is
/// built by a test.
pub(crate) struct Values<'a> {
    about: &'a About,
    values: &'a [f64],
}

impl<'a> Values<'a> {
    pub(crate) fn new(about: &'a About, values: &'a [f64]) -> Values<'a> {
        Values { about, values }
    }

    /// A whole number.
    pub(crate) fn whole(&self, name: &str) -> u64 {
        self.get(name, Unit::Whole) as u64
    }

    /// A percentage, to be applied with [`share`] whenever the capacity changes.
    pub(crate) fn percent(&self, name: &str) -> f64 {
        self.get(name, Unit::Percent)
    }

    fn get(&self, name: &str, unit: Unit) -> f64 {
        let parameters = self.about.parameters;
        let at = parameters.iter().position(|known| known.name == name);
        let at = at.unwrap_or_else(|| panic!("{} has no parameter {name}", self.about.name));
        assert!(parameters[at].unit == unit, "{name} is another unit");
        self.values[at]
    }
}

/// `percent` of `frames`, rounded down.
pub(crate) fn share(percent: f64, frames: u32) -> usize {
    (f64::from(frames) * percent / 100.0) as usize
}

fn read(parameter: &Parameter, text: &str) -> Option<f64> {
    let number = match parameter.unit {
        Unit::Whole => f64::from(text.parse::<u32>().ok()?),
        Unit::Percent => text.strip_suffix('%')?.parse().ok()?,
    };
    (parameter.min..=parameter.max)
        .contains(&number)
        .then_some(number)
}

fn written(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Percent => format!("{value}%"),
        Unit::Whole => format!("{value}"),
    }
}

fn allowed(parameter: &Parameter) -> String {
    let kind = match parameter.unit {
        Unit::Whole => "a whole number",
        Unit::Percent => "a percentage",
    };
    let (min, max) = (
        written(parameter.unit, parameter.min),
        written(parameter.unit, parameter.max),
    );
    format!("{kind} from {min} to {max}")
}

fn known_parameters(about: &About) -> String {
    let each = about.parameters.iter().map(|known| {
        let default = written(known.unit, known.default);
        format!("{} ({}; {default})", known.name, allowed(known))
    });
    let all = each.collect::<Vec<_>>().join(", ");
    if all.is_empty() {
        "none".to_string()
    } else {
        all
    }
}

/// A specification that cannot be understood.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// No policy has this name.
    #[error("unknown replacement policy '{policy}'; there are: {known}")]
    UnknownPolicy {
        /// What was asked for.
        policy: String,
        /// The names there are.
        known: String,
    },
    /// The policy has no such parameter.
    #[error("'{policy}' has no parameter '{parameter}'; it has: {known}")]
    UnknownParameter {
        /// The policy.
        policy: &'static str,
        /// What was to be set.
        parameter: String,
        /// What can be set.
        known: String,
    },
    /// The parameter cannot have this value.
    #[error("'{policy}': {parameter} must be {allowed}, not '{value}'")]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// What it was to be.
        value: String,
        /// What it can be.
        allowed: String,
    },
    /// What is set cannot be taken apart.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A pool of zero frames.
    #[error("a pool needs at least one frame")]
    NoFrames,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match text.parse::<Spec>() {
            Ok(spec) => spec.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn text_survives_the_way_there_and_back() {
        for text in ["lru", "gclock:cap=3", "random:seed=7"] {
            assert_eq!(parsed(text), text);
        }
        assert_eq!(parsed("gclock:cap=0"), "gclock", "the default is left out");
    }

    #[test]
    fn errors_list_what_there_is() {
        assert!(parsed("lruu").starts_with(
            "error: unknown replacement policy 'lruu'; there are: random, fifo, lru, clock, gclock"
        ));
        assert_eq!(
            parsed("gclock:lid=3"),
            "error: 'gclock' has no parameter 'lid'; \
             it has: cap (a whole number from 0 to 1000000000; 0)"
        );
        assert_eq!(
            parsed("lru:cap=3"),
            "error: 'lru' has no parameter 'cap'; it has: none"
        );
        for value in ["-1", "3%", "", "x", " 3", "1000000001", "NaN"] {
            assert_eq!(
                parsed(&format!("gclock:cap={value}")),
                format!(
                    "error: 'gclock': cap must be a whole number from 0 to 1000000000, not '{value}'"
                )
            );
        }
    }

    #[test]
    fn what_is_nearly_right_is_an_error() {
        for (text, error) in [
            ("LRU", "unknown replacement policy 'LRU'"),
            (" lru", "unknown replacement policy ' lru'"),
            ("", "unknown replacement policy ''"),
            (":cap=3", "unknown replacement policy ''"),
            ("gclock:Cap=3", "'gclock' has no parameter 'Cap'"),
            ("gclock: cap=3", "'gclock' has no parameter ' cap'"),
            ("gclock:=3", "'gclock' has no parameter ''"),
            ("gclock:cap", "'cap' sets nothing"),
            ("gclock:", "'gclock:' has an empty setting"),
            ("gclock:cap=3,", "'gclock:cap=3,' has an empty setting"),
            ("gclock:cap=3,cap=5", "'gclock:cap=3,cap=5' sets cap twice"),
            ("2q:in=25", "'2q': in must be a percentage"),
            ("2q:in=101%", "'2q': in must be a percentage"),
            ("2q:in=NaN%", "'2q': in must be a percentage"),
        ] {
            let said = parsed(text);
            assert!(
                said.starts_with(&format!("error: {error}")),
                "{text}: {said}"
            );
        }
    }

    #[test]
    fn no_frames_is_an_error() {
        let spec: Spec = "lru".parse().unwrap();
        assert_eq!(spec.build(0).err(), Some(SpecError::NoFrames));
    }

    #[test]
    fn shares_are_rounded_down() {
        assert_eq!(share(20.0, 1000), 200);
        assert_eq!(share(29.0, 100), 29);
        assert_eq!(share(25.0, 3), 0);
        assert_eq!(share(200.0, 3), 6);
    }
}
