//! `longshore lab list`: what there is to choose from.

use std::io::Write;

use longshore_policy::{Unit, catalogue};
use longshore_pool::Form;

use crate::error::LabError;
use crate::format::Format;
use crate::workload::WORKLOADS;

/// Prints policies, forms, workloads and formats.
///
/// # Errors
/// The output cannot be written.
pub fn run(out: &mut impl Write) -> Result<(), LabError> {
    writeln!(
        out,
        "Policies, written name:parameter=value,...; * says what each is weak at"
    )?;
    for about in catalogue() {
        let (frame, ghosts) = about.page_bytes();
        let memory = frame + ghosts;
        writeln!(
            out,
            "  {:<12} {}; up to {memory} bytes a page",
            about.name, about.source
        )?;
        writeln!(out, "  {:<12} * {}", "", about.weakness)?;
        for parameter in about.parameters {
            let unit = if parameter.unit == Unit::Percent {
                "%"
            } else {
                ""
            };
            let range = format!("{}{unit} to {}{unit}", parameter.min, parameter.max);
            let (name, default) = (parameter.name, parameter.default);
            writeln!(
                out,
                "  {:<12} {name}={default}{unit}  {} ({range})",
                "", parameter.meaning
            )?;
        }
    }
    writeln!(
        out,
        "  {:<12} Belady 1966: the bound, which knows the future",
        "opt"
    )?;
    writeln!(
        out,
        "\nForms in which the pool tells a policy of hits, written form:parameter=value,.../policy"
    )?;
    for about in Form::catalogue() {
        writeln!(out, "  {:<12} {}", about.name, about.meaning)?;
        for parameter in about.parameters {
            let (name, default, meaning) = (parameter.name, parameter.default, parameter.meaning);
            let range = format!("{} to {}", parameter.min, parameter.max);
            writeln!(out, "  {:<12} {name}={default}  {meaning} ({range})", "")?;
        }
    }
    writeln!(out, "\nWorkloads, written alike")?;
    for about in WORKLOADS {
        writeln!(out, "  {:<12} {}", about.name, about.meaning)?;
        for parameter in about.parameters {
            let (name, default, allowed) = (parameter.name, parameter.default, parameter.allowed());
            writeln!(
                out,
                "  {:<12} {name}={default}  {} ({allowed})",
                "", parameter.meaning
            )?;
        }
    }
    writeln!(
        out,
        "\nFormats of trace files, each also with .gz\n  {}",
        Format::LIST
    )?;
    Ok(())
}
