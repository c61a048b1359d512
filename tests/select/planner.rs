//! An algorithm of the caller's own as an inner exchange.

use std::sync::atomic::{AtomicU32, Ordering};

use common::{exchange, problem, with_ports};
use topocoll::{
    Algorithm, Catalogue, Collective, Info, NotApplicable, Parameters, Planner, Request, Solution,
    Values,
};

/// One of the standard algorithms under another name.
struct Own;

static OWN: Info = Info::new("own", "", "");
static SOLVED: [AtomicU32; 17] = [const { AtomicU32::new(0) }; 17];

impl Algorithm for Own {
    fn info(&self) -> &Info {
        &OWN
    }

    fn solve(&self, request: &Request<'_>, _: &Values<'_>) -> Result<Solution, NotApplicable> {
        SOLVED[request.problem.ranks as usize].fetch_add(1, Ordering::Relaxed);
        let standard = Catalogue::standard();
        let mut solution = request.solve(standard.find("direct")?, &Parameters::new())?;
        solution.schedule.origin.algorithm = "own".to_owned();
        solution.schedule.origin.parameters.clear();
        Ok(solution)
    }
}

#[test]
fn an_own_algorithm_is_an_inner_exchange() {
    let catalogue = Catalogue::standard().with(Own).unwrap();
    let planner = Planner::new(catalogue.clone());
    for (text, ranks, name, parameter) in [
        ("torus:8x4", 8, "product", "along"),
        ("torus:3x3*2", 9, "node-aware", "between"),
        ("torus:4x4/0,0+1", 16, "repair", "of"),
        ("mesh:8x12", 16, "coloured-rings", "inside"),
    ] {
        let machine = with_ports(text, 1);
        let problem = problem(&machine, Collective::AllToAll, 64);
        let exchange = exchange(&machine, &problem);
        let named = |inner: &str| {
            let mut named = Parameters::from([(parameter.to_owned(), inner.into())]);
            if parameter == "inside" {
                named.insert("landing".to_owned(), "windows".into());
                named.insert("classes".to_owned(), 2.into());
            }
            named
        };
        let refused = exchange.schedule(name, &named("own")).unwrap_err().to_string();
        assert!(refused.contains("unknown algorithm `own`"), "{refused}");

        let expected = exchange.schedule(name, &named("direct")).unwrap();
        let exchange = exchange.catalogue(&catalogue);
        let found = exchange.schedule(name, &named("own")).unwrap();
        assert_eq!(found.origin.parameters[parameter].to_string(), "own");
        assert!(exchange.verify(&found, None).unwrap().violation.is_none(), "{text}");
        let counts = [&found, &expected].map(|schedule| exchange.count(schedule).unwrap());
        assert_eq!(counts[0], counts[1], "{text}");
        let front = exchange.front(&[(name.to_owned(), named("own"))]).unwrap();
        assert!(!front.points.is_empty(), "{text}");

        // It is tried where the standard algorithms are.
        let solved = SOLVED[ranks].swap(0, Ordering::Relaxed);
        assert!(solved > 0, "{text}");
        let request = Request::new(&problem, &*machine.topology).with(&planner);
        let candidates = request.candidates(catalogue.find(name).unwrap()).unwrap();
        let is = |setting: &Parameters| setting.get(parameter) == Some(&"own".into());
        match name {
            // It does the same as another, or is not on the front of those without link contention; that is
            // looked for once.
            "product" | "repair" => {
                let once = SOLVED[ranks].load(Ordering::Relaxed);
                request.candidates(catalogue.find(name).unwrap()).unwrap();
                let again = SOLVED[ranks].load(Ordering::Relaxed);
                assert!(once > 0 && (name != "repair" || again == 1), "{text}");
            }
            _ => assert!(candidates.iter().any(is), "{text}"),
        }
    }
}
