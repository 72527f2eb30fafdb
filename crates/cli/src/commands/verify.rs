//! `longshore verify`: is every page, tree and map as it should be?

use std::io::Write;

use longshore::{IndexReport, VerifyReport};
use serde_json::json;

use crate::args::{Global, OnlyDatabase};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::store::{Purpose, Store};
use crate::units;

/// Checks everything and prints what was found.
///
/// # Errors
/// [`Code::NotFound`] when anything is wrong, after all of it was printed.
pub fn run(global: &Global, args: &OnlyDatabase) -> Outcome {
    let store = Store::open(&args.db, global, Purpose::Read)?;
    let report = match store.db.verify() {
        Ok(report) => report,
        // Damage is what was looked for: an answer, not a failure to answer.
        Err(error) if error.is_corrupt() => {
            return Err(Failure::new(
                Code::NotFound,
                format!("{}: {error}", args.db),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let prepared = store.db.prepared().len() as u64;
    let mut out = output::stdout();
    match global.json {
        true => writeln!(out, "{}", to_json(&report, prepared))?,
        false => {
            print_words(&mut out, &args.db, &report)?;
            if prepared > 0 {
                let prepared = units::plural(prepared, "prepared transaction");
                writeln!(out, "{prepared} not decided: see `longshore prepared`")?;
            }
        }
    }
    out.flush()?;
    store.close()?;
    match report.is_sound() {
        true => Ok(()),
        false => Err(Failure::Quiet(Code::NotFound)),
    }
}

fn print_words(out: &mut impl Write, db: &str, report: &VerifyReport) -> Outcome {
    for table in &report.tables {
        writeln!(
            out,
            "{}: {}, {}, {}, {}",
            table.name,
            units::plural(table.rows, "row"),
            units::plural(table.pages, "page"),
            units::plural(u64::from(table.levels), "level"),
            units::plural(table.ghosts, "ghost"),
        )?;
        for index in &table.indexes {
            writeln!(
                out,
                "{}.{}: {}, {}, {}, {}",
                table.name,
                index.info.name,
                units::plural_of(index.entries, "entry", "entries"),
                units::plural(index.pages, "page"),
                units::plural(u64::from(index.levels), "level"),
                match index.is_compared {
                    true => "compared with the table",
                    false => "not compared with the table, for only the program knows its keys",
                }
            )?;
        }
    }
    let (pages, used) = (
        units::plural(report.pages, "page"),
        units::count(report.pages_used),
    );
    writeln!(out, "{pages}, {used} in use")?;
    for fault in &report.faults {
        writeln!(out, "fault: {fault}")?;
    }
    match report.faults.len() as u64 {
        0 => writeln!(out, "{db} is sound")?,
        count => writeln!(
            out,
            "{db} has {}; dump what can be read and load it into a new database",
            units::plural(count, "fault")
        )?,
    }
    Ok(())
}

fn to_json(report: &VerifyReport, prepared: u64) -> serde_json::Value {
    let tables = report.tables.iter().map(|table| {
        json!({
            "table": table.name,
            "id": table.store.get(),
            "rows": table.rows,
            "pages": table.pages,
            "levels": table.levels,
            "ghosts": table.ghosts,
            "indexes": table.indexes.iter().map(index_json).collect::<Vec<_>>(),
        })
    });
    let faults = report.faults.iter().map(|fault| {
        json!({
            "table": fault.table,
            "page": fault.page.map(|page| page.get()),
            "reason": fault.reason,
        })
    });
    json!({
        "sound": report.is_sound(),
        "pages": report.pages,
        "pages_used": report.pages_used,
        "prepared_transactions": prepared,
        "tables": tables.collect::<Vec<_>>(),
        "faults": faults.collect::<Vec<_>>(),
    })
}

fn index_json(index: &IndexReport) -> serde_json::Value {
    let mut line = output::index_json(&index.info);
    line["entries"] = json!(index.entries);
    line["pages"] = json!(index.pages);
    line["levels"] = json!(index.levels);
    line["compared"] = json!(index.is_compared);
    line
}
