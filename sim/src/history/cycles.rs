//! Finds circles in the graph, by a table of searches, and tells what each is.
//!
//! # Protocol
//! All strongly connected components are found first; with none, the history is in order. Otherwise each
//! search of the table, within them: components of its own view, then the shortest way back for edges of
//! the kind that must be on the circle. What a circle is called follows from its edges alone. Strict runs
//! search twice, without and with edges of time; a circle of time counts only as such.
//!
//! Whether there is a circle of each kind that a level forbids is decided in linear time; only how short
//! the one is that is shown depends on the bounds below.

use super::Order;
use super::anomaly::Anomaly;
use super::components::{Anti, NOWHERE, State, View};
use super::graph::{ANTI, Edge, Graph, Kind, Kinds, Node, TIME};
use super::report::{Findings, Step};
use std::collections::{HashMap, VecDeque};

/// One way to look for circles.
struct Search {
    /// What must be on the circle.
    begin: Kinds,
    /// What else may be on it.
    follow: Kinds,
    anti: Anti,
    /// Whether the way back, too, keeps to the view, or does without anti-dependencies.
    back: Back,
}

enum Back {
    AsView,
    WithoutAnti,
}

const WW: Kinds = Kinds::of(&[Kind::Ww]);
const WR: Kinds = Kinds::of(&[Kind::Wr]);
const DEPENDENCIES: Kinds = Kinds::of(&[Kind::Ww, Kind::Wr]);
const RW: Kinds = Kinds::of(&[Kind::Rw]);
const PREDICATE_RW: Kinds = Kinds::of(&[Kind::PredicateRw]);

/// In this order: G0, G1c, G-single, long fork, G2-item, G2.
const SEARCHES: [Search; 6] = [
    Search {
        begin: WW,
        follow: WW,
        anti: Anti::Free,
        back: Back::AsView,
    },
    Search {
        begin: WR,
        follow: DEPENDENCIES,
        anti: Anti::Free,
        back: Back::AsView,
    },
    Search {
        begin: ANTI,
        follow: DEPENDENCIES.and(ANTI),
        anti: Anti::Apart,
        back: Back::WithoutAnti,
    },
    Search {
        begin: ANTI,
        follow: DEPENDENCIES.and(ANTI),
        anti: Anti::Apart,
        back: Back::AsView,
    },
    Search {
        begin: RW,
        follow: DEPENDENCIES.and(RW),
        anti: Anti::Free,
        back: Back::AsView,
    },
    Search {
        begin: PREDICATE_RW,
        follow: DEPENDENCIES.and(ANTI),
        anti: Anti::Free,
        back: Back::AsView,
    },
];

/// Beginnings that a search tries at most, and states that it looks at in all; the first is always
/// followed to its end.
const TRIES_MAX: usize = 4096;
const STATES_MAX: usize = 2_000_000;

/// Finds circles of every kind that there is.
pub(super) fn search(graph: &Graph, order: Order) -> Findings {
    let mut findings = Findings::default();
    let times: &[Kinds] = match order {
        Order::Any => &[Kinds::of(&[])],
        Order::Strict => &[Kinds::of(&[]), TIME],
    };
    for time in times {
        let all = View {
            graph,
            kinds: DEPENDENCIES.and(ANTI).and(*time),
            anti: Anti::Free,
            regions: None,
        };
        let regions: Vec<u32> = all.components().into_iter().step_by(2).collect();
        if regions.iter().all(|region| *region == NOWHERE) {
            continue;
        }
        for search in &SEARCHES {
            let kinds = search.follow.and(*time);
            let regions = Some(&regions[..]);
            let view = View {
                graph,
                kinds,
                anti: search.anti,
                regions,
            };
            run(&view, search, &mut findings);
        }
    }
    findings
}

fn run(view: &View, search: &Search, findings: &mut Findings) {
    let components = view.components();
    let back = match search.back {
        Back::AsView => *view,
        Back::WithoutAnti => View {
            kinds: view.kinds.without(ANTI),
            ..*view
        },
    };
    let (mut tries, mut states) = (0, 0);
    for node in 0..view.graph.nodes() {
        let start = view.start(Node(node));
        if components[start as usize] == NOWHERE {
            continue;
        }
        for edge in view
            .edges(start)
            .iter()
            .filter(|edge| search.begin.has(edge.kind))
        {
            let Some(first) = view.follow(start, edge) else {
                continue;
            };
            if components[first as usize] != components[start as usize] {
                continue;
            }
            if tries >= TRIES_MAX || states >= STATES_MAX {
                return;
            }
            tries += 1;
            if let Some(circle) = way_back(&back, start, edge, first, &mut states) {
                report(view.graph, &circle, findings);
            }
        }
    }
}

/// The shortest circle that begins with `edge`: each edge with the node that it leaves.
fn way_back(
    view: &View,
    start: State,
    edge: &Edge,
    first: State,
    states: &mut usize,
) -> Option<Vec<(Node, Edge)>> {
    let mut came_by: HashMap<State, (usize, State, Edge)> = HashMap::new();
    came_by.insert(first, (1, start, *edge));
    // Edges from relays cost nothing, so that ways are compared by what people see of them.
    let mut queue = VecDeque::from([first]);
    while let Some(state) = queue.pop_front() {
        *states += 1;
        if state == start {
            let mut circle = Vec::new();
            let mut at = state;
            loop {
                let (_, from, edge) = came_by[&at];
                circle.push((view.node(from), edge));
                at = from;
                if at == start {
                    break;
                }
            }
            circle.reverse();
            return Some(circle);
        }
        let length = came_by[&state].0;
        for edge in view.edges(state) {
            let Some(next) = view.follow(state, edge) else {
                continue;
            };
            let length = length + usize::from(edge.kind != Kind::Through);
            if came_by.get(&next).is_some_and(|known| known.0 <= length) {
                continue;
            }
            came_by.insert(next, (length, state, *edge));
            match edge.kind {
                Kind::Through => queue.push_front(next),
                _ => queue.push_back(next),
            }
        }
    }
    None
}

/// Files a circle under its name.
fn report(graph: &Graph, circle: &[(Node, Edge)], findings: &mut Findings) {
    let steps = steps(graph, circle);
    let kinds: Vec<Kind> = steps.iter().map(|step| step.kind).collect();
    let timed = kinds.iter().any(|kind| TIME.has(*kind));
    findings.add_cycle(name(&kinds), timed, steps);
}

/// The circle without its relays.
fn steps(graph: &Graph, circle: &[(Node, Edge)]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (from, edge) in circle {
        if let Some(txn) = graph.transaction(*from) {
            steps.push(Step {
                from: txn,
                kind: edge.kind,
                key: edge.key,
            });
        }
    }
    steps
}

/// What a circle of such edges is called.
fn name(kinds: &[Kind]) -> Anomaly {
    let anti = kinds.iter().filter(|kind| ANTI.has(**kind)).count();
    let follows = kinds.iter().cycle().skip(1);
    let side_by_side = kinds
        .iter()
        .zip(follows)
        .any(|(a, b)| ANTI.has(*a) && ANTI.has(*b));
    match anti {
        0 if kinds.contains(&Kind::Wr) => Anomaly::G1c,
        0 => Anomaly::G0,
        1 => Anomaly::GSingle,
        _ if !side_by_side => Anomaly::LongFork,
        _ if kinds.contains(&Kind::PredicateRw) => Anomaly::G2,
        _ => Anomaly::G2Item,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::graph::Builder;
    use crate::history::transactions::TxnId;

    fn found(edges: &[(u32, u32, Kind)], order: Order) -> Vec<(Anomaly, bool)> {
        let nodes = edges
            .iter()
            .map(|(from, to, _)| from.max(to) + 1)
            .max()
            .unwrap();
        let mut graph = Builder::new(nodes as usize);
        for (from, to, kind) in edges {
            graph.add(TxnId(*from), TxnId(*to), *kind, None);
        }
        search(&graph.build(), order).classes().collect()
    }

    #[test]
    fn circles_are_named_by_their_edges() {
        use Kind::*;
        type Edges<'a> = &'a [(u32, u32, Kind)];
        let cases: [(Edges, Anomaly); 7] = [
            (&[(0, 1, Ww), (1, 0, Ww)], Anomaly::G0),
            (&[(0, 1, Ww), (1, 2, Wr), (2, 0, Ww)], Anomaly::G1c),
            (&[(0, 1, Rw), (1, 2, Wr), (2, 0, Ww)], Anomaly::GSingle),
            (&[(0, 1, PredicateRw), (1, 0, Wr)], Anomaly::GSingle),
            (
                &[(0, 1, Rw), (1, 2, Wr), (2, 3, Rw), (3, 0, Wr)],
                Anomaly::LongFork,
            ),
            (&[(0, 1, Rw), (1, 0, Rw)], Anomaly::G2Item),
            (&[(0, 1, Rw), (1, 2, PredicateRw), (2, 0, Wr)], Anomaly::G2),
        ];
        for (edges, expected) in cases {
            assert_eq!(found(edges, Order::Any), [(expected, false)]);
        }
    }

    #[test]
    fn a_graph_without_circles_has_no_anomaly() {
        use Kind::*;
        let edges = [
            (0, 1, Ww),
            (1, 2, Rw),
            (0, 2, Wr),
            (2, 3, PredicateRw),
            (0, 3, RealTime),
        ];
        assert_eq!(found(&edges, Order::Strict), []);
    }

    #[test]
    fn time_counts_only_in_strict_order() {
        let edges = [(0, 1, Kind::Rw), (1, 0, Kind::RealTime)];
        assert_eq!(found(&edges, Order::Any), []);
        assert_eq!(found(&edges, Order::Strict), [(Anomaly::GSingle, true)]);
    }

    #[test]
    fn relays_lead_on_and_are_not_told() {
        let mut graph = Builder::new(2);
        let relay = graph.relay();
        graph.add(TxnId(0), relay, Kind::Rw, None);
        graph.add(relay, TxnId(1), Kind::Through, None);
        graph.add(TxnId(1), TxnId(0), Kind::Rw, None);
        let found: Vec<_> = search(&graph.build(), Order::Any).classes().collect();
        assert_eq!(found, [(Anomaly::G2Item, false)]);
    }
}
