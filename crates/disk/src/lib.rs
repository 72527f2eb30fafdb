//! Bytes at rest: files, memory, and a simulated disk that crashes
