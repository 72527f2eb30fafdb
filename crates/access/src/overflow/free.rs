//! Giving the pages of a chain back.

use longshore_base::{PageId, StoreId};
use longshore_pool::ExclusiveGuard;

use super::link::{self, ChainId};
use crate::access::{Access, LogContext};
use crate::action::PageAction;
use crate::error::AccessError;
use crate::mtr::{MiniTransaction, Steps};
use crate::tree::Freeing;

const FREE: Steps = Steps::new(
    "chain_free.latched",
    "chain_free.logged",
    "chain_free.applied",
);

/// Frees at most `links` links of a chain that no row refers to any more.
///
/// Each link is freed in a mini-transaction of its own, the second first and the first last, so what
/// is left is a chain at any moment. Who asks again after [`Freeing::Done`], as one does after a
/// crash, is told so again (O1).
///
/// # Errors
/// When log space or a page cannot be had; call again later.
pub fn free_step(
    access: &Access,
    cx: &mut LogContext,
    store: StoreId,
    chain: ChainId,
    links: usize,
) -> Result<Freeing, AccessError> {
    for _ in 0..links {
        if free_one(access, cx, store, chain)? == Freeing::Done {
            return Ok(Freeing::Done);
        }
    }
    Ok(Freeing::Underway)
}

/// Whether any link of the chain is left.
pub(crate) fn is_left(
    access: &Access,
    store: StoreId,
    chain: ChainId,
) -> Result<bool, AccessError> {
    let first = access.pool.fix_shared(chain.first)?;
    Ok(link::is_link(first.page(), store, chain))
}

fn free_one(
    access: &Access,
    cx: &mut LogContext,
    store: StoreId,
    chain: ChainId,
) -> Result<Freeing, AccessError> {
    let first = access.pool.fix_exclusive(chain.first)?;
    if !link::is_link(first.page(), store, chain) {
        return Ok(Freeing::Done);
    }
    let second = link_after(access, &first, store, chain)?;
    let mut mtr = MiniTransaction::begin(access);
    match second {
        Some(second) => {
            let next = link::next(second.page()).unwrap_or(PageId::NONE);
            mtr.change(first, PageAction::OverflowLink { next });
            mtr.free(second);
            mtr.commit(cx, &FREE)?;
            Ok(Freeing::Underway)
        }
        None => {
            mtr.free(first);
            mtr.commit(cx, &FREE)?;
            Ok(Freeing::Done)
        }
    }
}

/// The link after `link`, latched; none when the chain ends there, finished or not (O2).
fn link_after<'a>(
    access: &'a Access,
    link: &ExclusiveGuard<'_>,
    store: StoreId,
    chain: ChainId,
) -> Result<Option<ExclusiveGuard<'a>>, AccessError> {
    let Some(page) = link::next(link.page()).filter(|page| *page != link.page_id()) else {
        return Ok(None);
    };
    let next = access.pool.fix_exclusive(page)?;
    Ok(link::is_link(next.page(), store, chain).then_some(next))
}
