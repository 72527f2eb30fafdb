//! Each use of a page is told, once, in its order.

use crate::replacement::with;
use crate::support::{Bed, small};
use longshore_base::{PageId, PageSize};
use longshore_pool::{PageTrace, PageUse, PoolOptions};
use std::sync::{Arc, Mutex, OnceLock};

#[derive(Debug, Default)]
struct Uses {
    page_size: OnceLock<PageSize>,
    uses: Mutex<Vec<(u64, PageUse)>>,
}

impl PageTrace for Uses {
    fn begins(&self, page_size: PageSize) {
        self.page_size.set(page_size).unwrap();
    }

    fn used(&self, page: PageId, what: PageUse) {
        self.uses.lock().unwrap().push((page.get(), what));
    }
}

#[test]
fn each_use_is_told_once() {
    use PageUse::{Create, Read, Write};
    for replacement in ["nb-gclock", "bp-wrapper/lru", "mutex/fifo"] {
        let uses = Arc::new(Uses::default());
        let options = PoolOptions {
            trace: Some(uses.clone()),
            ..with(replacement, small(32))
        };
        let bed = Bed::new(options);
        assert_eq!(uses.page_size.get(), Some(&PageSize::MIN));
        let take = || std::mem::take(&mut *uses.uses.lock().unwrap());
        let page = PageId::new;
        bed.create(5, 1);
        drop(bed.pool.fix_shared(page(5)).unwrap());
        drop(bed.pool.fix_shared(page(6)).unwrap());
        drop(bed.pool.fix_exclusive(page(6)).unwrap());
        drop(bed.pool.fix_exclusive(page(7)).unwrap());
        assert_eq!(
            take(),
            [(5, Create), (5, Read), (6, Read), (6, Write), (7, Write)]
        );
        // The second finds that the page weighs enough already.
        (0..3).for_each(|_| bed.touch(7));
        bed.pool.read(page(8)).unwrap();
        bed.pool.read_scan(page(8)).unwrap();
        bed.pool.read_scan(page(9)).unwrap();
        assert_eq!(take(), [7, 7, 7, 8, 8, 9].map(|page| (page, Read)));
        // A reader who goes on to write has used the page once.
        drop(bed.pool.read(page(9)).unwrap().try_exclusive().unwrap());
        assert!(bed.pool.read_resident(page(9)).is_some());
        assert!(bed.pool.read_resident(page(10)).is_none());
        assert_eq!(take(), [(9, Read), (9, Read)]);
        bed.pool.prefetch(page(11));
        bed.pool.flush_all().unwrap();
        assert_eq!(take(), [], "{replacement}: nobody asked for these");
    }
}
