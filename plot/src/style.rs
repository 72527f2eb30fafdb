//! Colours, dashes and markers.
//!
//! The colours are those of Okabe and Ito (2008) but yellow, which is too light for lines: people who
//! see fewer colours tell them apart. Markers repeat after five and dashes change after seven, so
//! that no two of [`STYLES_MAX`] styles share all three.

use crate::scene::{Color, Pen, Point, Scene};
use std::f64::consts::TAU;

/// Lines that can be told apart.
pub const STYLES_MAX: usize = 28;

/// Of texts and axes.
pub(crate) const INK: Color = [38, 38, 38];
/// Of the lines behind a chart.
pub(crate) const GRID: Color = [222, 222, 222];
const GREY: Color = [130, 130, 130];
const WHITE: Color = [255, 255, 255];

const COLORS: [Color; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [0, 0, 0],
];
const DASHES: [&[f64]; 4] = [&[], &[7.0, 3.5], &[2.0, 2.5], &[9.0, 3.0, 2.0, 3.0]];
const REFERENCE_DASH: &[f64] = &[1.5, 4.0];
const MARKER_RADIUS: f64 = 4.2;

/// How a line, or a kind of bar, looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// The n-th of those that were measured.
    Measured(usize),
    /// One to compare with.
    Reference,
}

impl Style {
    pub(crate) fn color(self) -> Color {
        match self {
            Style::Measured(at) => COLORS[at % COLORS.len()],
            Style::Reference => GREY,
        }
    }

    pub(crate) fn pen(self) -> Pen {
        let dash = match self {
            Style::Measured(at) => DASHES[at / COLORS.len() % DASHES.len()],
            Style::Reference => REFERENCE_DASH,
        };
        Pen {
            color: self.color(),
            width: 2.0,
            dash,
        }
    }

    /// Paints the marker around `at`; references have none.
    pub(crate) fn mark(self, at: Point, scene: &mut Scene) {
        let Style::Measured(which) = self else {
            return;
        };
        let outline = |radius| outline(MARKERS[which % MARKERS.len()], at, radius);
        scene.area(outline(MARKER_RADIUS + 1.2), WHITE);
        scene.area(outline(MARKER_RADIUS), self.color());
    }

    /// Paints a bar: plain, then striped across, then along, then both ways.
    pub(crate) fn bar(self, (left, top): Point, (right, bottom): Point, scene: &mut Scene) {
        const STRIPE: f64 = 2.0;
        const STEP: f64 = 6.0;
        scene.rectangle((left, top), (right, bottom), self.color());
        let Style::Measured(at) = self else {
            return;
        };
        let stripes = |from: f64, to: f64| {
            let count = ((to - from) / STEP) as usize;
            (0..count).map(move |stripe| from + STEP * (stripe as f64 + 0.5))
        };
        let pattern = at / COLORS.len() % DASHES.len();
        if pattern & 1 != 0 {
            stripes(top, bottom)
                .for_each(|y| scene.rectangle((left, y), (right, y + STRIPE), WHITE));
        }
        if pattern & 2 != 0 {
            stripes(left, right)
                .for_each(|x| scene.rectangle((x, top), (x + STRIPE, bottom), WHITE));
        }
    }
}

/// A marker's corners on a circle: how many, and the angle of the first; how large.
type Marker = (usize, f64, f64);

const MARKERS: [Marker; 5] = [
    (28, 0.0, 1.0),
    (4, 0.125, 1.2),
    (3, 0.75, 1.3),
    (4, 0.0, 1.3),
    (3, 0.25, 1.3),
];

fn outline((corners, first, large): Marker, (x, y): Point, radius: f64) -> Vec<Point> {
    let corner = |at: usize| {
        let angle = TAU * (first + at as f64 / corners as f64);
        (
            x + large * radius * angle.cos(),
            y + large * radius * angle.sin(),
        )
    };
    (0..corners).map(corner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_styles_look_alike() {
        let looks = (0..STYLES_MAX).map(|at| {
            let pen = Style::Measured(at).pen();
            (
                pen.color,
                pen.dash.len() as u8 + pen.dash.first().map_or(0, |d| *d as u8),
                at % 5,
            )
        });
        assert_eq!(looks.collect::<HashSet<_>>().len(), STYLES_MAX);
    }

    #[test]
    fn twenty_styles_differ_without_colours() {
        // Seven lines of one dash share five markers; lines of other dashes differ by the dash.
        let looks = (0..STYLES_MAX).map(|at| (at / COLORS.len(), at % MARKERS.len()));
        assert_eq!(looks.collect::<HashSet<_>>().len(), 20);
    }
}
