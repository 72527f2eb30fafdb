//! `longshore put`: a row, inserted or replaced.

use longshore::Table;

use crate::args::{Global, Put};
use crate::exit::{Failure, Outcome};
use crate::input::key_field;
use crate::row::{Fields, KeyField, KeySpec, Shape, encode_key};
use crate::store::{Purpose, Store, put_shape};
use crate::view::View;

/// Puts the row; creates the table where it is missing and `--key` or `--raw` says how.
///
/// # Errors
/// The values do not fit the table; the engine's.
pub fn run(global: &Global, args: &Put) -> Outcome {
    let spec = KeySpec::parse(&args.key).map_err(Failure::usage)?;
    let row = Row::of(args)?;
    let may_create = !spec.is_empty() || args.view.raw || args.view.hex;
    let purpose = if may_create {
        Purpose::Create
    } else {
        Purpose::Write
    };
    let store = Store::open(&args.db, global, purpose)?;
    let found = store.find_table(&args.table)?;
    let is_new = found.is_none();
    let table = match found {
        Some(table) => table,
        None if may_create => store.db.create_table(&args.table)?,
        None => return Err(missing(&store, args)),
    };
    let put = match &row {
        Row::Record(json) => put_record(&store, &table, &spec, json),
        Row::Bare { key, value } => put_bare(&store, &table, args, key, value),
    };
    if let Err(failure) = put {
        if is_new {
            store.db.drop_table(&args.table)?;
        }
        return Err(failure);
    }
    store.close()?;
    match global.json {
        true => println!("{}", serde_json::json!({ "table": args.table, "put": 1 })),
        false => println!("put 1 row into table {}", args.table),
    }
    Ok(())
}

/// The row as the command line gives it.
enum Row {
    /// One JSON object on one line.
    Record(String),
    Bare {
        key: String,
        value: String,
    },
}

impl Row {
    fn of(args: &Put) -> Outcome<Row> {
        match (&args.record, args.view.raw || args.view.hex) {
            (Some(record), _) => Row::of_json(record),
            (None, true) => match args.values.as_slice() {
                [key, value] => Ok(Row::Bare {
                    key: key.clone(),
                    value: value.clone(),
                }),
                values => Err(Failure::usage(format!(
                    "a bare row is put as KEY VALUE: two arguments, {} given",
                    values.len()
                ))),
            },
            (None, false) => Row::of_columns(&args.values),
        }
    }

    fn of_json(record: &str) -> Outcome<Row> {
        let text = record.trim();
        Fields::parse(text.as_bytes()).map_err(|e| Failure::usage(format!("--record: {e}")))?;
        // Line breaks in JSON stand between its tokens only, where a blank is as good.
        Ok(Row::Record(text.replace(['\n', '\r'], " ")))
    }

    fn of_columns(values: &[String]) -> Outcome<Row> {
        let mut json = String::new();
        for value in values {
            let Some((name, text)) = value.split_once('=') else {
                return Err(Failure::usage(format!(
                    "\"{value}\" is not COLUMN=VALUE; a bare KEY VALUE needs --raw"
                )));
            };
            let quote = |text: &str| serde_json::to_string(text).expect("text is JSON");
            json.push(if json.is_empty() { '{' } else { ',' });
            json.push_str(&format!("{}:{}", quote(name), quote(text)));
        }
        if json.is_empty() {
            return Err(Failure::usage(
                "say what to put: COLUMN=VALUE ..., or --record OBJECT",
            ));
        }
        json.push('}');
        Fields::parse(json.as_bytes()).map_err(Failure::usage)?;
        Ok(Row::Record(json))
    }
}

fn put_record(store: &Store, table: &Table, spec: &KeySpec, json: &str) -> Outcome {
    let fields = Fields::parse(json.as_bytes()).map_err(Failure::usage)?;
    let of = |name: &String| key_field(fields.get(name));
    let mut shape = match store.shape(table)? {
        Some(shape) => shape,
        None if spec.is_empty() => {
            return Err(Failure::usage(format!(
                "table {} has no columns: put a bare row, --raw KEY VALUE",
                table.name()
            )));
        }
        None => {
            let first: Vec<KeyField> = spec.names().iter().map(of).collect();
            Shape {
                key: spec.resolve(&first),
                columns: Vec::new(),
            }
        }
    };
    spec.check(&table.name(), &shape).map_err(Failure::usage)?;
    let key: Vec<KeyField> = shape.key_names().iter().map(of).collect();
    let key = encode_key(&shape.key, &key).map_err(Failure::usage)?;
    let has_new_columns = shape.add_columns(fields.names());
    let shapes = store.shapes_table()?;
    let tx = store.db.begin()?;
    tx.put(table, key, json)?;
    if has_new_columns {
        put_shape(&tx, &shapes, table, &shape)?;
    }
    Ok(tx.commit()?)
}

fn put_bare(store: &Store, table: &Table, args: &Put, key: &String, value: &str) -> Outcome {
    let view = View::of(store, table, args.view)?;
    let (key, value) = (
        view.key(std::slice::from_ref(key))?,
        view.bare_value(value)?,
    );
    Ok(store.db.update(|tx| tx.put(table, &key, &value))?)
}

fn missing(store: &Store, args: &Put) -> Failure {
    match store.table(&args.table) {
        Err(failure) => Failure::not_found(format!(
            "{failure}; `put` creates it with --key COLUMN (records) or --raw (bare keys)"
        )),
        Ok(_) => Failure::not_found(format!("there is no table {}", args.table)),
    }
}
