//! The order of the clock and of the cold queue, step by step.

use crate::policies::testing::Bench;

#[test]
fn order_step_by_step() {
    let mut bench = Bench::new("clock-pro", 6);
    assert_eq!(
        bench.use_pages([1, 2, 3, 4, 5, 6]),
        "clock: hot 1 hot 2 hot 3 hot 4 5 6 | cold: 5 6 | target=2",
        "hot while there is room for cold pages"
    );
    assert_eq!(
        bench.use_page(7),
        "clock: hot 1 hot 2 hot 3 hot 4 (5) 6 7 | cold: 6 7 | target=2",
        "the oldest cold page leaves, a ghost stays in the clock"
    );
    assert_eq!(
        bench.use_pages([1, 5]),
        "clock: hot 4 (6) 7 hot 1 hot 5 | cold: 7 2 3 | target=3",
        "5 is used in its test: hot; 1 is passed, 2 and 3 become cold"
    );
    assert_eq!(bench.likely(9), [7, 2, 3, 4, 1, 5]);
    assert_eq!(
        bench.use_pages([7, 8]),
        "clock: hot 1 hot 5 7 8 | cold: 3 4 7 8 | target=4",
        "the hot hand finds no second page to make cold before it comes to 7: tested anew"
    );
    bench.pin(4);
    assert_eq!(
        bench.use_pages([3, 9]),
        "clock: hot 1 hot 5 (7) 8 3 9 | cold: 4 8 3 9 | target=4",
        "3, used outside a test, is tested; 4 is pinned and keeps its place"
    );
    assert_eq!(
        bench.remove(1),
        "clock: hot 5 (7) 8 3 9 | cold: 4 8 3 9 | target=4"
    );
}

#[test]
fn no_page_becomes_hot_in_the_place_of_one_that_was_used() {
    let mut bench = Bench::new("clock-pro", 5);
    assert_eq!(
        bench.use_pages([1, 2, 3, 4, 5, 1, 2, 3, 4]),
        "clock: hot 1:1 hot 2:1 hot 3:1 4:1 5 | cold: 4:1 5 | target=2"
    );
    assert_eq!(
        bench.use_page(6),
        "clock: hot 1 hot 2 hot 3 4 6 | cold: 4 6 | target=3"
    );
}

#[test]
fn after_the_first_eviction_new_pages_are_cold() {
    let mut bench = Bench::new("clock-pro", 6);
    bench.use_pages(1..=7);
    for page in 1..=3 {
        bench.remove(page);
    }
    assert_eq!(
        bench.use_page(8),
        "clock: hot 4 (5) 6 7 8 | cold: 6 7 8 | target=2",
        "although there is room for hot ones"
    );
}

#[test]
fn ghosts_that_are_too_many_are_forgotten() {
    let mut bench = Bench::new("clock-pro:ghosts=50%", 4);
    assert_eq!(
        bench.use_pages([1, 2, 3, 4, 5, 6, 7]),
        "clock: hot 1 hot 2 (4) (5) 6 7 | cold: 6 7 | target=2"
    );
    bench.policy.set_capacity(3);
    assert_eq!(
        bench.dump(),
        "clock: hot 2 (5) 6 7 | cold: 6 7 1 | target=2"
    );
    bench.policy.forget_ghost(longshore_base::PageId::new(5));
    assert_eq!(bench.dump(), "clock: hot 2 6 7 | cold: 6 7 1 | target=2");
}

#[test]
fn the_plus_learns_from_ghosts_and_from_what_was_hot() {
    let mut bench = Bench::new("clock-pro+", 8);
    assert_eq!(
        bench.use_pages(1..=9),
        "clock: hot 1 hot 2 hot 3 hot 4 hot 5 hot 6 (7) 8 9 | cold: 8 9 | target=2"
    );
    assert_eq!(
        bench.use_pages([7, 8]),
        "clock: hot 5 hot 6 (9) hot 7 hot 8 | cold: 1 2 3 4 | target=4",
        "two ghosts came back"
    );
    assert_eq!(
        bench.use_pages([1, 2, 10]),
        "clock: hot 5 hot 6 (9) hot 7 hot 8 1 2 10 | cold: 4 1 2 10 | target=2",
        "two pages were used that had been hot"
    );
    assert_eq!(
        bench.use_pages([11, 12, 13, 14]),
        "clock: hot 5 hot 6 (9) hot 7 hot 8 (1) (2) (10) 11 12 13 14 | cold: 11 12 13 14 | target=2",
        "tests that end without a use teach nothing"
    );
}
