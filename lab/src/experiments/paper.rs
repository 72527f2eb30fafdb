//! What the papers found, read from their figures and tables (to 0.1 points, or two digits, where they print no
//! numbers). Throughput in millions of operations a second.

use super::findings::Column;

/// Values of a figure: rows by rival, columns by label.
pub(super) struct Published {
    columns: &'static [&'static str],
    rows: &'static [(&'static str, &'static [f64])],
}

impl Published {
    /// Nothing is known.
    pub(super) const NOTHING: Published = Published {
        columns: &[],
        rows: &[],
    };

    /// The values of a rival in these columns.
    pub(super) fn row(&self, rival: &str, columns: &[Column]) -> Vec<Option<f64>> {
        let row = self.rows.iter().find(|(name, _)| *name == rival);
        let value = |column: &Column| {
            let at = self
                .columns
                .iter()
                .position(|label| *label == column.label)?;
            row?.1.get(at).copied()
        };
        columns.iter().map(value).collect()
    }
}

const CAPACITIES: &[&str] = &["4,096", "8,192", "16,384", "32,768"];

/// Hit ratio, %, 64 threads.
pub(super) const FIG7: Published = Published {
    columns: CAPACITIES,
    rows: &[
        ("LRU", &[50.9, 61.8, 74.8, 91.6]),
        ("2Q", &[55.7, 65.0, 75.9, 89.4]),
        ("GCLOCK", &[49.0, 61.7, 75.0, 92.8]),
        ("Nb-GCLOCK", &[51.4, 62.6, 75.6, 90.9]),
    ],
};

/// What Fig. 7's workload gives in simulators that others wrote: our LRU should give the same.
pub(super) const LRU_ON_NBG: [f64; 4] = [50.98, 61.88, 74.80, 89.86];

/// Settings of Fig. 8: label, capacity, the exponent of Zipf's law.
pub(super) const FIG8_SETTINGS: [(&str, u32, &str); 6] = [
    ("16,384 (0.5)", 16_384, "0.5"),
    ("4,096", 4096, "0.86"),
    ("8,192", 8192, "0.86"),
    ("32,768 (0.5)", 32_768, "0.5"),
    ("16,384", 16_384, "0.86"),
    ("32,768", 32_768, "0.86"),
];

/// Throughput, optimistic reads, 64 threads.
pub(super) const FIG8: Published = Published {
    columns: &[
        "16,384 (0.5)",
        "4,096",
        "8,192",
        "32,768 (0.5)",
        "16,384",
        "32,768",
    ],
    rows: &[
        ("LRU", &[0.28, 0.38, 0.42, 0.37, 0.44, 0.62]),
        ("2Q", &[0.26, 0.35, 0.38, 0.32, 0.43, 0.54]),
        ("Bp2Q", &[0.02, 0.03, 0.03, 0.04, 0.04, 0.07]),
        ("GCLOCK", &[0.33, 0.36, 0.50, 0.53, 0.70, 1.38]),
        ("Nb-GCLOCK", &[0.65, 0.81, 1.02, 1.12, 1.35, 3.28]),
    ],
};

/// Throughput, blocking reads, 64 threads.
pub(super) const FIG9_BLOCKING: Published = Published {
    columns: CAPACITIES,
    rows: &[
        ("LRU", &[0.03, 0.04, 0.06, 0.13]),
        ("2Q", &[0.03, 0.04, 0.06, 0.13]),
        ("GCLOCK", &[0.03, 0.04, 0.06, 0.16]),
        ("Nb-GCLOCK", &[0.03, 0.04, 0.06, 0.17]),
    ],
};

/// The same with optimistic reads.
pub(super) const FIG9_OPTIMISTIC: Published = Published {
    columns: CAPACITIES,
    rows: &[
        ("LRU", &[0.38, 0.42, 0.44, 0.62]),
        ("2Q", &[0.35, 0.38, 0.43, 0.54]),
        ("GCLOCK", &[0.35, 0.50, 0.70, 1.38]),
        ("Nb-GCLOCK", &[0.81, 1.02, 1.43, 3.27]),
    ],
};

/// Table III: reads in vain, % of operations.
pub(super) const TABLE3_READS: Published = Published {
    columns: CAPACITIES,
    rows: &[
        ("LRU", &[0.04, 0.02, 0.01, 0.002]),
        ("2Q", &[0.03, 0.01, 0.008, 0.003]),
        ("GCLOCK", &[0.05, 0.03, 0.01, 0.006]),
        ("Nb-GCLOCK", &[1.7, 0.1, 0.06, 0.03]),
    ],
};

/// Table III: processor time, % of all processors.
pub(super) const TABLE3_PROCESSOR: Published = Published {
    columns: CAPACITIES,
    rows: &[
        ("LRU", &[26.0, 23.6, 18.8, 14.2]),
        ("2Q", &[23.3, 21.7, 18.8, 16.9]),
        ("GCLOCK", &[25.6, 27.8, 28.1, 27.6]),
        ("Nb-GCLOCK", &[96.3, 96.1, 95.9, 92.7]),
    ],
};

/// Throughput by processors, all pages resident.
pub(super) const FIG10: Published = Published {
    columns: &["8", "16", "32", "64"],
    rows: &[
        ("LRU", &[0.946_267, 0.917_878, 0.961_255, 0.695_153]),
        ("2Q", &[0.890_992, 0.819_975, 0.866_009, 0.662_782]),
        ("GCLOCK", &[1.758_605, 1.912, 1.931_268, 1.817_748]),
        ("Nb-GCLOCK", &[3.461_203, 7.330_622, 14.285_105, 8.646_41]),
        (
            "Nb-GCLOCK (striped)",
            &[3.409_819, 7.331_722, 14.245_524, 25.834_449],
        ),
    ],
};

/// Throughput by processors at 8,192 pages.
pub(super) const FIG12_8192: Published = Published {
    columns: &["8", "16", "32", "64"],
    rows: &[
        ("LRU", &[0.19, 0.32, 0.38, 0.41]),
        ("2Q", &[0.22, 0.33, 0.38, 0.37]),
        ("GCLOCK", &[0.22, 0.40, 0.50, 0.49]),
        ("Nb-GCLOCK", &[0.22, 0.43, 0.81, 1.02]),
    ],
};

/// Throughput by processors at 16,384 pages.
pub(super) const FIG12_16384: Published = Published {
    columns: &["8", "16", "32", "64"],
    rows: &[
        ("LRU", &[0.26, 0.38, 0.44, 0.44]),
        ("2Q", &[0.28, 0.39, 0.44, 0.43]),
        ("GCLOCK", &[0.33, 0.58, 0.70, 0.65]),
        ("Nb-GCLOCK", &[0.36, 0.66, 1.18, 1.35]),
    ],
};

/// Throughput of 8 threads, all pages resident, on two machines.
pub(super) const FIG13: Published = Published {
    columns: &["Xeon E5420", "Opteron 880"],
    rows: &[
        ("LRU", &[1.205_061, 1.335_554]),
        ("2Q", &[1.308_776, 1.289_447]),
        ("GCLOCK", &[1.656_718, 1.718_766]),
        ("Nb-GCLOCK", &[6.368_404, 4.938_97]),
        ("Nb-GCLOCK3", &[6.603_253, 5.056_886]),
        ("Nb-GCLOCK3 (laid out)", &[6.672_93, 5.574_922]),
    ],
};
