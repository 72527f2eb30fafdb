//! A progress bar with rows per second, on a terminal only.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::input::Position;

/// Rows between two looks at the bar: often enough for the eye, too seldom to cost anything.
const STRIDE: u64 = 256;

/// The progress of a load.
pub struct Progress {
    bar: Option<ProgressBar>,
    position: Position,
}

impl Progress {
    /// A bar on standard error, if that is a terminal and `is_wanted`.
    pub fn new(is_wanted: bool, len: Option<u64>, position: Position) -> Progress {
        let show = is_wanted && std::io::stderr().is_terminal();
        let bar = show.then(|| {
            let bar = len.map_or_else(ProgressBar::no_length, ProgressBar::new);
            let template = match len {
                Some(_) => "{bar:30} {percent:>3} %  {bytes} of {total_bytes}  {msg}  {eta} left",
                None => "{spinner} {bytes}  {msg}",
            };
            let style = ProgressStyle::with_template(template).expect("the template is constant");
            bar.set_style(style);
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Progress { bar, position }
    }

    /// Notes that `rows` have been read.
    pub fn update(&self, rows: u64) {
        let Some(bar) = &self.bar else { return };
        if rows.is_multiple_of(STRIDE) {
            bar.set_position(self.position.bytes());
            let per_second = rows as f64 / bar.elapsed().as_secs_f64().max(1e-3);
            let (rows, rate) = (
                crate::units::count(rows),
                crate::units::count(per_second as u64),
            );
            bar.set_message(format!("{rows} rows  {rate} rows/s"));
        }
    }

    /// Prints a line above the bar.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
