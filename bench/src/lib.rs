//! Workloads that measure Longshore
