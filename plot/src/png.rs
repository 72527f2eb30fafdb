//! A scene as PNG.

use crate::error::PlotError;
use crate::font;
use crate::scene::{Anchor, Color, Pen, Point, Scene, Shape, Text, Turn};
use tiny_skia::{
    Color as Fill, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash,
    Transform,
};
use ttf_parser::OutlineBuilder;

/// Pixels for a unit of the scene, in each direction.
const PIXELS: f32 = 2.0;

/// The file's bytes.
pub(crate) fn encode(scene: &Scene) -> Result<Vec<u8>, PlotError> {
    let pixels = |units: f64| (units as f32 * PIXELS).ceil() as u32;
    let (width, height) = (pixels(scene.width), pixels(scene.height));
    let refused = || PlotError::Encoding(format!("{width} by {height} pixels are too many"));
    let mut pixmap = Pixmap::new(width, height).ok_or_else(refused)?;
    pixmap.fill(Fill::WHITE);
    for shape in &scene.shapes {
        match shape {
            Shape::Line { points, pen } => stroke(&mut pixmap, points, *pen),
            Shape::Area { points, color } => fill(&mut pixmap, polygon(points, true), *color),
            Shape::Text(text) => fill(&mut pixmap, letters(text), text.color),
        }
    }
    let encoded = pixmap.encode_png();
    encoded.map_err(|error| PlotError::Encoding(error.to_string()))
}

fn fill(pixmap: &mut Pixmap, path: Option<Path>, color: Color) {
    // What has no extent has no path.
    if let Some(path) = path {
        let (paint, scale) = (paint(color), Transform::from_scale(PIXELS, PIXELS));
        pixmap.fill_path(&path, &paint, FillRule::Winding, scale, None);
    }
}

fn stroke(pixmap: &mut Pixmap, points: &[Point], pen: Pen) {
    let Some(path) = polygon(points, false) else {
        return;
    };
    let dash = pen.dash.iter().map(|length| *length as f32).collect();
    let stroke = Stroke {
        width: pen.width as f32,
        line_join: LineJoin::Round,
        dash: StrokeDash::new(dash, 0.0),
        ..Stroke::default()
    };
    let scale = Transform::from_scale(PIXELS, PIXELS);
    pixmap.stroke_path(&path, &paint(pen.color), &stroke, scale, None);
}

fn paint([red, green, blue]: Color) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

fn polygon(points: &[Point], is_closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    let (first, rest) = points.split_first()?;
    path.move_to(first.0 as f32, first.1 as f32);
    rest.iter()
        .for_each(|(x, y)| path.line_to(*x as f32, *y as f32));
    if is_closed {
        path.close();
    }
    path.finish()
}

fn letters(text: &Text) -> Option<Path> {
    let width = font::width(&text.words, text.size);
    let before = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => width / 2.0,
        Anchor::End => width,
    };
    let mut path = Letters {
        path: PathBuilder::new(),
        from: 0.0,
    };
    font::outline(&text.words, &mut path, |path, from| path.from = from);
    let size = text.size as f32;
    let turn = match text.turn {
        Turn::Level => 0.0,
        Turn::Upwards => -90.0,
    };
    let place = Transform::from_translate(text.at.0 as f32, text.at.1 as f32)
        .pre_rotate(turn)
        .pre_translate(-before as f32, 0.0)
        .pre_scale(size, size);
    path.path.finish()?.transform(place)
}

/// Gathers outlines in parts of the font's size, the y axis downwards.
struct Letters {
    path: PathBuilder,
    /// Where the letter begins.
    from: f64,
}

impl Letters {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        let unit = font::unit() as f32;
        (self.from as f32 + x * unit, -y * unit)
    }
}

impl OutlineBuilder for Letters {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
