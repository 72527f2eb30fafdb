//! Lays a figure out: what stands where.
//!
//! ```text
//! title
//!   panel title      panel title
//!   y │ chart        y │ chart        legend
//!     └──────          └──────
//!       x                x
//! caption
//! ```

use crate::axis::Ruler;
use crate::error::PlotError;
use crate::figure::{Axis, Chart, Figure, Panel, Scale};
use crate::legend::Legend;
use crate::scene::{Anchor, Pen, Point, Scene, Text};
use crate::style::{GRID, INK};
use crate::{bars, font, lines};

const MARGIN: f64 = 18.0;
const GAP: f64 = 26.0;
const CHART_HEIGHT_MIN: f64 = 340.0;
const TITLE: f64 = 17.0;
const PANEL_TITLE: f64 = 14.0;
const AXIS_TITLE: f64 = 13.0;
const LABEL: f64 = 11.5;
const CAPTION: f64 = 11.0;
/// Room between what stands on lines one below the other.
const LEADING: f64 = 1.35;
/// Room between an axis and its labels.
const APART: f64 = 7.0;

/// The picture of a figure.
pub(crate) fn scene(figure: &Figure) -> Result<Scene, PlotError> {
    let legend = Legend::of(figure)?;
    let panels: Vec<Prepared> = figure
        .panels
        .iter()
        .map(|panel| Prepared::of(panel, chart_width(figure)))
        .collect::<Result<_, _>>()?;
    let mut scene = Scene {
        width: 0.0,
        height: 0.0,
        shapes: Vec::new(),
    };
    let width: f64 = panels.iter().map(|panel| panel.width() + GAP).sum();
    scene.width = 2.0 * MARGIN + width + legend.width();
    let mut top = MARGIN;
    paragraph(&figure.title, TITLE, &mut top, &mut scene);
    let above = panels.iter().map(Prepared::above).fold(0.0, f64::max);
    top += 6.0 + above;
    let mut left = MARGIN;
    // A long legend leaves room for a higher chart.
    let chart_height = legend.height().max(CHART_HEIGHT_MIN);
    for panel in &panels {
        panel.draw((left, top), chart_height, &legend, &mut scene);
        left += panel.width() + GAP;
    }
    legend.draw((left, top), &mut scene);
    let below = panels.iter().map(Prepared::below).fold(0.0, f64::max);
    top += chart_height + below + 10.0;
    for words in &figure.caption {
        paragraph(words, CAPTION, &mut top, &mut scene);
    }
    scene.height = top + MARGIN * 0.7;
    Ok(scene)
}

fn chart_width(figure: &Figure) -> f64 {
    match figure.panels.len() {
        1 => 560.0,
        _ => 360.0,
    }
}

/// Writes words over the whole width from `top` on, and moves `top` below them.
fn paragraph(words: &str, size: f64, top: &mut f64, scene: &mut Scene) {
    for line in font::wrapped(words, size, scene.width - 2.0 * MARGIN) {
        scene.text(Text::new((MARGIN, *top + size), line, size));
        *top += size * LEADING;
    }
}

/// The rectangle between the axes of a chart.
pub(crate) struct Area<'a> {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    x: Option<&'a Ruler>,
    y: &'a Ruler,
}

impl Area<'_> {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn x(&self, value: f64) -> f64 {
        let place = self.x.map_or(0.0, |ruler| ruler.place(value));
        self.left + self.width() * place
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.place(value)
    }

    pub(crate) fn point(&self, x: f64, y: f64) -> Point {
        (self.x(x), self.y(y))
    }
}

/// A panel that is known to be drawable, with its axes.
struct Prepared<'a> {
    panel: &'a Panel,
    title: Vec<String>,
    x_title: Vec<String>,
    /// Bars have groups instead.
    x: Option<Ruler>,
    groups: Vec<Vec<String>>,
    y: Ruler,
    chart_width: f64,
}

impl<'a> Prepared<'a> {
    fn of(panel: &'a Panel, chart_width: f64) -> Result<Prepared<'a>, PlotError> {
        let (x, y, groups) = match &panel.chart {
            Chart::Lines(lines) => {
                lines::check(lines, panel)?;
                let points = || lines.iter().flat_map(|line| &line.points);
                let x = Ruler::over(&panel.x, points().map(|point| point.0));
                let y = Ruler::over(&panel.y, points().map(|point| point.1));
                (Some(x), y, Vec::new())
            }
            Chart::Bars { groups, bars } => {
                bars::check(groups, bars, panel)?;
                let values = bars.iter().flat_map(|bars| bars.values.iter().copied());
                let y = Ruler::over(&grounded(&panel.y), values);
                (None, y, bars::names(groups, chart_width, LABEL))
            }
        };
        Ok(Prepared {
            panel,
            title: font::wrapped(&panel.title, PANEL_TITLE, chart_width),
            x_title: font::wrapped(&panel.x.title, AXIS_TITLE, chart_width),
            x,
            groups,
            y,
            chart_width,
        })
    }

    /// Room at the left of the chart, for the labels and title of its axis.
    fn beside(&self) -> f64 {
        let labels = self.y.ticks.iter().filter_map(|tick| tick.label.as_ref());
        let widest = labels
            .map(|label| font::width(label, LABEL))
            .fold(0.0, f64::max);
        AXIS_TITLE * LEADING + widest + APART
    }

    fn width(&self) -> f64 {
        self.beside() + self.chart_width
    }

    fn above(&self) -> f64 {
        PANEL_TITLE * LEADING * self.title.len() as f64 + 4.0
    }

    fn labels_height(&self) -> f64 {
        let rows = self.groups.iter().map(Vec::len).max().unwrap_or(1);
        APART + (LABEL + 3.0) * rows as f64
    }

    fn below(&self) -> f64 {
        self.labels_height() + 4.0 + AXIS_TITLE * LEADING * self.x_title.len() as f64
    }

    fn draw(&self, (left, top): Point, height: f64, legend: &Legend, scene: &mut Scene) {
        let area = Area {
            left: left + self.beside(),
            right: left + self.width(),
            top,
            bottom: top + height,
            x: self.x.as_ref(),
            y: &self.y,
        };
        self.draw_titles(left, &area, scene);
        self.draw_ticks(&area, scene);
        let corners = [
            (area.left, area.top),
            (area.left, area.bottom),
            (area.right, area.bottom),
        ];
        scene.line(corners, pen(1.2));
        match &self.panel.chart {
            Chart::Lines(lines) => lines::draw(lines, &area, legend, scene),
            Chart::Bars { groups, bars } => bars::draw(groups.len(), bars, &area, legend, scene),
        }
    }

    fn draw_titles(&self, left: f64, area: &Area, scene: &mut Scene) {
        let middle = (area.left + area.right) / 2.0;
        let mut centred = |words: &String, size, y| {
            scene.text(Text::new((middle, y), words.clone(), size).anchored(Anchor::Middle));
        };
        for (row, words) in self.title.iter().rev().enumerate() {
            centred(
                words,
                PANEL_TITLE,
                area.top - 8.0 - PANEL_TITLE * LEADING * row as f64,
            );
        }
        let below = area.bottom + self.labels_height() + 4.0;
        for (row, words) in self.x_title.iter().enumerate() {
            centred(
                words,
                AXIS_TITLE,
                below + AXIS_TITLE * (1.0 + LEADING * row as f64),
            );
        }
        let at = (left + AXIS_TITLE, (area.top + area.bottom) / 2.0);
        let title = Text::new(at, self.panel.y.title.clone(), AXIS_TITLE);
        scene.text(title.anchored(Anchor::Middle).upwards());
    }

    fn draw_ticks(&self, area: &Area, scene: &mut Scene) {
        for tick in &self.y.ticks {
            let y = area.y(tick.value);
            scene.line(
                [(area.left, y), (area.right, y)],
                grid(tick.label.is_some()),
            );
            if let Some(label) = &tick.label {
                let at = (area.left - APART, y + LABEL * 0.35);
                scene.text(Text::new(at, label.clone(), LABEL).anchored(Anchor::End));
            }
        }
        bars::draw_names(&self.groups, area, LABEL, scene);
        let mut free_from = f64::NEG_INFINITY;
        for tick in self.x.iter().flat_map(|ruler| &ruler.ticks) {
            let x = area.x(tick.value);
            scene.line(
                [(x, area.top), (x, area.bottom)],
                grid(tick.label.is_some()),
            );
            let Some(label) = &tick.label else {
                continue;
            };
            // A label that would touch the one before is left out.
            let half = font::width(label, LABEL) / 2.0;
            if x - half > free_from {
                let at = (x, area.bottom + APART + LABEL);
                scene.text(Text::new(at, label.clone(), LABEL).anchored(Anchor::Middle));
                free_from = x + half + 3.0;
            }
        }
    }
}

/// Bars stand on the axis, which begins at zero where it can.
fn grounded(axis: &Axis) -> Axis {
    match axis.scale {
        Scale::Linear => axis.clone().from(0.0),
        Scale::Log => axis.clone(),
    }
}

fn pen(width: f64) -> Pen {
    Pen {
        color: INK,
        width,
        dash: &[],
    }
}

fn grid(is_labelled: bool) -> Pen {
    Pen {
        color: GRID,
        width: if is_labelled { 1.0 } else { 0.5 },
        dash: &[],
    }
}
