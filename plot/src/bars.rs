//! Grouped bars in a chart.

use crate::draw::Area;
use crate::error::PlotError;
use crate::figure::{Bars, Panel, Scale};
use crate::font;
use crate::legend::Legend;
use crate::scene::{Anchor, Scene, Text};

/// The part of a group's room that bars fill.
const FILLED: f64 = 0.8;

/// Refuses bars without a place.
pub(crate) fn check(groups: &[String], bars: &[Bars], panel: &Panel) -> Result<(), PlotError> {
    if groups.is_empty() || bars.is_empty() {
        let panel = panel.title.clone();
        return Err(PlotError::Empty { panel });
    }
    for kind in bars {
        let (panel_title, name) = (panel.title.clone(), kind.name.clone());
        if kind.values.len() != groups.len() {
            return Err(PlotError::Groups {
                panel: panel_title,
                name,
                values: kind.values.len(),
                groups: groups.len(),
            });
        }
        let has_place = |value: f64| match panel.y.scale {
            Scale::Linear => value.is_finite() && value >= 0.0,
            Scale::Log => value.is_finite() && value > 0.0,
        };
        if let Some(&value) = kind.values.iter().find(|value| !has_place(**value)) {
            return Err(PlotError::OffAxis {
                panel: panel_title,
                name,
                value,
            });
        }
    }
    Ok(())
}

/// The lines that the names of groups take below the axis.
pub(crate) fn names(groups: &[String], width: f64, size: f64) -> Vec<Vec<String>> {
    let room = width / groups.len() as f64 - 6.0;
    groups
        .iter()
        .map(|name| font::wrapped(name, size, room))
        .collect()
}

/// Draws the bars.
pub(crate) fn draw(groups: usize, bars: &[Bars], area: &Area, legend: &Legend, scene: &mut Scene) {
    let room = area.width() / groups as f64;
    let thick = room * FILLED / bars.len() as f64;
    for group in 0..groups {
        let from = area.left + room * (group as f64 + (1.0 - FILLED) / 2.0);
        for (at, kind) in bars.iter().enumerate() {
            let left = from + thick * at as f64;
            let top = area.y(kind.values[group]);
            let style = legend.style(&kind.name);
            style.bar((left, top), (left + thick * 0.94, area.bottom), scene);
        }
    }
}

/// Draws the names of the groups below the bars.
pub(crate) fn draw_names(names: &[Vec<String>], area: &Area, size: f64, scene: &mut Scene) {
    let room = area.width() / names.len() as f64;
    for (group, lines) in names.iter().enumerate() {
        let middle = area.left + room * (group as f64 + 0.5);
        for (row, words) in lines.iter().enumerate() {
            let at = (
                middle,
                area.bottom + (size + 3.0) * (row as f64 + 1.0) + 4.0,
            );
            scene.text(Text::new(at, words.clone(), size).anchored(Anchor::Middle));
        }
    }
}
