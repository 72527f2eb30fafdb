//! The whole engine on a simulated disk: crashes, faults, histories
