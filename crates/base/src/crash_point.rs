//! Named places between two steps that a crash could separate.
//!
//! Code calls [`crash_point`] with a name `area.step`. Outside the simulation that is one load of a
//! thread-local flag. The simulation installs a hook for its thread, counts the names that are
//! reached, and lets the simulated disk fail from there on.

use std::cell::{Cell, RefCell};

type Hook = Box<dyn FnMut(&'static str)>;

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Marks a place at which the process may die.
#[inline]
pub fn crash_point(name: &'static str) {
    if ARMED.get() {
        call(name);
    }
}

/// Has `hook` called at every crash point that this thread reaches, until the guard is dropped.
///
/// # Panics
/// If the thread has a hook already.
pub fn install(hook: impl FnMut(&'static str) + 'static) -> Installed {
    HOOK.with_borrow_mut(|slot| {
        assert!(slot.is_none(), "a crash hook is installed already");
        *slot = Some(Box::new(hook));
    });
    ARMED.set(true);
    Installed(())
}

/// Keeps a hook in place.
#[must_use = "the hook is removed when this is dropped"]
#[derive(Debug)]
pub struct Installed(());

impl Drop for Installed {
    fn drop(&mut self) {
        ARMED.set(false);
        HOOK.with_borrow_mut(|slot| *slot = None);
    }
}

#[cold]
fn call(name: &'static str) {
    // A hook that reaches a crash point itself is not called again.
    if let Ok(mut slot) =
        HOOK.try_with(|hook| hook.try_borrow_mut().ok().and_then(|mut h| h.take()))
        && let Some(hook) = slot.as_mut()
    {
        hook(name);
        HOOK.with_borrow_mut(|home| *home = slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn hook_sees_names_only_while_installed() {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&seen);
        crash_point("test.before");
        let installed = install(move |name| {
            log.borrow_mut().push(name);
            crash_point("test.inside");
        });
        crash_point("test.during");
        crash_point("test.again");
        drop(installed);
        crash_point("test.after");
        assert_eq!(*seen.borrow(), ["test.during", "test.again"]);
    }
}
