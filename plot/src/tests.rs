//! Whole figures: what every picture keeps to.

use crate::scene::{Anchor, Scene, Shape, Text, Turn};
use crate::{Axis, Bars, Chart, Figure, Format, Line, Panel, PlotError, STYLES_MAX, Scale};
use crate::{draw, font};

/// Two panels of `lines` lines, the second logarithmic.
fn figure(lines: usize) -> Figure {
    let line = |at: usize| {
        let points = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(|x| (x, 1000.0 * x / (1.0 + at as f64)));
        Line::new(format!("line number {at}"), points)
    };
    let panel = |scale| Panel {
        title: format!(
            "a panel whose title is as long as titles of panels will ever be, {scale:?}"
        ),
        x: Axis::new(
            "clients, and what else there is to tell of this axis",
            scale,
        ),
        y: Axis::new("rows per second", scale),
        chart: Chart::Lines((0..lines).map(line).collect()),
    };
    Figure {
        title: "What is shown, \"quoted\" & <marked>, over more than a single line of the picture, since \
                titles may be long when nobody looks after them, and still must be readable"
            .to_owned(),
        panels: vec![panel(Scale::Linear), panel(Scale::Log)],
        caption: vec!["longshore bench --threads 1,2,4,8,16,32 ".repeat(9), "2026-11-22".to_owned()],
    }
}

/// Bars of `kinds` kinds in three groups.
fn bars(kinds: usize) -> Figure {
    let bars = |at: usize| Bars::new(format!("kind {at}"), [1.0, 2.0, 3.5 + at as f64]);
    let groups = ["one", "two and a good deal more than only two", "three"];
    Figure {
        title: "Bars".to_owned(),
        panels: vec![Panel {
            title: "a panel".to_owned(),
            x: Axis::new("group", Scale::Linear),
            y: Axis::new("µs", Scale::Linear),
            chart: Chart::Bars {
                groups: groups.map(str::to_owned).to_vec(),
                bars: (0..kinds).map(bars).collect(),
            },
        }],
        caption: Vec::new(),
    }
}

fn texts(scene: &Scene) -> impl Iterator<Item = &Text> {
    scene.shapes.iter().filter_map(|shape| match shape {
        Shape::Text(text) => Some(text),
        _ => None,
    })
}

/// Left, top, right, bottom of what the letters cover.
fn bounds(text: &Text) -> [f64; 4] {
    let width = font::width(&text.words, text.size);
    let before = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => width / 2.0,
        Anchor::End => width,
    };
    let (up, down) = (0.75 * text.size, 0.2 * text.size);
    let (x, y) = text.at;
    match text.turn {
        Turn::Level => [x - before, y - up, x - before + width, y + down],
        Turn::Upwards => [x - up, y + before - width, x + down, y + before],
    }
}

fn overlap(one: [f64; 4], other: [f64; 4]) -> bool {
    one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3]
}

#[test]
fn texts_lie_inside_and_none_covers_another() {
    let figures = [1, 2, 7, STYLES_MAX].map(|count| [figure(count), bars(count)]);
    for figure in figures.iter().flatten() {
        let scene = draw::scene(figure).unwrap();
        let texts: Vec<&Text> = texts(&scene).collect();
        for (at, text) in texts.iter().enumerate() {
            let [left, top, right, bottom] = bounds(text);
            let is_inside =
                left >= 0.0 && top >= 0.0 && right <= scene.width && bottom <= scene.height;
            assert!(is_inside, "{:?} at {:?}", text.words, text.at);
            for other in &texts[at + 1..] {
                assert!(
                    !overlap(bounds(text), bounds(other)),
                    "{:?} and {:?}",
                    text.words,
                    other.words
                );
            }
        }
    }
}

#[test]
fn lines_and_bars_stay_inside() {
    for figure in [figure(3), bars(9)] {
        let scene = draw::scene(&figure).unwrap();
        for shape in &scene.shapes {
            let (Shape::Line { points, .. } | Shape::Area { points, .. }) = shape else {
                continue;
            };
            for (x, y) in points {
                assert!(
                    (0.0..=scene.width).contains(x) && (0.0..=scene.height).contains(y),
                    "{x} {y}"
                );
            }
        }
    }
}

#[test]
fn the_svg_is_xml_that_holds_every_text() {
    let figure = figure(20);
    let svg = String::from_utf8(figure.render(Format::Svg).unwrap()).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let scene = draw::scene(&figure).unwrap();
    let written = document
        .descendants()
        .filter(|node| node.has_tag_name("text"));
    let written: Vec<&str> = written.filter_map(|node| node.text()).collect();
    let meant: Vec<&str> = texts(&scene).map(|text| text.words.as_str()).collect();
    assert_eq!(written, meant);
    assert!(meant.contains(&"rows per second") && meant.contains(&"line number 19"));
}

#[test]
fn the_png_has_ink_where_texts_are_and_two_pixels_a_unit() {
    let figure = figure(2);
    let scene = draw::scene(&figure).unwrap();
    let png = figure.render(Format::Png).unwrap();
    let pixels = tiny_skia::Pixmap::decode_png(&png).unwrap();
    assert_eq!(pixels.width(), (scene.width as f32 * 2.0).ceil() as u32);
    for text in texts(&scene) {
        let [left, top, right, bottom] = bounds(text).map(|unit| (unit * 2.0) as u32);
        let dark = (left..right).any(|x| {
            let mut column = (top..bottom).filter_map(|y| pixels.pixel(x, y));
            column.any(|pixel| pixel.red() < 128)
        });
        assert!(dark, "{:?} cannot be seen", text.words);
    }
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    for format in [Format::Svg, Format::Png] {
        assert_eq!(figure(3).render(format), figure(3).render(format));
    }
}

#[test]
fn what_cannot_be_drawn_is_refused_with_its_name() {
    let refused = |change: &dyn Fn(&mut Panel)| {
        let mut figure = figure(1);
        change(&mut figure.panels[1]);
        figure.render(Format::Svg).unwrap_err()
    };
    let line = |y: f64| {
        move |panel: &mut Panel| panel.chart = Chart::Lines(vec![Line::new("odd", [(1.0, y)])])
    };
    for value in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
        let refused = refused(&line(value));
        assert!(
            matches!(&refused, PlotError::OffAxis { name, .. } if name == "odd"),
            "{refused}"
        );
    }
    let nothing = refused(&|panel| panel.chart = Chart::Lines(Vec::new()));
    assert!(matches!(nothing, PlotError::Empty { .. }), "{nothing}");
    let ragged = refused(&|panel| {
        panel.chart = Chart::Bars {
            groups: vec!["one".to_owned()],
            bars: vec![Bars::new("odd", [1.0, 2.0])],
        };
    });
    assert!(
        matches!(ragged, PlotError::Groups { values: 2, .. }),
        "{ragged}"
    );
    let many = figure(STYLES_MAX + 1).render(Format::Svg).unwrap_err();
    assert_eq!(
        many,
        PlotError::TooMany {
            lines: STYLES_MAX + 1
        }
    );
}
