//! Readers of traces: what is allowed is read, what is not is told with its place, whatever the bytes.

use lab::LabError;
use lab::format::{Access, Format, FormatError, Kind};
use lab::input::Input;
use proptest::collection::vec;
use proptest::prelude::*;

const ALL: [Format; 7] = [
    Format::Pages,
    Format::Arc,
    Format::Lirs,
    Format::Keys,
    Format::U32be,
    Format::Cloudphysics,
    Format::CloudphysicsPages,
];

fn read(format: Format, bytes: &[u8]) -> Result<Vec<u64>, String> {
    let accesses = format.read(bytes);
    let pages: Result<Vec<u64>, FormatError> = accesses.map(|access| Ok(access?.page)).collect();
    pages.map_err(|error| error.to_string())
}

#[track_caller]
fn refused(format: Format, text: impl AsRef<[u8]>, message: &str) {
    assert_eq!(read(format, text.as_ref()), Err(message.to_string()));
}

#[test]
fn arc_lines_are_runs_of_blocks() {
    assert_eq!(
        read(Format::Arc, b"7 3 0 0\n9 1 0 1\n"),
        Ok(vec![7, 8, 9, 9])
    );
    refused(
        Format::Arc,
        "7 3 0 0\n9 1 0\n",
        "line 2: not four columns: start, number of blocks, ignored, request number",
    );
    refused(
        Format::Arc,
        "7 3 0 0 0\n",
        "line 1: not four columns: start, number of blocks, ignored, request number",
    );
    refused(
        Format::Arc,
        "7 0 0 0\n",
        "line 1: 0 blocks; a request has from 1 to 16777216",
    );
    refused(Format::Arc, "7 -3 0 0\n", "line 1: \"-3\" is not a number");
    refused(Format::Arc, "7 3 0 x\n", "line 1: \"x\" is not a number");
    refused(
        Format::Arc,
        "18446744073709551615 2 0 0\n",
        "line 1: the last block has no number",
    );
    refused(
        Format::Arc,
        "18446744073709551616 1 0 0\n",
        "line 1: \"18446744073709551616\" is not a number",
    );
    refused(
        Format::Arc,
        "7 3 0 0\n9 1 0 1",
        "line 2: the last line has no end: the file is cut off",
    );
}

#[test]
fn lirs_has_breakpoints_and_may_lack_its_last_end() {
    assert_eq!(
        read(Format::Lirs, b"1\n2\r\n*\n\n 3 \n4"),
        Ok(vec![1, 2, 3, 4])
    );
    refused(
        Format::Lirs,
        "1\n\n*\n2 3\n",
        "line 4: \"2 3\" is not a page number, or *",
    );
    refused(
        Format::Lirs,
        "+1\n",
        "line 1: \"+1\" is not a page number, or *",
    );
    refused(
        Format::Lirs,
        [b'1', b'\n', 0xff, b'\n'],
        "line 2: not a text; is it compressed, or another format?",
    );
    refused(
        Format::Lirs,
        "1".repeat(5000),
        "line 1: too long for a line of a trace; is it another format?",
    );
}

#[test]
fn keys_has_numbers_only() {
    assert_eq!(read(Format::Keys, b"1\n2\n"), Ok(vec![1, 2]));
    refused(Format::Keys, "1\n\n2\n", "line 2: \"\" is not a number");
    refused(Format::Keys, "1\n*\n", "line 2: \"*\" is not a number");
    refused(
        Format::Keys,
        "1\n2",
        "line 2: the last line has no end: the file is cut off",
    );
}

#[test]
fn u32be_has_whole_numbers() {
    assert_eq!(
        read(Format::U32be, &[0, 0, 1, 2, 0xff, 0, 0, 0]),
        Ok(vec![258, 0xff00_0000])
    );
    refused(
        Format::U32be,
        [0, 0, 1, 2, 3, 4],
        "byte 4: 2 bytes are left, and a number has 4: the file is cut off",
    );
}

#[test]
fn cloudphysics_has_two_readings() {
    let text = "version,time,op,size,lbn\n1,5,28,512,9\n1,6,2a,8192,15\n1,7,28,0,8\n";
    assert_eq!(
        read(Format::Cloudphysics, text.as_bytes()),
        Ok(vec![9, 15, 8])
    );
    // Blocks 15 to 30 lie in pages 1 to 3 of eight blocks.
    assert_eq!(
        read(Format::CloudphysicsPages, text.as_bytes()),
        Ok(vec![1, 1, 2, 3, 1])
    );
    let kinds = Format::Cloudphysics.read(text.as_bytes());
    let kinds: Vec<Kind> = kinds.map(|access| access.unwrap().kind).collect();
    assert_eq!(kinds, [Kind::Read, Kind::Write, Kind::Read]);
    refused(
        Format::Cloudphysics,
        "1,5,28,512,9\n",
        "line 1: \"1,5,28,512,9\" is not the header version,time,op,size,lbn",
    );
    let with = |line: &str| format!("version,time,op,size,lbn\n{line}");
    refused(
        Format::Cloudphysics,
        with("1,5,2b,512,9\n"),
        "line 2: op \"2b\" is neither 28 (read) nor 2a (write)",
    );
    refused(
        Format::Cloudphysics,
        with("1,5,28,512\n"),
        "line 2: not five columns: version,time,op,size,lbn",
    );
    refused(
        Format::Cloudphysics,
        with("1,5,28,,9\n"),
        "line 2: \"\" is not a number",
    );
    refused(
        Format::CloudphysicsPages,
        with("1,5,28,99999999999,9\n"),
        "line 2: a request of 99999999999 bytes",
    );
    refused(
        Format::Cloudphysics,
        with("1,5,28,512,9"),
        "line 2: the last line has no end: the file is cut off",
    );
}

proptest! {
    /// Nothing but accesses and errors with a place comes of any bytes.
    #[test]
    fn any_bytes_give_an_answer(bytes in vec(any::<u8>(), 0..300)) {
        for format in ALL {
            // A run of blocks may be long.
            let told: Vec<_> = format.read(&bytes[..]).take(100_000).collect();
            if let Some(Err(error)) = told.last() {
                let text = error.to_string();
                prop_assert!(text.starts_with("line ") || text.starts_with("byte "), "{}", text);
            }
            prop_assert!(told.iter().rev().skip(1).all(Result::is_ok));
        }
    }

    /// Likewise of texts that look nearly right.
    #[test]
    fn any_text_gives_an_answer(text in "(version,time,op,size,lbn\n)?([0-9]{0,3}[ ,*x\n]){0,60}") {
        for format in ALL {
            let lines = text.lines().count() as u64;
            for access in format.read(text.as_bytes()) {
                if let Err(FormatError::Malformed { place: lab::format::Place::Line(line), .. }) = access {
                    prop_assert!((1..=lines).contains(&line), "line {} of {}", line, lines);
                }
            }
        }
    }

    /// Every line is one page, in order; a bad one is told by its number.
    #[test]
    fn the_bad_line_is_named(pages in vec(any::<u64>(), 1..50), bad in any::<prop::sample::Index>()) {
        let lines: Vec<String> = pages.iter().map(u64::to_string).collect();
        let text = format!("{}\n", lines.join("\n"));
        for format in [Format::Lirs, Format::Keys] {
            prop_assert_eq!(read(format, text.as_bytes()), Ok(pages.clone()));
        }
        let bad = bad.index(lines.len());
        let mut lines = lines;
        lines[bad].push('!');
        let error = read(Format::Keys, format!("{}\n", lines.join("\n")).as_bytes()).unwrap_err();
        prop_assert!(error.starts_with(&format!("line {}: ", bad + 1)), "{}", error);
    }

    #[test]
    fn words_are_numbers(numbers in vec(any::<u32>(), 0..100), rest in 0usize..4) {
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        bytes.extend(vec![0; rest]);
        let told = read(Format::U32be, &bytes);
        match rest {
            0 => prop_assert_eq!(told, Ok(numbers.into_iter().map(u64::from).collect())),
            _ => {
                let place = format!("byte {}: ", 4 * numbers.len());
                prop_assert!(told.unwrap_err().starts_with(&place));
            }
        }
    }
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

fn load(name: &str, bytes: &[u8]) -> Result<usize, LabError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let input = Input::of(path.to_str().unwrap());
    input
        .load(&lab::Progress::hidden())
        .map(|trace| trace.refs().len())
}

#[test]
fn compressed_files_are_read_and_their_damage_is_seen() {
    let text: String = (0..20_000)
        .map(|page| format!("{}\n", page * 7 % 1000))
        .collect();
    let whole = compressed(text.as_bytes());
    assert_eq!(load("t.txt.gz", &whole).unwrap(), 20_000);
    assert_eq!(load("t.txt", text.as_bytes()).unwrap(), 20_000);
    let mut twice = whole.clone();
    twice.extend(&whole);
    assert_eq!(load("t.txt.gz", &twice).unwrap(), 40_000);
    for len in [0, 5, 100, whole.len() / 2, whole.len() - 1] {
        let error = load("t.txt.gz", &whole[..len]).unwrap_err();
        assert_eq!(error.blame(), lab::Blame::Input, "{error}");
    }
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    let error = load("t.txt.gz", &damaged).unwrap_err();
    assert!(error.to_string().contains(": line "), "{error}");
    let error = load("t.txt", &whole).unwrap_err().to_string();
    assert!(error.contains("compressed"), "{error}");
}

#[test]
fn empty_traces_and_unknown_formats_are_told() {
    for (name, bytes) in [
        ("t.txt", &b""[..]),
        ("t.lis", b""),
        ("t.txt", b"*\n\n"),
        ("t.csv", b"version,time,op,size,lbn\n"),
    ] {
        let error = load(name, bytes).unwrap_err();
        assert!(matches!(error, LabError::Empty { .. }), "{error}");
    }
    let error = load("t.dat", b"1\n").unwrap_err().to_string();
    assert!(
        error.contains("--format") && error.contains("u32be") && error.contains("pages"),
        "{error}"
    );
}

#[test]
fn a_recorded_trace_is_read_like_any_other() {
    let mut writer = lab::format::Writer::new(Vec::new(), 8192).unwrap();
    for page in 0..5000 {
        writer.push(Access::read(page % 77)).unwrap();
    }
    let bytes = writer.finish().unwrap();
    assert_eq!(load("t.pages", &bytes).unwrap(), 5000);
    assert_eq!(load("t.pages.gz", &compressed(&bytes)).unwrap(), 5000);
    assert!(
        load("t.pages", &bytes[..bytes.len() - 12])
            .unwrap_err()
            .to_string()
            .contains("cut off")
    );
}
