//! What may be chosen: a policy, and the form in which it is told of hits; as text too.

use super::bp_wrapper::{LEN_MAX, Queues};
use super::lossy::Buffers;
use super::part::Part;
use longshore_policy::{SettingsError, Spec, SpecError, catalogue, settings};
use std::fmt;
use std::str::FromStr;

/// Who chooses the pages that leave memory.
///
/// As text: `nb-gclock`; a policy of the catalogue, as `lirs` or `2q:in=20%`; or a form before it, as `lossy/lirs` or
/// `bp-wrapper:batch=8/lirs`. A policy without a form is in BP-Wrapper.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Replacement {
    /// Nb-GCLOCK, in the frames themselves, without any lock.
    #[default]
    Native,
    /// A policy of the catalogue.
    Policy {
        /// How it is told of hits.
        form: Form,
        /// The policy.
        policy: Spec,
    },
}

/// How a policy that must be called by one thread at a time is told of hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// From queues, one for each thread.
    BpWrapper {
        /// Waiting hits from which on a thread tries the policy's lock; 1 tells it of each at once.
        batch: u32,
        /// Waiting hits with which it waits for the lock.
        queue: u32,
        /// A page is young, so that its hits are left out, until the pages used since the last one that was told are so
        /// many percent of the pool; for policies that lose nothing by it. 0: none is, as in the paper; nor with a batch
        /// of 1, which leaves out nothing.
        young: u32,
    },
    /// From shared buffers that lose hits rather than wait.
    Lossy {
        /// As in BP-Wrapper.
        young: u32,
    },
    /// At once, under a lock that is spun for.
    Spin,
    /// At once, under a lock that is slept for.
    Mutex,
    /// At once, to one of several policies that share the pages.
    Partitioned {
        /// How many.
        parts: u32,
    },
}

/// What a user is told about a form.
#[derive(Debug)]
pub struct AboutForm {
    /// Name before the stroke.
    pub name: &'static str,
    /// How the policy hears of hits, in one sentence.
    pub meaning: &'static str,
    /// What can be set.
    pub parameters: &'static [FormParameter],
}

/// A parameter of a form: a whole number.
#[derive(Debug)]
pub struct FormParameter {
    /// Name in specifications.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub meaning: &'static str,
    /// Its value unless set.
    pub default: u32,
    /// Least value allowed.
    pub min: u32,
    /// Greatest value allowed.
    pub max: u32,
}

const BATCH: FormParameter = FormParameter {
    name: "batch",
    meaning: "hits of a thread with which it tries the lock; 1 tells of each at once",
    default: 32,
    min: 1,
    max: LEN_MAX,
};
const QUEUE: FormParameter = FormParameter {
    name: "queue",
    meaning: "hits of a thread with which it waits for the lock",
    default: LEN_MAX,
    min: 1,
    max: LEN_MAX,
};
const YOUNG: FormParameter = FormParameter {
    name: "young",
    meaning: "percent of the pool used since, up to which another hit of a page is left out, where the policy loses \
              nothing by it; 0 tells of all",
    default: 33,
    min: 0,
    max: 100,
};
const PARTS: FormParameter = FormParameter {
    name: "parts",
    meaning: "policies, each with a lock and a part of the pages",
    default: 16,
    min: 1,
    max: 256,
};

/// The forms by name, each with its parameters.
const FORMS: [AboutForm; 5] = [
    AboutForm {
        name: "bp-wrapper",
        meaning: "from a queue for each thread; the default",
        parameters: &[BATCH, QUEUE, YOUNG],
    },
    AboutForm {
        name: "lossy",
        meaning: "from shared buffers that lose hits rather than wait",
        parameters: &[YOUNG],
    },
    AboutForm {
        name: "spin",
        meaning: "at once, under a lock that is spun for",
        parameters: &[],
    },
    AboutForm {
        name: "mutex",
        meaning: "at once, under a lock that is slept for",
        parameters: &[],
    },
    AboutForm {
        name: "partitioned",
        meaning: "at once, under the lock of the page's part",
        parameters: &[PARTS],
    },
];

const NATIVE: &str = "nb-gclock";

impl Replacement {
    /// Everything there is: Nb-GCLOCK, and each policy in each form, with the parameters as they are unless set.
    pub fn all() -> impl Iterator<Item = Replacement> {
        let policies = catalogue().flat_map(|about| {
            let policy: Spec = about
                .name
                .parse()
                .expect("the catalogue knows its policies");
            let with_policy = move |form| Replacement::Policy {
                form,
                policy: policy.clone(),
            };
            Form::all().map(with_policy)
        });
        std::iter::once(Replacement::Native).chain(policies)
    }

    /// The most memory that its policies, locks and queues take for a pool of so many frames. Nb-GCLOCK has all in the
    /// frames.
    pub fn bytes_max(&self, frames: u32) -> usize {
        match self {
            Replacement::Native => 0,
            Replacement::Policy { form, policy } => {
                let parts = form.parts();
                // The page of a part may be in any frame.
                let policies = parts as usize * policy.bytes_max(frames, frames.div_ceil(parts));
                policies + form.bytes_max()
            }
        }
    }
}

impl Form {
    /// What there is.
    pub fn catalogue() -> impl Iterator<Item = &'static AboutForm> {
        FORMS.iter()
    }

    /// Each form, with its parameters as they are unless set.
    pub fn all() -> impl Iterator<Item = Form> {
        Form::catalogue().map(|about| {
            let form = about.name.parse();
            form.expect("the name of a form is a form")
        })
    }

    fn parts(self) -> u32 {
        match self {
            Form::Partitioned { parts } => parts,
            Form::BpWrapper { .. } | Form::Lossy { .. } | Form::Spin | Form::Mutex => 1,
        }
    }

    /// Memory of the locks, and of the queues or buffers if every thread that can have one has.
    fn bytes_max(self) -> usize {
        let hits = match self {
            Form::BpWrapper { .. } => Queues::BYTES_MAX,
            Form::Lossy { .. } => Buffers::BYTES,
            Form::Spin | Form::Mutex | Form::Partitioned { .. } => 0,
        };
        hits + self.parts() as usize * size_of::<Part>()
    }

    /// The uses of other pages for which a page is young, in percent of the pool.
    pub(super) fn young_percent(self) -> u32 {
        match self {
            Form::BpWrapper { batch: 1, .. } => 0,
            Form::BpWrapper { young, .. } | Form::Lossy { young } => young,
            Form::Spin | Form::Mutex | Form::Partitioned { .. } => 0,
        }
    }

    fn values(self) -> (&'static str, Vec<u32>) {
        match self {
            Form::BpWrapper {
                batch,
                queue,
                young,
            } => ("bp-wrapper", vec![batch, queue, young]),
            Form::Lossy { young } => ("lossy", vec![young]),
            Form::Spin => ("spin", vec![]),
            Form::Mutex => ("mutex", vec![]),
            Form::Partitioned { parts } => ("partitioned", vec![parts]),
        }
    }
}

impl FromStr for Replacement {
    type Err = ReplacementError;

    fn from_str(text: &str) -> Result<Replacement, ReplacementError> {
        let (form, policy) = match text.split_once('/') {
            Some((form, policy)) => (form, policy),
            None if text == NATIVE => return Ok(Replacement::Native),
            None => ("bp-wrapper", text),
        };
        Ok(Replacement::Policy {
            form: form.parse()?,
            policy: policy.parse().map_err(ReplacementError::from)?,
        })
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Replacement::Native => f.write_str(NATIVE),
            Replacement::Policy { form, policy } => write!(f, "{form}/{policy}"),
        }
    }
}

impl FromStr for Form {
    type Err = ReplacementError;

    fn from_str(text: &str) -> Result<Form, ReplacementError> {
        let (name, settings) = settings(text)?;
        let AboutForm {
            name, parameters, ..
        } = Form::catalogue()
            .find(|known| known.name == name)
            .ok_or_else(|| ReplacementError::UnknownForm {
                form: name.to_owned(),
            })?;
        let mut values: Vec<u32> = parameters.iter().map(|known| known.default).collect();
        for (parameter, text) in settings {
            let value = || {
                let at = parameters
                    .iter()
                    .position(|known| known.name == parameter)?;
                let allowed = parameters[at].min..=parameters[at].max;
                let value = text.parse().ok().filter(|value| allowed.contains(value))?;
                Some((at, value))
            };
            let (at, value) = value().ok_or_else(|| ReplacementError::BadSetting {
                form: name,
                setting: format!("{parameter}={text}"),
                known: described(parameters),
            })?;
            values[at] = value;
        }
        Ok(match *name {
            "bp-wrapper" => Form::BpWrapper {
                batch: values[0].min(values[1]),
                queue: values[1],
                young: values[2],
            },
            "lossy" => Form::Lossy { young: values[0] },
            "spin" => Form::Spin,
            "mutex" => Form::Mutex,
            _ => Form::Partitioned { parts: values[0] },
        })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, values) = self.values();
        f.write_str(name)?;
        let about = Form::catalogue().find(|known| known.name == name);
        let parameters = about.map_or(&[][..], |about| about.parameters);
        let mut separator = ':';
        for (parameter, value) in parameters.iter().zip(values) {
            if value != parameter.default {
                write!(f, "{separator}{}={value}", parameter.name)?;
                separator = ',';
            }
        }
        Ok(())
    }
}

fn described(parameters: &[FormParameter]) -> String {
    let each = parameters.iter().map(|parameter| {
        let FormParameter {
            name,
            default,
            min,
            max,
            ..
        } = parameter;
        format!("{name} (a whole number from {min} to {max}; {default})")
    });
    match parameters {
        [] => "none".to_owned(),
        _ => each.collect::<Vec<_>>().join(", "),
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// A replacement that cannot be understood.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplacementError {
    /// No policy has this name.
    #[error(
        "unknown replacement policy '{policy}'; there are: {NATIVE}, {}",
        names(catalogue().map(|about| about.name))
    )]
    UnknownPolicy {
        /// What was asked for.
        policy: String,
    },
    /// No form has this name.
    #[error(
        "unknown form '{form}' of replacement; there are: {}; what stands behind it is a policy: {}",
        names(Form::catalogue().map(|about| about.name)),
        names(catalogue().map(|about| about.name))
    )]
    UnknownForm {
        /// What was asked for.
        form: String,
    },
    /// The form has no such parameter, or the parameter cannot have this value.
    #[error("'{form}' cannot be told '{setting}'; it has: {known}")]
    BadSetting {
        /// The form.
        form: &'static str,
        /// What was to be set.
        setting: String,
        /// What can be set.
        known: String,
    },
    /// What is set for the form cannot be taken apart.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The policy's parameters are wrong.
    #[error("{0}")]
    Policy(String),
}

impl From<SpecError> for ReplacementError {
    fn from(error: SpecError) -> ReplacementError {
        match error {
            SpecError::UnknownPolicy { policy, .. } => ReplacementError::UnknownPolicy { policy },
            error => ReplacementError::Policy(error.to_string()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match text.parse::<Replacement>() {
            Ok(replacement) => replacement.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn text_survives_the_way_there_and_back() {
        for text in [
            "nb-gclock",
            "bp-wrapper/lru",
            "bp-wrapper:batch=1/lru",
            "bp-wrapper:batch=4,queue=8/gclock:cap=3",
            "lossy/fifo",
            "spin/clock",
            "mutex/lru",
            "partitioned/lru",
            "partitioned:parts=4/lru",
        ] {
            assert_eq!(parsed(text), text);
        }
        assert_eq!(parsed("lru"), "bp-wrapper/lru");
        let small = parsed("bp-wrapper:queue=8/lru");
        assert_eq!(small, "bp-wrapper:batch=8,queue=8/lru");
        let all: Vec<String> = Replacement::all().map(|each| each.to_string()).collect();
        assert_eq!(all.len(), 1 + FORMS.len() * catalogue().count());
        all.iter().for_each(|text| assert_eq!(parsed(text), *text));
    }

    #[test]
    fn errors_list_what_there_is() {
        let error = parsed("lruu");
        let expected =
            "error: unknown replacement policy 'lruu'; there are: nb-gclock, random, fifo";
        assert!(error.starts_with(expected), "{error}");
        let error = parsed("wrapped/lru");
        let expected = "error: unknown form 'wrapped' of replacement; there are: bp-wrapper, lossy, \
                        spin, mutex, partitioned; what stands behind it is a policy: random, fifo";
        assert!(error.starts_with(expected), "{error}");
        assert_eq!(
            parsed("partitioned:parts=0/lru"),
            "error: 'partitioned' cannot be told 'parts=0'; \
             it has: parts (a whole number from 1 to 256; 16)"
        );
        assert_eq!(
            parsed("spin:batch=3/lru"),
            "error: 'spin' cannot be told 'batch=3'; it has: none"
        );
        let error = parsed("bp-wrapper:batch=1,batch=2/lru");
        assert!(error.ends_with("sets batch twice"), "{error}");
        assert!(parsed("bp-wrapper:/lru").contains("empty setting"));
        assert!(parsed("spin/gclock:cap=x").contains("cap must be"));
        assert!(parsed("spin/nb-gclock").contains("unknown replacement policy 'nb-gclock'"));
        assert!(parsed("").contains("unknown replacement policy ''"));
    }
}
