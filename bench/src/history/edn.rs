//! Histories in the form that Elle reads: EDN maps, one a line.
//!
//! Lists are Elle's `list-append`, registers its `rw-register`; an account is a register of vectors
//! `[balance stamp]`, and what a bank promises is left out.

use serde_json::Value;
use std::io::{self, Write};

/// Writes a line of JSON as a line of EDN.
pub(super) fn write(line: &str, out: &mut impl Write) -> io::Result<()> {
    let line: Value = serde_json::from_str(line)?;
    let number = |name: &str| line[name].as_u64().unwrap_or_default();
    let kind = line["type"].as_str().unwrap_or_default();
    write!(
        out,
        "{{:index {}, :time {}, :process {}, :type :{kind}, :f :txn, :value [",
        number("index"),
        number("time"),
        number("process")
    )?;
    let operations = line["value"].as_array().into_iter().flatten();
    let told = operations.filter(|operation| operation[0] != "bank");
    for (at, operation) in told.enumerate() {
        let space = if at == 0 { "" } else { " " };
        write!(
            out,
            "{space}[:{}",
            operation[0].as_str().unwrap_or_default()
        )?;
        for part in operation.as_array().into_iter().flatten().skip(1) {
            write!(out, " {}", edn(part))?;
        }
        write!(out, "]")?;
    }
    writeln!(out, "]}}")
}

fn edn(value: &Value) -> String {
    let spaced = |values: &mut dyn Iterator<Item = &Value>| {
        let parts: Vec<String> = values.map(edn).collect();
        format!("[{}]", parts.join(" "))
    };
    match value {
        Value::Null => "nil".to_owned(),
        Value::Array(list) => spaced(&mut list.iter()),
        Value::Object(account) => spaced(&mut account.values()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> String {
        let mut out = Vec::new();
        write(line, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_read_as_elle_expects() {
        let line = r#"{"index":4,"process":3,"time":17,"type":"ok","value":[["append",5,1],["r",5,[1,2]],["r",6,null]]}"#;
        assert_eq!(
            translated(line),
            "{:index 4, :time 17, :process 3, :type :ok, :f :txn, \
             :value [[:append 5 1] [:r 5 [1 2]] [:r 6 nil]]}\n"
        );
    }

    #[test]
    fn accounts_are_vectors_and_promises_left_out() {
        let line = r#"{"index":0,"process":0,"time":0,"type":"invoke","value":[["bank",[1,2],9],["w",1,{"balance":9,"stamp":3}]]}"#;
        assert!(
            translated(line).ends_with(":value [[:w 1 [9 3]]]}\n"),
            "{}",
            translated(line)
        );
    }
}
