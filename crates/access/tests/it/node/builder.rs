//! Bulk building against the rows that went in.

use longshore_access::action::PageAction;
use longshore_access::node::{ImageBuf, Limits, NodeBuilder, RowFlags};
use longshore_base::PageSize;
use proptest::prelude::*;

use super::support::{Content, Rows, STORE, TestPage, keys, page_sizes};

/// Builds nodes from `rows` and returns their contents, each checked by way of a real page.
fn build(
    size: PageSize,
    fill: usize,
    level: u8,
    rows: &Rows,
    upper: Option<&[u8]>,
) -> Vec<Content> {
    let low = if level == 0 {
        Vec::new()
    } else {
        rows.keys().next().unwrap().clone()
    };
    let mut builder = NodeBuilder::new(STORE, level, size, fill, &low);
    let mut images: Vec<ImageBuf> = Vec::new();
    for (key, (flags, value)) in rows {
        images.extend(builder.push(key, *flags, value));
    }
    let (last, one_more) = builder.finish(upper);
    images.push(last);
    images.extend(one_more);
    let content = |image: &ImageBuf| {
        let mut page = TestPage::blank(9, size);
        page.redo(&PageAction::FormatNode(image.as_image()))
            .expect("what is built fits");
        page.verify();
        Content::of(&page.bytes)
    };
    images.iter().map(content).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn built_nodes_hold_all_rows_and_meet_at_their_fences(
        size in page_sizes(),
        full in any::<bool>(),
        lens in prop::collection::btree_map(keys(), 0usize..600, 0..150),
        branch in any::<bool>(),
        upper in prop::option::of(Just(vec![0xFF; 1020])),
    ) {
        let limits = Limits::new(size);
        let rows: Rows = lens
            .into_iter()
            .map(|(key, len)| {
                let len = if branch { 8 } else { len.min(limits.inline_max(key.len())) };
                (key, (RowFlags::NONE, vec![7; len]))
            })
            .collect();
        prop_assume!(!branch || !rows.is_empty());
        prop_assume!(upper.as_ref().is_none_or(|upper| rows.keys().all(|key| key < upper)));
        let fill = if full { size.bytes() } else { size.bytes() * 7 / 10 };
        let nodes = build(size, fill, u8::from(branch), &rows, upper.as_deref());
        for pair in nodes.windows(2) {
            prop_assert_eq!(pair[0].upper.as_ref(), Some(&pair[1].low));
        }
        prop_assert_eq!(&nodes.last().unwrap().upper, &upper);
        let together: Rows = nodes.into_iter().flat_map(|node| node.rows).collect();
        prop_assert_eq!(together, rows);
    }
}

/// Keys of a quarter page: branches get two children all the same, however little may be filled.
#[test]
fn greatest_keys_build_nodes_that_fit() {
    for (level, fill) in [(0, 4096), (1, 4096), (0, 2000), (1, 2000), (1, 0)] {
        let limits = Limits::new(PageSize::MIN);
        let row = |n: u8| {
            let len = if level == 0 {
                limits.inline_max(limits.key_max())
            } else {
                8
            };
            (vec![n; limits.key_max()], (RowFlags::NONE, vec![1; len]))
        };
        let rows: Rows = (1..20).map(row).collect();
        let nodes = build(PageSize::MIN, fill, level, &rows, None);
        let (last, others) = nodes.split_last().unwrap();
        assert!(
            others.iter().all(|node| node.rows.len() > level as usize),
            "level {level}"
        );
        assert_eq!(
            nodes.iter().map(|node| node.rows.len()).sum::<usize>(),
            rows.len()
        );
        assert!(!last.rows.is_empty());
    }
}

#[test]
fn nodes_are_built_as_full_as_asked_for() {
    let rows: Rows = (0..5000u64)
        .map(|n| (n.to_be_bytes().to_vec(), (RowFlags::NONE, vec![1; 100])))
        .collect();
    let full = build(PageSize::DEFAULT, 8192, 0, &rows, None).len();
    let loose = build(PageSize::DEFAULT, 8192 * 7 / 10, 0, &rows, None).len();
    // With the prefix gone a row takes 8 + 112 bytes: 67 of them, and the fences, fill a page.
    assert_eq!(full, 5000 / 67 + 1);
    assert!(loose > full * 13 / 10, "{loose} against {full}");
}
