//! The map pages as a whole: making the first one, reading them all, checking them.

use super::{FreeMap, GROW_MIN, MapPlace};
use crate::access::{Access, LogContext};
use crate::action::{PageAction, map_is_used};
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::tree::PageSet;
use longshore_base::{PageId, PageType, StoreId};

const FORMAT: Steps = Steps::new("format.latched", "format.logged", "format.applied");

/// The map of used pages against the pages that are in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceReport {
    /// Pages of the file.
    pub pages: u64,
    /// Pages that the map says are in use, map pages and meta page not counted.
    pub used: u64,
    /// Pages that the map says are in use, but nobody can reach.
    pub leaked: Vec<PageId>,
    /// Pages in use that the map says are free: they would be given out a second time.
    pub unmarked: Vec<PageId>,
}

impl SpaceReport {
    /// Whether map and use agree.
    pub fn is_sound(&self) -> bool {
        self.leaked.is_empty() && self.unmarked.is_empty()
    }
}

impl Access {
    /// Makes an empty file one that pages can be allocated from: meta page and first map page.
    ///
    /// # Errors
    /// When the file cannot be grown, or nothing can be logged.
    pub fn format(&self, cx: &mut LogContext) -> Result<(), AccessError> {
        self.pool.grow(GROW_MIN)?;
        let mut mtr = MiniTransaction::begin(self);
        mtr.change(self.pool.fix_new(PageId::META)?, PageAction::FormatMeta);
        mtr.change(self.pool.fix_new(PageId::new(1))?, PageAction::FormatMap);
        mtr.commit(cx, &FORMAT)?;
        self.attach()
    }

    /// Learns from the map pages what is in use. To be called at open, after redo, before anything is
    /// allocated; who only reads needs none of it.
    ///
    /// A crash may have taken back the length of the file, but not what is in the log: pages that redo
    /// has made again may lie behind the end, and the file is grown to hold them.
    ///
    /// # Errors
    /// When a map page cannot be read or is none, when pages in use are missing because the file
    /// was cut off, or when it cannot be grown.
    pub fn attach(&self) -> Result<(), AccessError> {
        let file_pages = self.pool.file_pages();
        let mut end = 0;
        self.each_used(|page| {
            end = page.get() + 1;
            if end > file_pages {
                self.check_is_there(page)
            } else {
                Ok(())
            }
        })?;
        let maps = self.map_pages()?;
        let last_map = maps.last().map_or(1, |map| map.get());
        let described = maps.len() as u64 * MapPlace::span(self.page_size);
        let pages = file_pages.min(described).max(end).max(last_map + 1);
        self.pool.grow(pages)?;
        let mut map = FreeMap::new(pages);
        map.take(PageId::META);
        for page in maps {
            map.take(page);
        }
        self.each_used(|page| {
            if map.take(page) {
                Ok(())
            } else {
                Err(needs_no_mark(page))
            }
        })?;
        self.space.replace(map);
        Ok(())
    }

    /// The map pages, in ascending order. Pages of the file behind the last one's span are free, and get
    /// their map page when the file is next grown.
    fn map_pages(&self) -> Result<Vec<PageId>, AccessError> {
        let span = MapPlace::span(self.page_size);
        let mut maps = Vec::new();
        loop {
            let map = PageId::new(maps.len() as u64 * span + 1);
            match self.pool.fix_shared(map)?.page().page_type() {
                Some(PageType::SpaceMap) => maps.push(map),
                Some(PageType::Blank) if !maps.is_empty() => return Ok(maps),
                other => {
                    let found = format!("a page of type {other:?}");
                    let expected = "a map of used pages";
                    return Err(AccessError::corrupt(map, StoreId::NONE, expected, found));
                }
            }
        }
    }

    /// Calls `visit` with every page whose bit is set, in ascending order.
    fn each_used(
        &self,
        mut visit: impl FnMut(PageId) -> Result<(), AccessError>,
    ) -> Result<(), AccessError> {
        let span = MapPlace::span(self.page_size);
        for map in self.map_pages()? {
            let guard = self.pool.fix_shared(map)?;
            let first = map.get() - 1;
            for bit in (0..span).filter(|bit| map_is_used(guard.page(), *bit as u32)) {
                visit(PageId::new(first + bit))?;
            }
        }
        Ok(())
    }

    /// Whether a page behind the end of the file is in memory, where redo has made it again.
    fn check_is_there(&self, page: PageId) -> Result<(), AccessError> {
        if self.pool.fix_shared(page)?.page().page_type() != Some(PageType::Blank) {
            return Ok(());
        }
        let found = format!("the end of the file, at page {}", self.pool.file_pages());
        Err(AccessError::corrupt(
            page,
            StoreId::NONE,
            "a page in use",
            found,
        ))
    }

    /// Compares the map with the pages that trees and chains consist of.
    ///
    /// # Errors
    /// When a map page cannot be read or is none.
    pub fn verify_space(&self, reachable: &PageSet) -> Result<SpaceReport, AccessError> {
        let pages = self.pool.file_pages();
        let mut report = SpaceReport {
            pages,
            ..SpaceReport::default()
        };
        let mut unmarked: PageSet = reachable.clone();
        self.each_used(|page| {
            report.used += 1;
            if !unmarked.remove(page) {
                report.leaked.push(page);
            }
            Ok(())
        })?;
        report.unmarked.extend(unmarked.iter());
        Ok(report)
    }
}

#[cold]
fn needs_no_mark(page: PageId) -> AccessError {
    let expected = "a meta or map page, which needs no mark";
    AccessError::corrupt(page, StoreId::NONE, expected, "a mark that it is in use")
}
