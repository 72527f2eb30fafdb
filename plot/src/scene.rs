//! A picture laid out: shapes at their places, in the order in which they are painted.

/// A place, in units from the upper left corner.
pub(crate) type Point = (f64, f64);

/// Red, green, blue.
pub(crate) type Color = [u8; 3];

/// Shapes on a white ground.
pub(crate) struct Scene {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) shapes: Vec<Shape>,
}

/// What is painted.
pub(crate) enum Shape {
    /// Connected points.
    Line { points: Vec<Point>, pen: Pen },
    /// The area within the points.
    Area { points: Vec<Point>, color: Color },
    /// A word or more.
    Text(Text),
}

/// How a line is painted.
#[derive(Clone, Copy)]
pub(crate) struct Pen {
    pub(crate) color: Color,
    pub(crate) width: f64,
    /// Lengths of dashes and gaps; empty for a line without.
    pub(crate) dash: &'static [f64],
}

/// Words on one line.
pub(crate) struct Text {
    /// On the line that letters stand on, where `anchor` says.
    pub(crate) at: Point,
    pub(crate) words: String,
    pub(crate) size: f64,
    pub(crate) anchor: Anchor,
    pub(crate) turn: Turn,
    pub(crate) color: Color,
}

/// Which point of a text lies at its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Which way a text runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Level,
    Upwards,
}

impl Scene {
    pub(crate) fn line(&mut self, points: impl Into<Vec<Point>>, pen: Pen) {
        let points = points.into();
        self.shapes.push(Shape::Line { points, pen });
    }

    pub(crate) fn area(&mut self, points: impl Into<Vec<Point>>, color: Color) {
        let points = points.into();
        self.shapes.push(Shape::Area { points, color });
    }

    pub(crate) fn rectangle(&mut self, (left, top): Point, (right, bottom): Point, color: Color) {
        self.area(
            [(left, top), (right, top), (right, bottom), (left, bottom)],
            color,
        );
    }

    pub(crate) fn text(&mut self, text: Text) {
        self.shapes.push(Shape::Text(text));
    }
}

impl Text {
    /// Level words that begin at `at`.
    pub(crate) fn new(at: Point, words: impl Into<String>, size: f64) -> Text {
        Text {
            at,
            words: words.into(),
            size,
            anchor: Anchor::Start,
            turn: Turn::Level,
            color: crate::style::INK,
        }
    }

    pub(crate) fn anchored(mut self, anchor: Anchor) -> Text {
        self.anchor = anchor;
        self
    }

    pub(crate) fn upwards(mut self) -> Text {
        self.turn = Turn::Upwards;
        self
    }
}
