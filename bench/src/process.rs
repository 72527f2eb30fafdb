//! What the system says about this process: memory and bytes written.
//!
//! Read from `/proc`, so only Linux answers; elsewhere the figures are left out.

use std::fs;

/// Most memory that was resident since the last [`reset_peak`], in bytes.
pub(crate) fn memory_peak() -> Option<u64> {
    status("VmHWM:")
}

/// Memory that is resident now, in bytes.
pub(crate) fn memory() -> Option<u64> {
    status("VmRSS:")
}

/// Forgets the peak. Where the system does not allow it, the peak is that of the process's life.
pub(crate) fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Bytes handed to write calls so far.
pub(crate) fn bytes_written() -> Option<u64> {
    let io = fs::read_to_string("/proc/self/io").ok()?;
    field(&io, "wchar:")
}

fn status(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(field(&status, name)? * 1024)
}

/// The number behind `name` in lines of "name number unit".
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let text = "VmPeak:\t  20 kB\nVmHWM:\t  1234 kB\nVmRSS:\t 999 kB\n";
        assert_eq!(field(text, "VmHWM:"), Some(1234));
        assert_eq!(field(text, "VmSwap:"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_is_not_below_the_present() {
        let now = memory().unwrap();
        assert!(now > 100 << 10);
        assert!(memory_peak().unwrap() >= now);
    }
}
