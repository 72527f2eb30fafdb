//! Draws line charts and grouped bars as SVG and PNG, the same picture in both forms.
//!
//! # Protocol
//! A [`Figure`] says what is shown. `draw` lays it out as a `Scene`: lines, areas and texts at their
//! places. `svg` and `png` write a scene down; they know nothing of charts.
//!
//! # Invariants
//! 1. The same figure gives the same bytes, on every machine: the only font is the one in `font/`.
//! 2. Texts lie inside the picture, and none covers another.
//! 3. Up to [`STYLES_MAX`] lines, no two look alike, also to those who see no colours: markers differ
//!    where dashes do not.
//!
//! Nothing here touches files: [`Figure::render`] returns bytes.

#![forbid(unsafe_code)]

mod axis;
mod bars;
mod draw;
mod error;
mod figure;
mod font;
mod legend;
mod lines;
mod png;
mod scene;
mod style;
mod svg;
#[cfg(test)]
mod tests;

pub use error::PlotError;
pub use figure::{Axis, Bars, Chart, Figure, Format, Line, Panel, Scale};
pub use style::STYLES_MAX;
