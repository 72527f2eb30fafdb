//! Crash points: which names were reached how often, and a crash at the n-th.

use crate::trace::trace;
use longshore_base::crash_point::{self, Installed};
use longshore_disk::SimDisk;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// How often each named point was reached.
pub type Hits = BTreeMap<&'static str, u64>;

/// Watches the crash points of this thread.
pub struct Points {
    shared: Rc<RefCell<Watch>>,
    _installed: Installed,
}

#[derive(Default)]
struct Watch {
    hits: Hits,
    armed: Option<Armed>,
}

struct Armed {
    disk: Arc<SimDisk>,
    name: Option<&'static str>,
    left: u64,
}

impl Points {
    /// Starts to watch; one at a time in a thread.
    pub fn install() -> Points {
        let shared = Rc::new(RefCell::new(Watch::default()));
        let watch = Rc::clone(&shared);
        let installed = crash_point::install(move |name| watch.borrow_mut().reached(name));
        Points {
            shared,
            _installed: installed,
        }
    }

    /// Crashes `disk` at the `nth` point from now on; of this name, if one is given.
    pub fn arm(&self, disk: &Arc<SimDisk>, name: Option<&'static str>, nth: u64) {
        let armed = Armed {
            disk: Arc::clone(disk),
            name,
            left: nth,
        };
        self.shared.borrow_mut().armed = Some(armed);
    }

    /// Crashes nothing any more.
    pub fn disarm(&self) {
        self.shared.borrow_mut().armed = None;
    }

    /// The counts so far.
    pub fn hits(&self) -> Hits {
        self.shared.borrow().hits.clone()
    }
}

impl Watch {
    fn reached(&mut self, name: &'static str) {
        *self.hits.entry(name).or_default() += 1;
        trace(|| format!("    point {name}"));
        let Some(armed) = &mut self.armed else { return };
        if armed.name.is_some_and(|wanted| wanted != name) {
            return;
        }
        armed.left = armed.left.saturating_sub(1);
        if armed.left == 0 {
            armed.disk.crash_now();
            self.armed = None;
        }
    }
}
