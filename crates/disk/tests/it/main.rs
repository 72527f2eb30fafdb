//! The disks from outside: alike in everything a caller can see, and true to what they promise.

mod alike;
mod crash;
mod faults;
mod file;
mod images;
