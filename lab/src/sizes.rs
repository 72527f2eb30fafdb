//! How large a cache is: in pages, or as a part of the trace's pages.

use std::str::FromStr;

/// A size on the command line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    /// So many pages.
    Pages(u32),
    /// So many in a hundred of the trace's distinct pages, at least one.
    Percent(f64),
}

/// The sizes unless others are asked for: from where hardly anything is hit to where nearly everything is.
const PERCENTS: [f64; 10] = [0.5, 1.0, 2.0, 4.0, 7.0, 12.0, 20.0, 35.0, 55.0, 80.0];

impl Size {
    fn resolved(self, distinct: usize) -> u32 {
        match self {
            Size::Pages(pages) => pages,
            Size::Percent(percent) => ((percent / 100.0 * distinct as f64).round() as u32).max(1),
        }
    }
}

/// The sizes in pages for a trace of `distinct` pages, ascending, each once; ten by default.
pub fn resolve(sizes: &[Size], distinct: usize) -> Vec<u32> {
    let chosen: Vec<u32> = match sizes {
        [] => PERCENTS
            .map(|percent| Size::Percent(percent).resolved(distinct))
            .to_vec(),
        sizes => sizes.iter().map(|size| size.resolved(distinct)).collect(),
    };
    ascending(chosen)
}

/// Sorted, each once.
pub fn ascending(mut sizes: Vec<u32>) -> Vec<u32> {
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let size = match text.strip_suffix('%') {
            Some(percent) => {
                let percent: Option<f64> = percent.parse().ok();
                percent
                    .filter(|percent| (0.0..=1000.0).contains(percent))
                    .map(Size::Percent)
            }
            None => text.parse().ok().map(Size::Pages),
        };
        match size {
            Some(Size::Pages(0)) => Err("a cache has at least one page".to_string()),
            Some(Size::Percent(0.0)) => Err("a cache has at least one page, not 0%".to_string()),
            Some(size) => Ok(size),
            None => Err(
                "write a number of pages, or a part of the trace's pages such as 5%".to_string(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_pages_or_percents() {
        assert_eq!("1000".parse(), Ok(Size::Pages(1000)));
        assert_eq!("2.5%".parse(), Ok(Size::Percent(2.5)));
        for text in ["0", "0%", "-1", "", "%", "x", "NaN%", "4294967296", "1e3"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn they_ascend_and_none_is_zero() {
        assert_eq!(
            resolve(&[Size::Pages(9), Size::Percent(1.0), Size::Pages(9)], 500),
            [5, 9]
        );
        assert_eq!(resolve(&[Size::Percent(0.001)], 10), [1]);
        assert_eq!(resolve(&[], 10_000).len(), 10);
        assert_eq!(resolve(&[], 3), [1, 2]);
    }
}
