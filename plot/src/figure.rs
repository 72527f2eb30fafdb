//! What a figure shows.

use crate::error::PlotError;
use crate::{draw, png, svg};
use std::path::Path;

/// A picture: panels side by side under a title, a legend beside them, a caption below.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it is about.
    pub title: String,
    /// From left to right. Lines of one name look alike in all panels.
    pub panels: Vec<Panel>,
    /// How it came about; each paragraph begins a line.
    pub caption: Vec<String>,
}

impl Figure {
    /// The bytes of the picture.
    ///
    /// # Errors
    /// What is wrong with the figure.
    pub fn render(&self, format: Format) -> Result<Vec<u8>, PlotError> {
        let scene = draw::scene(self)?;
        match format {
            Format::Svg => Ok(svg::encode(&scene).into_bytes()),
            Format::Png => png::encode(&scene),
        }
    }
}

/// The form of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines and texts.
    Svg,
    /// Pixels, two in each direction for a unit of the SVG.
    Png,
}

impl Format {
    /// The format that a file's name asks for, if it ends with `.svg` or `.png`.
    pub fn of(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?;
        match extension.to_ascii_lowercase().as_str() {
            "svg" => Some(Format::Svg),
            "png" => Some(Format::Png),
            _ => None,
        }
    }
}

/// One chart with its axes.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Over the chart.
    pub title: String,
    /// Below it. For bars only its title counts.
    pub x: Axis,
    /// At its left.
    pub y: Axis,
    /// What stands between them.
    pub chart: Chart,
}

/// What a panel shows.
#[derive(Clone, Debug)]
pub enum Chart {
    /// Points that are connected.
    Lines(Vec<Line>),
    /// Bars in groups.
    Bars {
        /// Their names, from left to right.
        groups: Vec<String>,
        /// In each group a bar of each.
        bars: Vec<Bars>,
    },
}

/// Points that are connected, in order.
#[derive(Clone, Debug)]
pub struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) is_reference: bool,
}

impl Line {
    /// A line that was measured.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Line {
        Line {
            name: name.into(),
            points: points.into_iter().collect(),
            is_reference: false,
        }
    }

    /// A line to compare with: grey, without markers.
    pub fn reference(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Line {
        Line {
            is_reference: true,
            ..Line::new(name, points)
        }
    }
}

/// One bar in each group.
#[derive(Clone, Debug)]
pub struct Bars {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

impl Bars {
    /// Bars with a value for each group.
    pub fn new(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Bars {
        Bars {
            name: name.into(),
            values: values.into_iter().collect(),
        }
    }
}

/// What is counted along one side of a chart.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(crate) title: String,
    pub(crate) scale: Scale,
    pub(crate) from: Option<f64>,
    pub(crate) to: Option<f64>,
    pub(crate) ticks: Vec<f64>,
}

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences take equal room.
    Linear,
    /// Equal ratios take equal room.
    Log,
}

impl Axis {
    /// An axis; the title names the unit.
    pub fn new(title: impl Into<String>, scale: Scale) -> Axis {
        Axis {
            title: title.into(),
            scale,
            from: None,
            to: None,
            ticks: Vec::new(),
        }
    }

    /// Begins at or below `value`, whatever is shown.
    #[must_use]
    pub fn from(mut self, value: f64) -> Axis {
        self.from = Some(value);
        self
    }

    /// Ends at or above `value`, whatever is shown.
    #[must_use]
    pub fn to(mut self, value: f64) -> Axis {
        self.to = Some(value);
        self
    }

    /// Has its ticks at these values and no others.
    #[must_use]
    pub fn ticks(mut self, values: impl IntoIterator<Item = f64>) -> Axis {
        self.ticks = values.into_iter().collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_format() {
        assert_eq!(Format::of(Path::new("a/b.svg")), Some(Format::Svg));
        assert_eq!(Format::of(Path::new("b.c.PNG")), Some(Format::Png));
        assert_eq!(Format::of(Path::new("b.jpg")), None);
        assert_eq!(Format::of(Path::new("svg")), None);
    }
}
