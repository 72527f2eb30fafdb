//! From values to places along an axis, and where its ticks stand.

use crate::figure::{Axis, Scale};

/// An axis with its ends and ticks.
pub(crate) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    pub(crate) ticks: Vec<Tick>,
}

/// A mark along an axis.
pub(crate) struct Tick {
    pub(crate) value: f64,
    /// Minor ticks have none.
    pub(crate) label: Option<String>,
}

impl Ruler {
    /// The ruler that has room for `values`, of which there is at least one, all in the scale.
    pub(crate) fn over(axis: &Axis, values: impl Iterator<Item = f64>) -> Ruler {
        let values = values
            .chain(axis.from)
            .chain(axis.to)
            .chain(axis.ticks.iter().copied());
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let scale = axis.scale;
        let (low, high) = widened(scale, low, high);
        if !axis.ticks.is_empty() {
            let ticks = axis
                .ticks
                .iter()
                .map(|value| Tick::labelled(*value))
                .collect();
            return Ruler {
                scale,
                low,
                high,
                ticks,
            };
        }
        match scale {
            Scale::Linear => Ruler::linear(low, high),
            Scale::Log => Ruler::logarithmic(low, high),
        }
    }

    fn linear(low: f64, high: f64) -> Ruler {
        let step = nice_step((high - low) / 5.0);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let ticks =
            (0..=(last - first) as u32).map(|at| Tick::labelled((first + f64::from(at)) * step));
        Ruler {
            scale: Scale::Linear,
            low: first * step,
            high: last * step,
            ticks: ticks.collect(),
        }
    }

    fn logarithmic(low: f64, high: f64) -> Ruler {
        const ALL: &[u32] = &[1, 2, 3, 4, 5, 6, 7, 8, 9];
        let (labelled, minor): (&[u32], &[u32]) = match (high / low).log10() {
            decades if decades <= 1.0 => (ALL, &[]),
            decades if decades <= 2.5 => (&[1, 2, 5], ALL),
            decades if decades <= 6.0 => (&[1], ALL),
            _ => (&[1], &[]),
        };
        let decades = low.log10().floor() as i32 - 1..=high.log10().ceil() as i32 + 1;
        let of = |multiples: &'static [u32]| {
            let decades = decades.clone();
            decades.flat_map(move |decade| {
                multiples
                    .iter()
                    .map(move |m| f64::from(*m) * 10f64.powi(decade))
            })
        };
        // The ends are labelled, the nearest that leave nothing outside.
        let near = 1.0 + 1e-9;
        let low = of(labelled)
            .filter(|tick| *tick <= low * near)
            .fold(f64::MIN_POSITIVE, f64::max);
        let high = of(labelled)
            .find(|tick| *tick * near >= high)
            .unwrap_or(high);
        let inside = |tick: &f64| *tick * near >= low && *tick <= high * near;
        let mut ticks: Vec<Tick> = of(labelled).filter(inside).map(Tick::labelled).collect();
        ticks.extend(of(minor).filter(inside).map(Tick::minor));
        Ruler {
            scale: Scale::Log,
            low,
            high,
            ticks,
        }
    }

    /// Where `value` stands: 0 at the low end, 1 at the high one.
    pub(crate) fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }
}

impl Tick {
    fn labelled(value: f64) -> Tick {
        let label = Some(label(value));
        Tick { value, label }
    }

    fn minor(value: f64) -> Tick {
        Tick { value, label: None }
    }
}

/// Ends that differ.
fn widened(scale: Scale, low: f64, high: f64) -> (f64, f64) {
    match scale {
        _ if high > low => (low, high),
        Scale::Linear if low == 0.0 => (0.0, 1.0),
        Scale::Linear => (low.min(0.0), high.max(0.0)),
        Scale::Log => (low / 2.0, high * 2.0),
    }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `step`.
fn nice_step(step: f64) -> f64 {
    let decade = 10f64.powf(step.log10().floor());
    let multiples = [1.0, 2.0, 5.0, 10.0].map(|multiple| multiple * decade);
    let nice = multiples
        .into_iter()
        .find(|nice| *nice >= step * (1.0 - 1e-9));
    nice.unwrap_or(step)
}

/// A number as people write it: `12,500`, `0.25`, `40 M`.
fn label(value: f64) -> String {
    let (value, unit) = match value.abs() {
        large if large >= 1e10 => (value / 1e9, " G"),
        large if large >= 1e7 => (value / 1e6, " M"),
        _ => (value, ""),
    };
    // Nine digits hide what adding up steps left behind.
    let digits = match value == 0.0 {
        true => 0,
        false => (9 - value.abs().log10().floor() as i32).clamp(0, 15) as usize,
    };
    let shown = format!("{:.digits$}", value.abs());
    let shown = match shown.contains('.') {
        true => shown.trim_end_matches('0').trim_end_matches('.'),
        false => &shown,
    };
    let (whole, fraction) = shown.split_at(shown.find('.').unwrap_or(shown.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{grouped}{fraction}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64]) -> Vec<String> {
        let ruler = Ruler::over(&Axis::new("x", scale), values.iter().copied());
        for value in values {
            assert!(
                (-1e-6..=1.0 + 1e-6).contains(&ruler.place(*value)),
                "{value}"
            );
        }
        ruler
            .ticks
            .into_iter()
            .filter_map(|tick| tick.label)
            .collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(
            labels(Scale::Linear, &[0.0, 100.0]),
            ["0", "20", "40", "60", "80", "100"]
        );
        assert_eq!(
            labels(Scale::Linear, &[0.0, 0.31]),
            ["0", "0.1", "0.2", "0.3", "0.4"]
        );
        assert_eq!(
            labels(Scale::Linear, &[-3.0, 2.0]),
            ["−3", "−2", "−1", "0", "1", "2"]
        );
    }

    #[test]
    fn logarithmic_ticks_suit_the_span() {
        assert_eq!(
            labels(Scale::Log, &[210.0, 480.0]),
            ["200", "300", "400", "500"]
        );
        assert_eq!(
            labels(Scale::Log, &[1300.0, 41_000.0]),
            ["1,000", "2,000", "5,000", "10,000", "20,000", "50,000"]
        );
        assert_eq!(labels(Scale::Log, &[0.5, 900_000.0]).len(), 8);
    }

    #[test]
    fn one_value_has_an_axis_around_it() {
        assert!(labels(Scale::Linear, &[7.0]).len() > 1);
        assert!(labels(Scale::Linear, &[0.0]).len() > 1);
        assert!(labels(Scale::Log, &[7.0]).len() > 1);
    }

    #[test]
    fn every_range_has_a_few_ticks_and_room_for_its_ends() {
        for low in [1e-6, 0.02, 1.0, 99.0, 1e4, 3e8] {
            for factor in [1.0001, 1.3, 2.0, 9.0, 60.0, 5e3, 1e9] {
                let linear = labels(Scale::Linear, &[low, low * factor]);
                assert!(
                    (3..=12).contains(&linear.len()),
                    "{low} {factor}: {linear:?}"
                );
                let log = labels(Scale::Log, &[low, low * factor]);
                assert!((2..=24).contains(&log.len()), "{low} {factor}: {log:?}");
            }
        }
    }

    #[test]
    fn numbers_are_written_as_people_do() {
        let shown = [12_500.0, 0.1 + 0.2, 4e7, -1234.5, 2e10, 0.0].map(label);
        assert_eq!(shown, ["12,500", "0.3", "40 M", "−1,234.5", "20 G", "0"]);
    }
}
