//! A bar on standard error while a trace is read, and while policies run; on a terminal only.

use std::fmt::Write;
use std::io::{IsTerminal, Read};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::report::count;

/// The progress of a command.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar, if standard error is a terminal and `is_wanted`.
    pub fn new(is_wanted: bool) -> Progress {
        let bar = match is_wanted && std::io::stderr().is_terminal() {
            true => ProgressBar::no_length(),
            false => return Progress::hidden(),
        };
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar }
    }

    /// No bar.
    pub fn hidden() -> Progress {
        Progress {
            bar: ProgressBar::hidden(),
        }
    }

    /// `file`, whose reading moves the bar.
    pub(crate) fn reading(
        &self,
        file: impl Read + 'static,
        len: Option<u64>,
    ) -> impl Read + 'static {
        self.begin(match len {
            Some(_) => "{bar:30} {percent:>3} %  {bytes} of {total_bytes}  {msg}  {eta} left",
            None => "{spinner} {bytes}  {msg}",
        });
        if let Some(len) = len {
            self.bar.set_length(len);
        }
        self.bar.wrap_read(file)
    }

    /// How many references are read.
    pub(crate) fn say_read(&self, references: usize) {
        self.bar
            .set_message(format!("{} references", count(references as u64)));
    }

    /// `requests` will be simulated.
    pub(crate) fn simulating(&self, requests: u64) {
        self.begin("{bar:30} {percent:>3} %  {msg}  {rate}  {eta} left");
        self.bar.set_length(requests);
    }

    /// So many of them more are.
    pub(crate) fn simulated(&self, requests: u64) {
        self.bar.inc(requests);
    }

    /// What is run.
    pub(crate) fn say(&self, what: &str) {
        self.bar.set_message(what.to_string());
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn begin(&self, template: &str) {
        let style = ProgressStyle::with_template(template).expect("the template is constant");
        let rate = |state: &ProgressState, out: &mut dyn Write| {
            let _ = write!(out, "{:.1} M requests/s", state.per_sec() / 1e6);
        };
        self.bar.reset();
        self.bar.set_style(style.with_key("rate", rate));
    }
}
