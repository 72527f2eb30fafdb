//! `longshore bench`: how fast is the store on this machine? The benchmarks are `longshore-bench`'s.

use longshore_bench::{BenchError, Settings};

use crate::exit::{Code, Failure, Outcome};

/// Runs one benchmark; each line is printed when it is known.
///
/// # Errors
/// Settings out of range; data that a run left inconsistent; what stopped the benchmark.
pub fn run(settings: &Settings) -> Outcome {
    let mut out = std::io::stdout().lock();
    longshore_bench::run(settings, &mut out).map_err(|error| match error {
        BenchError::Settings { .. } => Failure::usage(error.to_string()),
        BenchError::Inconsistent { .. } => Failure::new(Code::NotFound, error.to_string()),
        error => Failure::new(Code::Store, error.to_string()),
    })
}
