//! The house, checked.

use std::fmt::Write;

#[test]
fn the_house_is_tidy() {
    let violations = xtask::tidy(&xtask::repository_root()).expect("the check runs");
    let mut message = String::new();
    for violation in &violations {
        writeln!(message, "  {violation}").expect("writing to a string");
    }
    assert!(
        violations.is_empty(),
        "{} place(s) to tidy:\n{message}",
        violations.len()
    );
}
