//! What a planner keeps between requests.

use std::sync::{Arc, Barrier};

use topocoll::{
    Catalogue, Collective, Grid, Planner, Problem, Request, Ties, Topology, spec::parse_short_form,
};

fn request<'r>(planner: &'r Planner, topology: &'r dyn Topology) -> Request<'r> {
    let problem = Problem::new(Collective::AllToAll, topology.ranks(), 1, 1).unwrap();
    Request::new(&problem, topology).with(planner)
}

#[test]
fn different_machines_never_share_a_value() {
    let planner = Planner::new(Catalogue::standard());
    let forms = "full:16 torus:16 mesh:16 torus:4x4 torus:2x8 torus:8x2 mesh:4x4 torus:1x16 \
                 torus:16x1 grid:4~x4 cluster:4*4 cluster:2*8 cluster:4,12 cluster:12,4 \
                 torus:2x2*4 mesh:2x2*4 hypercube:4 hypercube:4 torus:4x4/0,0+1 torus:4x4/0,0+1 \
                 fat-tree:4,2,2 torus:2x4/0,0+1*2 torus:2x4/0,0+1*2";
    let mut machines: Vec<_> =
        forms.split_whitespace().map(|form| parse_short_form(form).unwrap()).collect();
    machines.push(Arc::new(Grid::torus(&[4, 4]).unwrap().with_ties(Ties::Balanced)));
    let value = |machine: &dyn Topology, new| *request(&planner, machine).kept("", || new);
    for (new, machine) in (0..).zip(&machines) {
        assert_eq!(value(&**machine, new), new, "{}", machine.short_form());
    }
    for (old, machine) in (0..).zip(&machines) {
        assert_eq!(value(&**machine, 99), old, "{}", machine.short_form());
    }
    assert_eq!(value(&*parse_short_form("torus:4x4").unwrap(), 99), 3);
}

#[test]
fn the_latest_used_values_are_kept() {
    // Of large machines few values are kept, of small ones as many as searches of all settings make.
    for (ranks, kept) in [(1 << 20, 64), (4, 1024)] {
        let planner = Planner::new(Catalogue::standard());
        let grid = Grid::torus(&[ranks]).unwrap();
        let request = request(&planner, &grid);
        let ask = |of: usize, new: usize| *request.kept(of.to_string(), || new);
        let many = 2 * kept;
        for new in 0..many {
            assert_eq!([ask(new, new), ask(0, many)], [new, 0]);
        }
        // The first is the latest, and before it come the last.
        assert_eq!(ask(many - kept + 1, many), many - kept + 1, "{ranks}");
        assert_eq!(ask(many - kept, many), many, "{ranks}");
    }
}

#[test]
fn threads_compute_at_the_same_time_and_get_one_value() {
    let (planner, grid) = (Planner::new(Catalogue::standard()), Grid::torus(&[4]).unwrap());
    let (request, both) = (request(&planner, &grid), Barrier::new(2));
    let ask = |own: u32| {
        request.kept("one", || {
            both.wait();
            *request.kept(own.to_string(), || own)
        })
    };
    let found = std::thread::scope(|scope| {
        let other = scope.spawn(|| ask(1));
        [ask(2), other.join().unwrap()]
    });
    assert!(Arc::ptr_eq(&found[0], &found[1]));
}
