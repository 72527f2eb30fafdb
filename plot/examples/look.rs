//! Draws one picture of each sort, to be looked at: `cargo run -p plot --example look -- FOLDER`.

use plot::{Axis, Bars, Chart, Figure, Format, Line, Panel, Scale};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    for (name, figure) in [
        ("clients", clients()),
        ("policies", policies()),
        ("bars", bars()),
    ] {
        for (extension, format) in [("svg", Format::Svg), ("png", Format::Png)] {
            let file = Path::new(&folder).join(format!("{name}.{extension}"));
            std::fs::write(&file, figure.render(format)?)?;
            println!("{}", file.display());
        }
    }
    Ok(())
}

/// Two panels, logarithmic axes, a reference.
fn clients() -> Figure {
    const CLIENTS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let panel = |title: &str, first: f64| Panel {
        title: title.to_owned(),
        x: Axis::new("clients", Scale::Log).ticks(CLIENTS),
        y: Axis::new("transactions per second and client", Scale::Log),
        chart: Chart::Lines(vec![
            Line::new("measured", CLIENTS.map(|n| (n, first / n.powf(0.8)))),
            Line::reference(
                "equal share of 2 cores",
                CLIENTS.map(|n| (n, first * (2.0 / n).min(1.0))),
            ),
        ]),
    };
    Figure {
        title: "Throughput of each client".to_owned(),
        panels: vec![panel("New Order", 21_000.0), panel("Payment", 64_000.0)],
        caption: vec!["Invented figures.".to_owned()],
    }
}

/// Twenty lines, as of hit ratios by size.
fn policies() -> Figure {
    let line = |at: u32| {
        let points = (1..=10).map(|size| {
            let (size, at) = (f64::from(size) * 1000.0, f64::from(at));
            (size, 100.0 * (1.0 - (-size / (1500.0 + 220.0 * at)).exp()))
        });
        Line::new(format!("POLICY-{at}"), points)
    };
    Figure {
        title: "Hit ratio by size".to_owned(),
        panels: vec![Panel {
            title: "a trace of 914,145 requests".to_owned(),
            x: Axis::new("size, pages", Scale::Linear).from(0.0),
            y: Axis::new("hits, % of requests", Scale::Linear).from(0.0).to(100.0),
            chart: Chart::Lines((1..=20).map(line).collect()),
        }],
        caption: vec![
            "Invented figures, with a caption that is so long that it has to go on in another line: longshore \
             bench tpcc --only new-order,payment --threads 1,2,4,8,16,32 --seconds 10 --rounds 5"
                .to_owned(),
            "2 cores of some processor, 2026-11-22".to_owned(),
        ],
    }
}

/// Bars in groups.
fn bars() -> Figure {
    let names = [
        "LRU",
        "2Q",
        "GCLOCK",
        "Nb-GCLOCK",
        "LIRS",
        "ARC",
        "CAR",
        "S3-FIFO",
        "SIEVE",
    ];
    let bars = (0u32..).zip(names).map(|(at, name)| {
        let at = f64::from(at);
        Bars::new(name, [40.0 + 3.0 * at, 55.0 - 2.0 * at, 80.0 - at])
    });
    let groups = ["Zipf", "Zipf with scans of the whole table", "uniform"];
    Figure {
        title: "Hit ratio by workload <&>".to_owned(),
        panels: vec![Panel {
            title: String::new(),
            x: Axis::new("workload", Scale::Linear),
            y: Axis::new("hits, % of requests", Scale::Linear).to(100.0),
            chart: Chart::Bars {
                groups: groups.map(str::to_owned).to_vec(),
                bars: bars.collect(),
            },
        }],
        caption: Vec::new(),
    }
}
