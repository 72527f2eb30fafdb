//! Zipf's law: number `i` is drawn in proportion to `(i + 1)^-alpha`.

use super::random::Random;

/// The law over a number of items, as the table of its sums: 8 bytes an item.
pub(super) struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    /// The law over `items`, at least one.
    pub(super) fn new(items: u64, alpha: f64) -> Zipf {
        let mut sum = 0.0;
        let weights = (1..=items).map(|item| (item as f64).powf(-alpha));
        let sums = weights.map(|weight| {
            sum += weight;
            sum
        });
        Zipf {
            sums: sums.collect(),
        }
    }

    /// A number from 0.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let last = self.sums.len() - 1;
        let point = random.fraction() * self.sums[last];
        self.sums.partition_point(|&sum| sum <= point).min(last) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_follow_the_law() {
        let (zipf, mut random) = (Zipf::new(1000, 0.86), Random::new(1, 0));
        let mut counts = vec![0u32; 1000];
        for _ in 0..1_000_000 {
            counts[zipf.draw(&mut random) as usize] += 1;
        }
        let total: f64 = (1..=1000).map(|item| f64::from(item).powf(-0.86)).sum();
        for item in [1usize, 2, 10, 100] {
            let expected = 1e6 * (item as f64).powf(-0.86) / total;
            let seen = f64::from(counts[item - 1]);
            // Five standard deviations.
            assert!(
                (seen - expected).abs() < 5.0 * expected.sqrt(),
                "{item}: {seen}, not {expected}"
            );
        }
    }

    #[test]
    fn an_exponent_of_zero_is_no_law_at_all() {
        let (zipf, mut random) = (Zipf::new(4, 0.0), Random::new(1, 0));
        let mut counts = [0u32; 4];
        (0..40_000).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
        assert!(
            counts.iter().all(|&count| (9_500..10_500).contains(&count)),
            "{counts:?}"
        );
    }
}
