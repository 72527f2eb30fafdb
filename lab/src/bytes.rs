//! Sizes in bytes, read and written.

/// Reads a size: `4096`, `64K`, `1G`; units are powers of 1024.
///
/// # Errors
/// A sentence for the command line.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err("the unit is none of K, M, G, T".to_string()),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "not a size such as 64M".to_string())
}

/// A size for people: `19.1 MiB`.
pub(crate) fn in_words(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut size = bytes as f64;
    let mut word = "B";
    for unit in units {
        if size < 1024.0 {
            break;
        }
        (size, word) = (size / 1024.0, unit);
    }
    match word {
        "B" => format!("{bytes} B"),
        _ => format!("{size:.1} {word}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        assert_eq!(parse_bytes("64M"), Ok(64 << 20));
        assert_eq!(parse_bytes("8kib"), Ok(8192));
        assert_eq!(parse_bytes("17"), Ok(17));
        for text in ["", "M", "-1", "1X", "99999999T", "1.5G"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert_eq!(in_words(1000), "1000 B");
        assert_eq!(in_words(20_027_801), "19.1 MiB");
    }
}
