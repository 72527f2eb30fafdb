//! The one font, a part of the program: widths for the layout, outlines for pixels.

use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// The font's name, first of those that an SVG asks for.
pub(crate) const FAMILY: &str = "Roboto, Arial, Helvetica, sans-serif";

static FACE: LazyLock<Face<'static>> = LazyLock::new(|| {
    let bytes = include_bytes!("../font/Roboto-Regular-subset.ttf");
    Face::parse(bytes, 0).expect("the font in the program is whole")
});

/// How wide `words` are at `size`.
pub(crate) fn width(words: &str, size: f64) -> f64 {
    words
        .chars()
        .map(|letter| advance(glyph(letter)))
        .sum::<f64>()
        * size
}

/// Gives the outline of each letter to `builder`, after `begin` was told how far from the begin of the
/// words it stands, in parts of the size. A unit of an outline is [`unit`] of the size.
pub(crate) fn outline<B: OutlineBuilder>(
    words: &str,
    builder: &mut B,
    mut begin: impl FnMut(&mut B, f64),
) {
    let mut from = 0.0;
    for letter in words.chars() {
        let glyph = glyph(letter);
        begin(builder, from);
        FACE.outline_glyph(glyph, builder);
        from += advance(glyph);
    }
}

/// What part of the size a unit of an outline is.
pub(crate) fn unit() -> f64 {
    1.0 / f64::from(FACE.units_per_em())
}

/// Letters that the font has not are shown as question marks.
fn glyph(letter: char) -> GlyphId {
    let found = FACE.glyph_index(letter).or(FACE.glyph_index('?'));
    found.unwrap_or_default()
}

fn advance(glyph: GlyphId) -> f64 {
    f64::from(FACE.glyph_hor_advance(glyph).unwrap_or_default()) * unit()
}

/// Breaks `words` into lines no wider than `room`, where a line has more than a word.
pub(crate) fn wrapped(words: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_words_are_wider_and_strange_letters_have_a_width() {
        assert!(width("Payment", 12.0) > width("Pay", 12.0));
        assert_eq!(width("\u{1F600}", 12.0), width("?", 12.0));
        assert_eq!(width("", 12.0), 0.0);
    }

    #[test]
    fn the_font_has_what_captions_need() {
        for letter in "azAZ09µ×–—…≤≥≈−%/()[]{}<>&\"'#@|~^_*=+".chars() {
            assert!(FACE.glyph_index(letter).is_some(), "{letter}");
        }
    }

    #[test]
    fn lines_keep_to_the_room() {
        let lines = wrapped("one two three four five six seven", 10.0, 60.0);
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|line| width(line, 10.0) <= 60.0));
        assert_eq!(lines.join(" "), "one two three four five six seven");
    }
}
