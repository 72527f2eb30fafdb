//! The fixed workloads that are cut, or made to fail, at every single I/O.

use crate::workload::Profile;

/// A workload that is always the same.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// What a report calls it.
    pub name: &'static str,
    /// Determines every step.
    pub seed: u64,
    /// How its transactions look.
    pub profile: Profile,
    /// Steps of its clients.
    pub steps: u64,
}

/// Small rows, wide rows, large values: between them every structure change happens.
pub const WORKLOADS: [Fixed; 3] = [
    Fixed {
        name: "small rows, three clients",
        seed: 11,
        profile: Profile {
            keys: 120,
            value_bytes_max: 60,
            large_bytes_max: 0,
            clients: 3,
        },
        steps: 250,
    },
    Fixed {
        name: "wide rows, two clients",
        seed: 12,
        profile: Profile {
            keys: 400,
            value_bytes_max: 700,
            large_bytes_max: 0,
            clients: 2,
        },
        steps: 400,
    },
    Fixed {
        name: "large values, one client",
        seed: 13,
        profile: Profile {
            keys: 20,
            value_bytes_max: 100,
            large_bytes_max: 40_000,
            clients: 1,
        },
        steps: 120,
    },
];
