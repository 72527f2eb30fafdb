//! What the system says about this process: memory, processor time, bytes written.
//!
//! Read from `/proc`, so only Linux answers; elsewhere the figures are left out.

use std::env;
use std::fs;
use std::hint::black_box;
use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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

/// Processor time used so far by all threads, to a hundredth of a second.
pub(crate) fn processor_time() -> Option<Duration> {
    /// The kernel's unit for user space, whatever its own clock.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The command, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis(
        (user + system) * 1000 / TICKS_PER_SECOND,
    ))
}

/// Processor time used so far by the calling thread.
pub(crate) fn processor_time_of_thread() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = stat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// Takes and gives back so many bytes of memory, so that the next who takes them need not wait.
///
/// In a virtual machine the host brings memory in when it is first touched, which costs a second or
/// more per GiB; and a guest may give memory back to the host soon after it is freed.
pub(crate) fn bring_in_memory(bytes: usize) {
    const PAGE_BYTES: usize = 4096;
    let mut memory = vec![0u8; bytes];
    memory
        .iter_mut()
        .step_by(PAGE_BYTES)
        .for_each(|byte| *byte = 1);
    black_box(&memory);
}

/// How the program was called, without its folder.
pub(crate) fn command_line() -> String {
    let mut words: Vec<String> = env::args().collect();
    if let Some(program) = words.first_mut() {
        let name = Path::new(&*program).file_name();
        *program = name.map_or_else(
            || program.clone(),
            |name| name.to_string_lossy().into_owned(),
        );
    }
    words.join(" ")
}

/// Processors that this process may use.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Processors and memory, as people name them.
pub(crate) fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model.map(|rest| rest.trim_start_matches([' ', '\t', ':']));
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory =
        field(&memory, "MemTotal:").map(|kib| format!(", {} GiB", (kib + (1 << 19)) >> 20));
    let (cores, model) = (cores(), model.unwrap_or("an unknown processor"));
    format!("{cores} cores of {model}{}", memory.unwrap_or_default())
}

/// The date in Greenwich, `YYYY-MM-DD`.
pub(crate) fn today() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    date(since.as_secs() / (24 * 60 * 60))
}

/// The date so many days after 1970-01-01.
fn date(mut days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
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
    fn days_are_dates() {
        let dates = [0, 58, 59, 789, 11_016, 20_779, 47_540].map(date);
        let expected = [
            "1970-01-01",
            "1970-02-28",
            "1970-03-01",
            "1972-02-29",
            "2000-02-29",
            "2026-11-22",
            "2100-02-28",
        ];
        assert_eq!(dates, expected);
        assert_eq!(date(47_541), "2100-03-01");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn work_takes_processor_time() {
        let before = processor_time().unwrap();
        let of_thread_before = processor_time_of_thread().unwrap();
        let start = std::time::Instant::now();
        while processor_time().unwrap() == before {
            assert!(start.elapsed() < Duration::from_secs(60));
            bring_in_memory(1 << 20);
        }
        assert!(processor_time_of_thread().unwrap() > of_thread_before);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_peak_is_not_below_the_present() {
        let now = memory().unwrap();
        assert!(now > 100 << 10);
        assert!(memory_peak().unwrap() >= now);
    }
}
