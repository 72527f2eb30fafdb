//! Actions as a person reads them, one line each, for the `log` command.

use std::fmt;

use super::PageAction;

/// Bytes of a key or value that are shown before the rest is left out.
const SHOWN_BYTES: usize = 32;

/// Bytes for human eyes: printable ASCII as it is, all else escaped, long ones cut.
pub(crate) struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_BYTES)];
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if shown.len() < self.0.len() {
            write!(f, "… ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

impl fmt::Display for PageAction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PageAction::FormatNode(image) => {
                write!(
                    f,
                    "format node level {} with {} rows",
                    image.level,
                    image.count()
                )
            }
            PageAction::InsertRow { key, flags, value } => {
                write!(f, "insert {} = {}{flags}", Shown(key), Shown(value))
            }
            PageAction::UpdateRow {
                key,
                flags,
                kept,
                middle,
            } => {
                write!(f, "update {} = ", Shown(key))?;
                if kept.front > 0 {
                    write!(f, "{} bytes kept, ", kept.front)?;
                }
                write!(f, "{}", Shown(middle))?;
                if kept.back > 0 {
                    write!(f, ", {} bytes kept", kept.back)?;
                }
                write!(f, "{flags}")
            }
            PageAction::Ghost { key } => write!(f, "ghost {}", Shown(key)),
            PageAction::Revive { key } => write!(f, "revive {}", Shown(key)),
            PageAction::Purge { key } => write!(f, "purge {}", Shown(key)),
            PageAction::SplitOff { key, foster } => {
                write!(f, "split off at {} to page {foster}", Shown(key))
            }
            PageAction::InsertChild { key, child } => {
                write!(f, "insert child {} = page {child}", Shown(key))
            }
            PageAction::RemoveChild { key } => write!(f, "remove child {}", Shown(key)),
            PageAction::SetFoster { foster } => write!(f, "set foster page {foster}"),
            PageAction::ClearFoster => write!(f, "clear foster"),
            PageAction::Absorb(image) => write!(f, "absorb {} rows", image.count()),
            PageAction::FormatMap => write!(f, "format map"),
            PageAction::SetMapBits { first, count, used } => {
                let verb = if used { "set" } else { "clear" };
                write!(f, "{verb} {count} map bits from {first}")
            }
            PageAction::OverflowImage {
                chain,
                index,
                bytes,
                ..
            } => {
                let (first, len) = (chain.first, bytes.len());
                write!(
                    f,
                    "overflow link {index} of {len} bytes, chain from page {first}"
                )
            }
            PageAction::OverflowLink { next } => write!(f, "overflow link to page {next}"),
            PageAction::FreePage => write!(f, "free page"),
            PageAction::FormatMeta => write!(f, "format meta"),
            PageAction::MetaSet { at, bytes } => {
                write!(f, "set {} bytes of meta at {at}", bytes.len())
            }
        }
    }
}
