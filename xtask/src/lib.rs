//! Checks that the house keeps its own rules
