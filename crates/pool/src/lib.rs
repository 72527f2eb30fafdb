//! Pages in memory: the non-blocking buffer manager
