//! Workloads with a name: traces that are drawn from a seed, for those who have no file at hand.
//!
//! A workload is written as a policy is: `nbg`, `nbg:alpha=0.5,seed=7`. The same text gives the same trace on every
//! machine. NBG, NBG-SCAN and DB4M are three readings of the workload in the Nb-GCLOCK paper; the README tells them
//! apart.

mod random;
mod streams;
mod zipf;

use std::fmt;
use std::str::FromStr;

use longshore_policy::settings;

use crate::format::Access;
use random::Random;
use zipf::Zipf;

/// A workload with values for its parameters.
#[derive(Clone, Debug)]
pub struct Workload {
    about: &'static About,
    values: Vec<f64>,
}

/// What is told about a workload.
#[derive(Debug)]
pub struct About {
    /// As on the command line.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub meaning: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    draw: fn(&Workload) -> Pages,
}

/// Something that can be set.
#[derive(Debug, PartialEq)]
pub struct Parameter {
    /// As on the command line.
    pub name: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Unless set.
    pub default: f64,
    /// The greatest value; the least is 0 for exponents and seeds, 1 for counts.
    max: f64,
}

type Pages = Box<dyn Iterator<Item = Access>>;

const COUNT_MAX: f64 = 1e9;
/// Zipf's law needs memory for each page.
const PAGES_MAX: f64 = 1e8;

const SEED: Parameter = Parameter {
    name: "seed",
    meaning: "determines what is drawn",
    default: 1.0,
    max: 4_294_967_295.0,
};
const fn alpha(default: f64) -> Parameter {
    Parameter {
        name: "alpha",
        meaning: "exponent of Zipf's law",
        default,
        max: 10.0,
    }
}
const fn pages(default: f64) -> Parameter {
    Parameter {
        name: "pages",
        meaning: "how many there are",
        default,
        max: PAGES_MAX,
    }
}
const fn requests(default: f64) -> Parameter {
    Parameter {
        name: "requests",
        meaning: "length of the trace",
        default,
        max: COUNT_MAX,
    }
}

/// All workloads.
pub static WORKLOADS: &[About] = &[
    About {
        name: "nbg",
        meaning: "Nb-GCLOCK's experiments as they were run: 64 threads, each cycling through its own draws of \
                  50,000 keys by Zipf's law",
        parameters: &[alpha(0.86), requests(4e6), SEED],
        draw: |values| Box::new(streams::nbg(values, false)),
    },
    About {
        name: "nbg-scan",
        meaning: "nbg with scans of 100 pages from anywhere, a fifth of all references",
        parameters: &[alpha(0.86), requests(4e6), SEED],
        draw: |values| Box::new(streams::nbg(values, true)),
    },
    About {
        name: "db4m",
        meaning: "Nb-GCLOCK's experiments as its text states them: 4,000,000 pages, and the scans",
        parameters: &[alpha(0.86), requests(4e6), SEED],
        draw: |values| Box::new(streams::db4m(values)),
    },
    About {
        name: "zipf",
        meaning: "pages drawn by Zipf's law, the first the most often",
        parameters: &[pages(10_000.0), alpha(0.99), requests(1e6), SEED],
        draw: |values| {
            let (zipf, mut random) = (
                Zipf::new(values.count("pages"), values.get("alpha")),
                values.random(0),
            );
            values.limited(move |_| zipf.draw(&mut random))
        },
    },
    About {
        name: "loop",
        meaning: "the same pages over and over, in order",
        parameters: &[pages(1000.0), requests(1e5)],
        draw: |values| {
            let pages = values.count("pages");
            values.limited(move |at| at % pages)
        },
    },
    About {
        name: "scan",
        meaning: "each page once",
        parameters: &[requests(1e5)],
        draw: |values| values.limited(|at| at),
    },
    About {
        name: "two-pools",
        meaning: "LRU-K's experiment: in turn a page of an index, and one of the data, which are many more",
        parameters: &[
            Parameter {
                name: "index",
                meaning: "pages of the index",
                default: 100.0,
                max: PAGES_MAX,
            },
            Parameter {
                name: "data",
                meaning: "pages of the data",
                default: 10_000.0,
                max: PAGES_MAX,
            },
            requests(1e5),
            SEED,
        ],
        draw: |values| {
            let (index, data) = (values.count("index"), values.count("data"));
            let mut random = values.random(0);
            values.limited(move |at| match at % 2 {
                0 => random.below(index),
                _ => index + random.below(data),
            })
        },
    },
];

impl Workload {
    /// Is the text the name of a workload, maybe with parameters?
    pub fn is_named(text: &str) -> bool {
        WORKLOADS.iter().any(|about| about.name == name_of(text))
    }

    /// Its references.
    pub fn accesses(&self) -> impl Iterator<Item = Access> + use<> {
        (self.about.draw)(self)
    }

    /// Their number.
    pub fn requests(&self) -> u64 {
        self.count("requests")
    }

    fn get(&self, name: &str) -> f64 {
        let mut all = self.about.parameters.iter().zip(&self.values);
        let found = all.find(|(parameter, _)| parameter.name == name);
        *found.expect("a parameter of the workload").1
    }

    fn count(&self, name: &str) -> u64 {
        self.get(name) as u64
    }

    /// The random numbers of one of several streams.
    fn random(&self, stream: u64) -> Random {
        Random::new(self.count("seed"), stream)
    }

    fn limited(&self, mut page: impl FnMut(u64) -> u64 + 'static) -> Pages {
        Box::new((0..self.requests()).map(move |at| Access::read(page(at))))
    }
}

fn name_of(text: &str) -> &str {
    text.split_once(':').map_or(text, |(name, _)| name)
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Workload, String> {
        let (name, settings) = settings(text).map_err(|error| error.to_string())?;
        let about = WORKLOADS.iter().find(|about| about.name == name);
        let about = about.ok_or_else(|| {
            let known: Vec<_> = WORKLOADS.iter().map(|about| about.name).collect();
            format!("unknown workload '{name}'; there are: {}", known.join(", "))
        })?;
        let mut values: Vec<f64> = about.parameters.iter().map(|known| known.default).collect();
        for (name, text) in settings {
            let (at, value) = about.read(name, text)?;
            values[at] = value;
        }
        Ok(Workload { about, values })
    }
}

impl About {
    /// A setting: which parameter, and its value.
    fn read(&self, name: &str, text: &str) -> Result<(usize, f64), String> {
        let at = self.parameters.iter().position(|known| known.name == name);
        let at = at.ok_or_else(|| {
            let known: Vec<_> = self.parameters.iter().map(|known| known.name).collect();
            let (of, known) = (self.name, known.join(", "));
            format!("workload '{of}' has no parameter '{name}'; it has: {known}")
        })?;
        let known = &self.parameters[at];
        let value = text.parse().ok().filter(|value| known.allows(*value));
        let value = value.ok_or_else(|| {
            let (of, allowed) = (self.name, known.allowed());
            format!("workload '{of}': {name} must be {allowed}, not '{text}'")
        })?;
        Ok((at, value))
    }
}

impl Parameter {
    fn is_whole(&self) -> bool {
        self.name != "alpha"
    }

    fn min(&self) -> f64 {
        if matches!(self.name, "alpha" | "seed") {
            0.0
        } else {
            1.0
        }
    }

    fn allows(&self, value: f64) -> bool {
        (self.min()..=self.max).contains(&value) && !(self.is_whole() && value.fract() != 0.0)
    }

    /// What values it may have, in words.
    pub fn allowed(&self) -> String {
        let kind = if self.is_whole() {
            "a whole number"
        } else {
            "a number"
        };
        format!("{kind} from {} to {}", self.min(), self.max)
    }
}

/// The text that gives this workload: the name, and what is not as by default.
impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about.name)?;
        let mut separator = ':';
        for (parameter, value) in self.about.parameters.iter().zip(&self.values) {
            if *value != parameter.default {
                write!(f, "{separator}{}={value}", parameter.name)?;
                separator = ',';
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        match text.parse::<Workload>() {
            Ok(workload) => workload.to_string(),
            Err(error) => error,
        }
    }

    fn pages(text: &str) -> Vec<u64> {
        let workload: Workload = text.parse().unwrap();
        workload.accesses().map(|access| access.page).collect()
    }

    #[test]
    fn every_workload_has_its_length_and_its_seed_repeats_it() {
        for about in WORKLOADS {
            let text = format!("{}:requests=20000", about.name);
            let drawn = pages(&text);
            assert_eq!(drawn.len(), 20_000, "{text}");
            assert_eq!(drawn, pages(&text), "{text}");
            if about.parameters.contains(&SEED) {
                assert_ne!(drawn, pages(&format!("{text},seed=2")), "{text}");
            }
        }
    }

    #[test]
    fn text_survives_the_way_there_and_back() {
        for text in ["nbg", "nbg:alpha=0.5,seed=7", "loop:pages=3"] {
            assert_eq!(parsed(text), text);
        }
    }

    #[test]
    fn errors_list_what_there_is() {
        assert_eq!(
            parsed("nothing"),
            "unknown workload 'nothing'; there are: \
             nbg, nbg-scan, db4m, zipf, loop, scan, two-pools"
        );
        assert_eq!(
            parsed("loop:page=3"),
            "workload 'loop' has no parameter 'page'; it has: pages, requests"
        );
        for value in ["0", "-1", "1.5", "", "x", "NaN", "1e30"] {
            assert_eq!(
                parsed(&format!("loop:pages={value}")),
                format!(
                    "workload 'loop': pages must be a whole number from 1 to 100000000, not '{value}'"
                )
            );
        }
    }

    #[test]
    fn loops_scans_and_pools_are_what_they_say() {
        assert_eq!(pages("loop:pages=3,requests=7"), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(pages("scan:requests=4"), [0, 1, 2, 3]);
        let drawn = pages("two-pools:index=5,data=50,requests=4000");
        assert!(drawn.iter().step_by(2).all(|&page| page < 5));
        assert!(
            drawn
                .iter()
                .skip(1)
                .step_by(2)
                .all(|page| (5..55).contains(page))
        );
    }
}
