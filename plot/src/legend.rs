//! Which name looks how, told beside the charts.

use crate::error::PlotError;
use crate::figure::{Chart, Figure};
use crate::font;
use crate::scene::{Point, Scene, Text};
use crate::style::{STYLES_MAX, Style};

const SIZE: f64 = 12.5;
const ROW: f64 = 20.0;
const SAMPLE: f64 = 36.0;
const GAP: f64 = 8.0;

/// The names of a figure, in the order in which they appear.
pub(crate) struct Legend {
    entries: Vec<Entry>,
}

struct Entry {
    name: String,
    style: Style,
    is_bar: bool,
}

impl Legend {
    pub(crate) fn of(figure: &Figure) -> Result<Legend, PlotError> {
        let mut legend = Legend {
            entries: Vec::new(),
        };
        for panel in &figure.panels {
            match &panel.chart {
                Chart::Lines(lines) => lines
                    .iter()
                    .for_each(|line| legend.add(&line.name, line.is_reference, false)),
                Chart::Bars { bars, .. } => {
                    bars.iter()
                        .for_each(|bars| legend.add(&bars.name, false, true));
                }
            }
        }
        // References stand last.
        legend
            .entries
            .sort_by_key(|entry| entry.style == Style::Reference);
        match legend.measured() {
            lines if lines > STYLES_MAX => Err(PlotError::TooMany { lines }),
            _ => Ok(legend),
        }
    }

    fn add(&mut self, name: &str, is_reference: bool, is_bar: bool) {
        if self.entries.iter().any(|entry| entry.name == name) {
            return;
        }
        let style = match is_reference {
            true => Style::Reference,
            false => Style::Measured(self.measured()),
        };
        self.entries.push(Entry {
            name: name.to_owned(),
            style,
            is_bar,
        });
    }

    fn measured(&self) -> usize {
        let measured = |entry: &&Entry| entry.style != Style::Reference;
        self.entries.iter().filter(measured).count()
    }

    /// How what is called `name` looks.
    pub(crate) fn style(&self, name: &str) -> Style {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        entry.map_or(Style::Reference, |entry| entry.style)
    }

    pub(crate) fn width(&self) -> f64 {
        let widths = self
            .entries
            .iter()
            .map(|entry| font::width(&entry.name, SIZE));
        SAMPLE + GAP + widths.fold(0.0, f64::max)
    }

    pub(crate) fn height(&self) -> f64 {
        ROW * self.entries.len() as f64
    }

    pub(crate) fn draw(&self, (left, top): Point, scene: &mut Scene) {
        for (at, entry) in self.entries.iter().enumerate() {
            let middle = top + ROW * (at as f64 + 0.5);
            match entry.is_bar {
                true => {
                    let half = ROW / 2.0 - 3.0;
                    let (low, high) = (middle + half, middle - half);
                    entry.style.bar((left, high), (left + SAMPLE, low), scene);
                }
                false => {
                    scene.line([(left, middle), (left + SAMPLE, middle)], entry.style.pen());
                    entry.style.mark((left + SAMPLE / 2.0, middle), scene);
                }
            }
            let at = (left + SAMPLE + GAP, middle + SIZE * 0.35);
            scene.text(Text::new(at, entry.name.clone(), SIZE));
        }
    }
}
