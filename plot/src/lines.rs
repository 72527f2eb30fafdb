//! Lines in a chart.

use crate::draw::Area;
use crate::error::PlotError;
use crate::figure::{Line, Panel, Scale};
use crate::legend::Legend;
use crate::scene::Scene;

/// Refuses points without a place.
pub(crate) fn check(lines: &[Line], panel: &Panel) -> Result<(), PlotError> {
    if lines.iter().all(|line| line.points.is_empty()) {
        let panel = panel.title.clone();
        return Err(PlotError::Empty { panel });
    }
    let has_place =
        |scale: Scale, value: f64| value.is_finite() && (scale == Scale::Linear || value > 0.0);
    for line in lines {
        for &(x, y) in &line.points {
            for (scale, value) in [(panel.x.scale, x), (panel.y.scale, y)] {
                if !has_place(scale, value) {
                    return Err(PlotError::OffAxis {
                        panel: panel.title.clone(),
                        name: line.name.clone(),
                        value,
                    });
                }
            }
        }
    }
    Ok(())
}

/// Draws the lines, the first on top, and markers over all of them.
pub(crate) fn draw(lines: &[Line], area: &Area, legend: &Legend, scene: &mut Scene) {
    let placed = lines.iter().rev().map(|line| {
        let points = line.points.iter().map(|(x, y)| area.point(*x, *y));
        (legend.style(&line.name), points.collect::<Vec<_>>())
    });
    let placed: Vec<_> = placed.collect();
    for (style, points) in &placed {
        scene.line(points.clone(), style.pen());
    }
    for (style, points) in &placed {
        points.iter().for_each(|point| style.mark(*point, scene));
    }
}
