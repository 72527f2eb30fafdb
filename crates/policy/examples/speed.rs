//! How fast policies are simulated: `speed SIZES POLICIES... < pages`, sizes with commas, a page number on each line.
//!
//! For each size and policy one line: requests, misses, and millions of requests a second.

use std::error::Error;
use std::io::{BufRead, stdin};
use std::time::Instant;

use longshore_policy::Trace;
use longshore_policy::simulator::Contender;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let sizes = words.next().ok_or("speed SIZES POLICIES... < pages")?;
    let sizes: Vec<u32> = sizes.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let contenders: Vec<Contender> = words.map(|word| word.parse()).collect::<Result<_, _>>()?;
    let trace = read()?;
    for &size in &sizes {
        for contender in &contenders {
            let start = Instant::now();
            let outcome = contender.run(&trace, size, &mut |_| {})?;
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "{contender},{size},{},{},{:.1}",
                outcome.requests,
                outcome.misses,
                outcome.requests as f64 / seconds / 1e6
            );
        }
    }
    Ok(())
}

fn read() -> Result<Trace, Box<dyn Error>> {
    let mut trace = Trace::new();
    for line in stdin().lock().lines() {
        let line = line?;
        let text = line.trim();
        if !text.is_empty() && text != "*" {
            trace.push(text.parse()?)?;
        }
    }
    Ok(trace)
}
