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
    use crate::settings::{Name, Settings, Workload};
    use std::collections::HashMap;

    fn translated(line: &str) -> String {
        let mut out = Vec::new();
        write(line, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// What EDN can say, as far as Elle reads it.
    #[derive(Clone, Debug, PartialEq)]
    enum Edn {
        Nil,
        Number(i64),
        Keyword(String),
        Vector(Vec<Edn>),
        Map(Vec<(Edn, Edn)>),
    }

    /// Reads one value, and gives what stands behind it.
    fn read(text: &str) -> (Edn, &str) {
        // Commas are blanks in EDN.
        let text = text.trim_start_matches([' ', ',']);
        let (token, rest) = text.split_at(
            text.find([' ', ',', '[', ']', '{', '}'])
                .unwrap_or(text.len()),
        );
        if let Some(word) = token.strip_prefix(':') {
            assert!(
                word.starts_with(|letter: char| letter.is_ascii_lowercase()),
                ":{word}"
            );
            return (Edn::Keyword(word.to_owned()), rest);
        }
        match token {
            "nil" => (Edn::Nil, rest),
            "" => read_collection(text),
            number => (Edn::Number(number.parse().expect(number)), rest),
        }
    }

    fn read_collection(text: &str) -> (Edn, &str) {
        let (is_map, mut rest) = match text.split_at(1) {
            ("[", rest) => (false, rest),
            ("{", rest) => (true, rest),
            other => panic!("a value cannot begin so: {other:?}"),
        };
        let mut values = Vec::new();
        loop {
            rest = rest.trim_start_matches([' ', ',']);
            match rest.strip_prefix(if is_map { '}' } else { ']' }) {
                Some(rest) if !is_map => return (Edn::Vector(values), rest),
                Some(rest) => {
                    assert!(values.len().is_multiple_of(2), "a key without a value");
                    let pairs = values
                        .chunks(2)
                        .map(|pair| (pair[0].clone(), pair[1].clone()));
                    return (Edn::Map(pairs.collect()), rest);
                }
                None => {
                    let (value, behind) = read(rest);
                    values.push(value);
                    rest = behind;
                }
            }
        }
    }

    fn keyword(word: &str) -> Edn {
        Edn::Keyword(word.to_owned())
    }

    /// Asserts that a history is what Elle's reader takes: maps with these keys, indices without a gap, times
    /// that never fall, a process with one operation at a time and none after `:info`, micro-operations of `names`.
    fn assert_for_elle(edn: &str, names: &[&str]) {
        let mut open: HashMap<i64, bool> = HashMap::new();
        let mut last_time = 0;
        for (at, line) in edn.lines().enumerate() {
            let (Edn::Map(pairs), "") = read(line) else {
                panic!("not one map: {line}");
            };
            let (keys, values): (Vec<Edn>, Vec<Edn>) = pairs.into_iter().unzip();
            let expected = ["index", "time", "process", "type", "f", "value"].map(keyword);
            assert_eq!(keys, expected, "{line}");
            let [
                index,
                Edn::Number(time),
                Edn::Number(process),
                Edn::Keyword(kind),
                f,
                Edn::Vector(operations),
            ] = &values[..]
            else {
                panic!("{line}");
            };
            assert_eq!(
                (index, f),
                (&Edn::Number(at as i64), &keyword("txn")),
                "{line}"
            );
            assert!(*time >= last_time, "{line}");
            last_time = *time;
            let was_open = open
                .insert(*process, kind != "ok" && kind != "fail")
                .unwrap_or(false);
            assert!(
                ["invoke", "ok", "fail", "info"].contains(&kind.as_str()),
                "{line}"
            );
            assert_eq!(was_open, kind != "invoke", "{line}");
            operations
                .iter()
                .for_each(|operation| assert_operation(operation, kind, names));
        }
    }

    fn assert_operation(operation: &Edn, kind: &str, names: &[&str]) {
        let Edn::Vector(parts) = operation else {
            panic!("{operation:?}");
        };
        let [Edn::Keyword(name), Edn::Number(_), value] = &parts[..] else {
            panic!("{operation:?}");
        };
        assert!(names.contains(&name.as_str()), "{operation:?}");
        let is_list = matches!(value, Edn::Vector(list) if list.iter().all(|of| matches!(of, Edn::Number(_))));
        let fits = match (name.as_str(), value) {
            ("append", Edn::Number(_)) | ("r", Edn::Nil) => true,
            ("r", Edn::Number(_)) => names.contains(&"w"),
            ("r", _) => is_list,
            // What will be written may depend on what will be read.
            ("w", Edn::Nil) => kind == "invoke",
            ("w", Edn::Number(_)) => true,
            ("w", _) => is_list,
            _ => false,
        };
        assert!(fits, "{operation:?} in {kind}");
    }

    #[test]
    fn every_line_of_each_workload_is_an_operation_of_elle() {
        let registers: &[&str] = &["r", "w"];
        for (workload, names) in [
            (Workload::Append, &["append", "r"][..]),
            (Workload::Register, registers),
            (Workload::Bank, registers),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("h.edn");
            let mut settings = Settings::of(Name::History);
            settings.workload = workload;
            settings.threads = vec![4];
            settings.seconds = 0.2;
            settings.pool_mib = Some(16);
            settings.out = Some(folder.path().join("h.jsonl"));
            settings.edn = Some(file.clone());
            crate::run(&settings, &mut Vec::new()).unwrap();
            let edn = std::fs::read_to_string(file).unwrap();
            assert!(edn.lines().count() > 10, "{edn}");
            assert_for_elle(&edn, names);
        }
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
