//! Checking everything.
//!
//! # Protocol
//! The gates of all tables are closed, one after the other, and stay closed until the end, so nobody
//! changes a tree while it is walked; the purger pauses. Prepared transactions stay inside: until they are
//! resolved, which has to wait, they change nothing. What waits to be freed is freed first, where
//! that is allowed. Then every tree is walked, with the chains of its rows, and its pages noted. Garbage that is
//! left, in a database opened for reading only or because of a prepared transaction, is listed, page for page
//! (`garbage` of `txn`): so its pages are noted, too, and belong to nothing else. At last the map of used
//! pages is compared with all these. An index whose function is registered is compared with its table, both ways, as a
//! snapshot sees them.

use crate::ddl;
use crate::engine::Engine;
use crate::error::Result;
use crate::index::{self, IndexInfo};
use crate::options::Access;
use crate::prepared::Gates;
use crate::table::{Table, TableState};
use longshore_access::{Corruption, PageSet, Tree, TreeReport};
use longshore_base::{PageId, StoreId};
use std::fmt;

/// What [`crate::Database::verify`] found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// One part per tree: the catalog, the garbage, then the tables by name.
    pub tables: Vec<TableReport>,
    /// Pages of the data file.
    pub pages: u64,
    /// Pages in use.
    pub pages_used: u64,
    /// Everything found wrong; empty for a sound database.
    pub faults: Vec<Fault>,
}

/// What was found in one table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableReport {
    /// Its name, or what the engine uses the tree for.
    pub name: String,
    /// Its store.
    pub store: StoreId,
    /// Levels of the tree, leaves included.
    pub levels: u32,
    /// Pages of the tree, without those of large values.
    pub pages: u64,
    /// Rows, those included that a prepared transaction has inserted.
    pub rows: u64,
    /// Deleted rows that still take space, those included that a prepared transaction has deleted.
    pub ghosts: u64,
    /// Its indexes, in the order in which they were created.
    pub indexes: Vec<IndexReport>,
}

/// What was found in one index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IndexReport {
    /// What it is.
    pub info: IndexInfo,
    /// Whether it was compared with the table, both ways: it is ready, and its function was registered.
    pub is_compared: bool,
    /// Its entries.
    pub entries: u64,
    /// Pages of its tree.
    pub pages: u64,
    /// Levels of its tree, leaves included.
    pub levels: u32,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The page, where one is concerned.
    pub page: Option<PageId>,
    /// The table, where one is concerned.
    pub table: Option<String>,
    /// What is wrong.
    pub reason: String,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(table) = &self.table {
            write!(f, "table `{table}`, ")?;
        }
        if let Some(page) = self.page {
            write!(f, "page {page}: ")?;
        }
        f.write_str(&self.reason)
    }
}

/// Checks the whole database.
pub(crate) fn run(engine: &Engine) -> Result<VerifyReport> {
    let _ddl = engine.catalog.change();
    let _purging = engine.purging.lock();
    let mut check = Check {
        engine,
        pages: PageSet::new(),
        report: VerifyReport::default(),
    };
    let garbage = Tree {
        store: StoreId::GARBAGE,
        root: engine.control.get().garbage_root,
    };
    let tables = ddl::tables(engine)?;
    let handles: Vec<Table> = tables
        .iter()
        .map(|(name, _)| ddl::open(engine, name))
        .collect::<Result<_>>()?;
    let _closed = Gates::close_beside(engine, &handles)?;
    free_garbage(engine)?;
    check.tree("the catalog", engine.catalog.tree)?;
    check.tree("the garbage", garbage)?;
    for table in &handles {
        check.tree(&table.name(), table.state.tree())?;
        check.indexes(&table.state)?;
    }
    for tree in ddl::loads(engine)? {
        check.tree("a table being loaded", tree)?;
    }
    check.garbage()?;
    check.space()?;
    // The meta page is used when the file is created only; what it says must be whole all the same.
    engine.note(engine.pool.fix_shared(PageId::META).map(drop))?;
    Ok(check.report)
}

/// Frees what waits to be freed; the caller holds `purging`.
fn free_garbage(engine: &Engine) -> Result<()> {
    if engine.options.access == Access::ReadOnly {
        return Ok(());
    }
    while engine.purge_step()? > 0 {}
    Ok(())
}

struct Check<'a> {
    engine: &'a Engine,
    /// Pages that can be reached.
    pages: PageSet,
    report: VerifyReport,
}

impl Check<'_> {
    /// Checks a tree.
    fn tree(&mut self, name: &str, tree: Tree) -> Result<()> {
        let found = self.walk(name, tree)?;
        self.report.tables.push(TableReport {
            name: name.to_owned(),
            store: tree.store,
            levels: found.levels,
            pages: found.leaves + found.branches,
            rows: found.rows,
            ghosts: found.ghosts,
            indexes: Vec::new(),
        });
        Ok(())
    }

    /// Checks the indexes of the table that was checked last.
    fn indexes(&mut self, table: &TableState) -> Result<()> {
        for index in table.indexes() {
            let entries = &index.entries;
            let found = self.walk(&entries.name(), entries.state.tree())?;
            let info = index.info();
            let is_whole = found.problems.is_empty();
            let is_compared = info.is_ready && info.is_registered && is_whole;
            if is_compared {
                let faults = index::compare(self.engine, table, index)?;
                let faults = faults.into_iter().map(|reason| Fault {
                    page: None,
                    table: Some(table.name()),
                    reason,
                });
                self.report.faults.extend(faults);
            }
            let report = IndexReport {
                info,
                is_compared,
                entries: found.rows,
                pages: found.leaves + found.branches,
                levels: found.levels,
            };
            let table = self.report.tables.last_mut();
            table.expect("it was just checked").indexes.push(report);
        }
        Ok(())
    }

    /// Walks through a tree, and notes its pages and faults.
    fn walk(&mut self, name: &str, tree: Tree) -> Result<TreeReport> {
        let found = self
            .engine
            .note(tree.verify(&self.engine.access, &mut self.pages))?;
        self.faults(name, &found.problems);
        Ok(found)
    }

    /// Notes the pages that wait to be freed; they belong to nothing else.
    fn garbage(&mut self) -> Result<()> {
        let (engine, pages) = (self.engine, &mut self.pages);
        let problems = engine.note(engine.manager.verify_garbage(pages))?;
        self.faults("the garbage", &problems);
        Ok(())
    }

    fn faults(&mut self, table: &str, problems: &[Corruption]) {
        for problem in problems {
            self.report.faults.push(Fault {
                page: Some(problem.page),
                table: Some(table.to_owned()),
                reason: format!("expected {}, found {}", problem.expected, problem.found),
            });
        }
    }

    /// Compares the map with the pages found.
    fn space(&mut self) -> Result<()> {
        let found = self
            .engine
            .note(self.engine.access.verify_space(&self.pages))?;
        self.report.pages = found.pages;
        self.report.pages_used = found.used;
        self.map_faults(&found.leaked, "is marked as used, but nothing refers to it");
        self.map_faults(&found.unmarked, "is in use, but marked as free");
        Ok(())
    }

    fn map_faults(&mut self, pages: &[PageId], reason: &str) {
        let faults = pages.iter().map(|page| Fault {
            page: Some(*page),
            table: None,
            reason: reason.to_owned(),
        });
        self.report.faults.extend(faults);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, Durability};
    use longshore_access::Access;

    /// A table with a large row, and another that a prepared transaction has replaced and taken out.
    fn with_prepared() -> (Database, Table) {
        let db = Database::in_memory().unwrap();
        let table = db.create_table("t").unwrap();
        let long = |letter: &str| letter.repeat(40_000);
        for key in ["replaced", "deleted", "left"] {
            db.update(|tx| tx.put(&table, key, long("a"))).unwrap();
        }
        let tx = db.begin().unwrap();
        tx.put(&table, "replaced", long("b")).unwrap();
        tx.put(&table, "replaced", long("c")).unwrap();
        tx.put(&table, "new", long("d")).unwrap();
        tx.delete(&table, "deleted").unwrap();
        drop(tx.prepare(b"g").unwrap());
        (db, table)
    }

    fn reasons(db: &Database) -> Vec<String> {
        let faults = db.verify().unwrap().faults;
        faults.iter().map(ToString::to_string).collect()
    }

    /// A page that no row of any kind leads to.
    fn leak(access: &Access) {
        let mut context = access.system_context(0).unwrap();
        Tree::create(access, &mut context, StoreId::new(1_000)).unwrap();
    }

    #[test]
    fn a_lost_page_is_found_beside_the_garbage_of_a_prepared_transaction() {
        let (db, _table) = with_prepared();
        assert_eq!(reasons(&db), [""; 0]);
        leak(&db.engine().access);
        let found = reasons(&db);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("nothing refers to it"), "{found:?}");
        db.commit_prepared(b"g").unwrap();
        assert_eq!(reasons(&db), found);
    }

    #[test]
    fn garbage_that_something_refers_to_is_found() {
        let (db, table) = with_prepared();
        let mut txn = db.engine().begin_internal().unwrap();
        txn.drop_tree(table.state.tree()).unwrap();
        let level = Engine::level(Durability::None);
        drop(db.engine().manager.prepare(txn, b"wrong", level).unwrap());
        let found = reasons(&db);
        let twice = |fault: &String| fault.contains("found a page in two places");
        assert!(!found.is_empty() && found.iter().all(twice), "{found:?}");
    }
}
