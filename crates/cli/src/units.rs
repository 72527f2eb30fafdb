//! Numbers with units, read and written.

/// Reads a size: `4096`, `64K`, `64KiB`, `1G`; units are powers of 1024.
///
/// # Errors
/// A sentence for the command line.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &lower[digits.len()..] {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("\"{text}\" has an unknown unit; use K, M, G or T")),
    };
    let number: u64 = digits
        .trim()
        .parse()
        .map_err(|_| format!("\"{text}\" is not a size such as 64M"))?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| format!("\"{text}\" is too large"))
}

/// A size for people: `19.1 KiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut size = count as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// A count for people: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `2 rows`.
pub fn plural(number: u64, one: &str) -> String {
    plural_of(number, one, &format!("{one}s"))
}

/// A number with its noun, whose plural is another word.
pub fn plural_of(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_units() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("64K"), Ok(64 << 10));
        assert_eq!(parse_bytes("1 GiB"), Ok(1 << 30));
        assert!(parse_bytes("ten").is_err());
        assert!(parse_bytes("1X").unwrap_err().contains("unknown unit"));
        assert!(
            parse_bytes("99999999999T")
                .unwrap_err()
                .contains("too large")
        );
    }

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(19548), "19.1 KiB");
        assert_eq!(count(1234567), "1,234,567");
        assert_eq!(count(123), "123");
        assert_eq!(plural(1, "row"), "1 row");
    }
}
