//! Actions as bytes. The first byte says which action; lengths precede what varies.

use longshore_base::{Lsn, PageId, StoreId};

use super::PageAction;
use crate::bytes::{Decoder, Malformed};
use crate::node::{Kept, NodeImage, RowFlags};
use crate::overflow::ChainId;

const FORMAT_NODE: u8 = 1;
const INSERT_ROW: u8 = 2;
const UPDATE_ROW: u8 = 3;
const GHOST: u8 = 4;
const REVIVE: u8 = 5;
const PURGE: u8 = 6;
const SPLIT_OFF: u8 = 7;
const INSERT_CHILD: u8 = 8;
const REMOVE_CHILD: u8 = 9;
const SET_FOSTER: u8 = 10;
const CLEAR_FOSTER: u8 = 11;
const ABSORB: u8 = 12;
const FORMAT_MAP: u8 = 13;
const SET_MAP_BITS: u8 = 14;
const OVERFLOW_IMAGE: u8 = 15;
const OVERFLOW_LINK: u8 = 16;
const FORMAT_META: u8 = 17;
const META_SET: u8 = 18;
const FREE_PAGE: u8 = 19;

impl<'a> PageAction<'a> {
    /// Appends the action to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            PageAction::FormatNode(image) => {
                out.push(FORMAT_NODE);
                image.encode(out);
            }
            PageAction::InsertRow { key, flags, value } => {
                put_row(out, INSERT_ROW, key, flags, value)
            }
            PageAction::UpdateRow {
                key,
                flags,
                kept,
                middle,
            } => {
                put_row(out, UPDATE_ROW, key, flags, middle);
                out.extend_from_slice(&kept.front.to_le_bytes());
                out.extend_from_slice(&kept.back.to_le_bytes());
            }
            PageAction::Ghost { key } => put_key(out, GHOST, key),
            PageAction::Revive { key } => put_key(out, REVIVE, key),
            PageAction::Purge { key } => put_key(out, PURGE, key),
            PageAction::SplitOff { key, foster } => put_key_page(out, SPLIT_OFF, key, foster),
            PageAction::InsertChild { key, child } => put_key_page(out, INSERT_CHILD, key, child),
            PageAction::RemoveChild { key } => put_key(out, REMOVE_CHILD, key),
            PageAction::SetFoster { foster } => {
                out.push(SET_FOSTER);
                put_page(out, foster);
            }
            PageAction::ClearFoster => out.push(CLEAR_FOSTER),
            PageAction::Absorb(image) => {
                out.push(ABSORB);
                image.encode(out);
            }
            PageAction::FormatMap => out.push(FORMAT_MAP),
            PageAction::SetMapBits { first, count, used } => {
                out.push(SET_MAP_BITS);
                out.extend_from_slice(&first.to_le_bytes());
                out.extend_from_slice(&count.to_le_bytes());
                out.push(used as u8);
            }
            PageAction::FreePage => out.push(FREE_PAGE),
            PageAction::OverflowImage {
                store,
                chain,
                index,
                next,
                bytes,
            } => {
                out.push(OVERFLOW_IMAGE);
                out.extend_from_slice(&store.get().to_le_bytes());
                put_page(out, chain.first);
                out.extend_from_slice(&chain.born.get().to_le_bytes());
                out.extend_from_slice(&index.to_le_bytes());
                put_page(out, next);
                put_bytes(out, bytes);
            }
            PageAction::OverflowLink { next } => {
                out.push(OVERFLOW_LINK);
                put_page(out, next);
            }
            PageAction::FormatMeta => out.push(FORMAT_META),
            PageAction::MetaSet { at, bytes } => {
                out.push(META_SET);
                out.extend_from_slice(&at.to_le_bytes());
                put_bytes(out, bytes);
            }
        }
    }

    /// Reads an action that takes up all of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when `bytes` is not what [`encode`](Self::encode) writes.
    pub fn decode(bytes: &'a [u8]) -> Result<PageAction<'a>, Malformed> {
        let mut decoder = Decoder::new(bytes);
        let action = PageAction::decode_next(&mut decoder)?;
        decoder.finish()?;
        Ok(action)
    }

    pub(crate) fn decode_next(from: &mut Decoder<'a>) -> Result<PageAction<'a>, Malformed> {
        Ok(match from.u8()? {
            FORMAT_NODE => PageAction::FormatNode(NodeImage::decode(from)?),
            INSERT_ROW => {
                let (key, flags, value) = take_row(from)?;
                PageAction::InsertRow { key, flags, value }
            }
            UPDATE_ROW => {
                let (key, flags, middle) = take_row(from)?;
                PageAction::UpdateRow {
                    key,
                    flags,
                    kept: Kept {
                        front: from.u16()?,
                        back: from.u16()?,
                    },
                    middle,
                }
            }
            GHOST => PageAction::Ghost {
                key: take_key(from)?,
            },
            REVIVE => PageAction::Revive {
                key: take_key(from)?,
            },
            PURGE => PageAction::Purge {
                key: take_key(from)?,
            },
            SPLIT_OFF => PageAction::SplitOff {
                key: take_key(from)?,
                foster: take_page(from)?,
            },
            INSERT_CHILD => PageAction::InsertChild {
                key: take_key(from)?,
                child: take_page(from)?,
            },
            REMOVE_CHILD => PageAction::RemoveChild {
                key: take_key(from)?,
            },
            SET_FOSTER => PageAction::SetFoster {
                foster: take_page(from)?,
            },
            CLEAR_FOSTER => PageAction::ClearFoster,
            ABSORB => PageAction::Absorb(NodeImage::decode(from)?),
            FORMAT_MAP => PageAction::FormatMap,
            SET_MAP_BITS => PageAction::SetMapBits {
                first: from.u32()?,
                count: from.u32()?,
                used: match from.u8()? {
                    0 => false,
                    1 => true,
                    _ => return Err(Malformed("a bit is neither set nor cleared")),
                },
            },
            FREE_PAGE => PageAction::FreePage,
            OVERFLOW_IMAGE => PageAction::OverflowImage {
                store: StoreId::new(from.u32()?),
                chain: ChainId {
                    first: take_page(from)?,
                    born: Lsn::new(from.u64()?),
                },
                index: from.u32()?,
                next: take_page(from)?,
                bytes: take_bytes(from)?,
            },
            OVERFLOW_LINK => PageAction::OverflowLink {
                next: take_page(from)?,
            },
            FORMAT_META => PageAction::FormatMeta,
            META_SET => PageAction::MetaSet {
                at: from.u16()?,
                bytes: take_bytes(from)?,
            },
            _ => return Err(Malformed("unknown page action")),
        })
    }
}

fn put_page(out: &mut Vec<u8>, page: PageId) {
    out.extend_from_slice(&page.get().to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_key(out: &mut Vec<u8>, action: u8, key: &[u8]) {
    out.push(action);
    out.extend_from_slice(&(key.len() as u16).to_le_bytes());
    out.extend_from_slice(key);
}

fn put_key_page(out: &mut Vec<u8>, action: u8, key: &[u8], page: PageId) {
    put_key(out, action, key);
    put_page(out, page);
}

fn put_row(out: &mut Vec<u8>, action: u8, key: &[u8], flags: RowFlags, value: &[u8]) {
    put_key(out, action, key);
    out.extend_from_slice(&flags.bits().to_le_bytes());
    put_bytes(out, value);
}

fn take_page(from: &mut Decoder<'_>) -> Result<PageId, Malformed> {
    Ok(PageId::new(from.u64()?))
}

fn take_bytes<'a>(from: &mut Decoder<'a>) -> Result<&'a [u8], Malformed> {
    let len = from.u32()? as usize;
    from.bytes(len)
}

fn take_key<'a>(from: &mut Decoder<'a>) -> Result<&'a [u8], Malformed> {
    let len = from.u16()? as usize;
    from.bytes(len)
}

fn take_row<'a>(from: &mut Decoder<'a>) -> Result<(&'a [u8], RowFlags, &'a [u8]), Malformed> {
    let key = take_key(from)?;
    let flags = RowFlags::from_bits(from.u16()?).ok_or(Malformed("unknown row flags"))?;
    Ok((key, flags, take_bytes(from)?))
}
