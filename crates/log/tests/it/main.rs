//! Tests of the log as its users see it, on simulated disks.

#![cfg(not(loom))]

mod claims;
mod crashes;
mod damage;
mod faults;
mod handles;
mod segments;
mod support;
mod threads;
