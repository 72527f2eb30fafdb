//! A scene as SVG.

use crate::font::FAMILY;
use crate::scene::{Anchor, Color, Point, Scene, Shape, Text, Turn};

/// The document. Coordinates have a digit behind the point, or two.
pub(crate) fn encode(scene: &Scene) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"{FAMILY}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for shape in &scene.shapes {
        svg.push_str(&element(shape));
        svg.push('\n');
    }
    svg.push_str("</svg>\n");
    svg
}

fn element(shape: &Shape) -> String {
    match shape {
        Shape::Line { points, pen } => {
            let dash: Vec<String> = pen.dash.iter().map(|length| number(*length)).collect();
            let dash = match dash.is_empty() {
                true => String::new(),
                false => format!(" stroke-dasharray=\"{}\"", dash.join(" ")),
            };
            format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{dash} \
                 stroke-linejoin=\"round\"/>",
                listed(points),
                color(pen.color),
                number(pen.width)
            )
        }
        Shape::Area {
            points,
            color: fill,
        } => {
            format!(
                "<polygon points=\"{}\" fill=\"{}\"/>",
                listed(points),
                color(*fill)
            )
        }
        Shape::Text(text) => words(text),
    }
}

fn words(text: &Text) -> String {
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let (x, y) = (number(text.at.0), number(text.at.1));
    let turn = match text.turn {
        Turn::Level => String::new(),
        Turn::Upwards => format!(" transform=\"rotate(-90 {x} {y})\""),
    };
    format!(
        "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"{anchor}{turn}>{}</text>",
        number(text.size),
        color(text.color),
        escaped(&text.words)
    )
}

fn listed(points: &[Point]) -> String {
    let points = points
        .iter()
        .map(|(x, y)| format!("{},{}", number(*x), number(*y)));
    points.collect::<Vec<_>>().join(" ")
}

fn number(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    rounded.to_string()
}

fn color([red, green, blue]: Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// What XML reserves is escaped; what it does not allow is left out.
fn escaped(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for letter in words.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}
