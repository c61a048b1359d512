//! Blocks spread in arrays arrive as the naive transpose has them, through any order of axes.

use std::sync::Arc;

use common::serving;
use ndarray::{ArrayD, ArrayViewD, ArrayViewMutD, Axis, IxDyn, Slice};
use proptest::prelude::*;
use topocoll::exec::{ExecError, Layout, Plan, SeededDriver, Views};
use topocoll::{Collective, Request, machine};

/// A view of blocks in a larger array, with each axis `steps` apart and in another order.
#[derive(Clone, Debug)]
struct Spread {
    order: Vec<usize>,
    steps: Vec<usize>,
}

impl Spread {
    /// The whole array that contains the view of `shape`.
    fn whole(&self, shape: &[usize]) -> ArrayD<u16> {
        let sides: Vec<_> = self.order.iter().map(|&u| shape[u] * self.steps[u]).collect();
        ArrayD::from_elem(IxDyn(&sides), 0xdead)
    }

    fn view<'a>(&self, whole: &'a ArrayD<u16>) -> ArrayViewD<'a, u16> {
        let mut view = whole.view();
        for (axis, &u) in self.order.iter().enumerate() {
            view.slice_axis_inplace(Axis(axis), Slice::new(0, None, self.steps[u] as isize));
        }
        let axes: Vec<_> =
            (0..4).map(|u| self.order.iter().position(|&v| v == u).unwrap()).collect();
        view.permuted_axes(IxDyn(&axes))
    }

    fn view_mut<'a>(&self, whole: &'a mut ArrayD<u16>) -> ArrayViewMutD<'a, u16> {
        let mut view = whole.view_mut();
        for (axis, &u) in self.order.iter().enumerate() {
            view.slice_axis_inplace(Axis(axis), Slice::new(0, None, self.steps[u] as isize));
        }
        let axes: Vec<_> =
            (0..4).map(|u| self.order.iter().position(|&v| v == u).unwrap()).collect();
        view.permuted_axes(IxDyn(&axes))
    }

    fn layout(&self, whole: &ArrayD<u16>) -> Layout {
        let view = self.view(whole);
        Layout::new(view.shape(), view.strides(), size_of::<u16>()).unwrap()
    }
}

fn spread() -> impl Strategy<Value = Spread> {
    let order = Just((0..4).collect::<Vec<_>>()).prop_shuffle();
    let steps = proptest::collection::vec(1usize..3, 4);
    (order, steps).prop_map(|(order, steps)| Spread { order, steps })
}

fn bytes(whole: &ArrayD<u16>) -> &[u8] {
    bytemuck::cast_slice(whole.as_slice().unwrap())
}

fn check(text: &str, block: [usize; 3], spreads: &[Spread; 2], in_place: bool, seed: u64) {
    let machine = machine(text).unwrap();
    let elements: usize = block.iter().product();
    let b = (elements * size_of::<u16>()) as u64;
    let n = machine.ranks() as usize;
    for (algorithm, problem, setting) in serving(&machine, 64) {
        let schedule = Request::new(&problem, &*machine.topology)
            .solve(algorithm, &setting)
            .map(|s| s.schedule)
            .unwrap();
        let plan = |rank| Plan::new(&schedule, rank).unwrap();
        let plans: Vec<_> = (0..problem.ranks)
            .map(|rank| plan(topocoll::Rank(rank)))
            .map(|plan| Arc::new(if in_place { plan.in_place() } else { plan }))
            .collect();
        let blocks = plans[0].input_blocks() as usize;
        let shape = |blocks| [blocks, block[0], block[1], block[2]];
        let wanted = |rank: usize, from: usize| match problem.operation {
            Collective::AllToAll => (from, rank),
            Collective::AllGather => (from, 0),
        };
        // The k-th element of the i-th block of a rank.
        let value = |rank: usize, i: usize, k: usize| (rank * 1000 + i * 50 + k) as u16;
        let mut inputs = vec![spreads[0].whole(&shape(blocks)); n];
        let mut outputs = vec![spreads[1].whole(&shape(n)); n];
        for rank in 0..n {
            let mut view = match in_place {
                false => spreads[0].view_mut(&mut inputs[rank]),
                true => spreads[1].view_mut(&mut outputs[rank]),
            };
            for i in 0..blocks {
                let place = if in_place && blocks == 1 { rank } else { i };
                let mut block = view.index_axis_mut(Axis(0), place);
                (0..).zip(&mut block).for_each(|(k, element)| *element = value(rank, i, k));
            }
        }
        let mut works: Vec<_> =
            plans.iter().map(|plan| vec![0; plan.workspace_bytes(b) as usize]).collect();
        let mut views: Vec<_> = (inputs.iter().zip(&mut outputs).zip(&mut works))
            .map(|((input, output), work)| {
                let layouts = (spreads[0].layout(input), spreads[1].layout(output));
                let output = bytemuck::cast_slice_mut(output.as_slice_mut().unwrap());
                match in_place {
                    false => Views::new((bytes(input), layouts.0), (output, layouts.1), work),
                    true => Views::in_place((output, layouts.1), work),
                }
                .unwrap()
            })
            .collect();
        SeededDriver::new(&plans).exchange_in(b, &mut views, seed).unwrap();
        for (rank, output) in outputs.iter().enumerate() {
            let view = spreads[1].view(output);
            for from in 0..n {
                let (sender, i) = wanted(rank, from);
                let expected = (0..elements).map(|k| value(sender, i, k));
                assert!(
                    view.index_axis(Axis(0), from).iter().copied().eq(expected),
                    "{schedule:?}"
                );
            }
            // No byte outside the view changes.
            let beside = output.iter().filter(|&&element| element == 0xdead).count();
            assert_eq!(beside, output.len() - n * elements, "{schedule:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn views_exchange_as_the_transpose(
        text in prop_oneof![Just("full:5"), Just("torus:4x2"), Just("mesh:2x4"), Just("cluster:1,2,3")],
        block in [1usize..4, 1usize..4, 1usize..5],
        spreads in [spread(), spread()],
        in_place: bool,
        seed in any::<u64>(),
    ) {
        check(text, block, &spreads, in_place, seed);
    }
}

#[test]
fn invalid_views_are_refused() {
    let error = |shape: &[usize], strides: &[isize]| {
        Layout::new(shape, strides, 4).unwrap_err().to_string()
    };
    assert_eq!(
        error(&[2, 3], &[3, -1]),
        "shape [2, 3] with strides [3, -1]: blocks need no negative stride"
    );
    assert!(
        error(&[], &[])
            .ends_with("blocks need a first axis of blocks, and a stride for every axis")
    );
    assert!(error(&[2], &[1, 1]).contains("a stride for every axis"));
    assert!(error(&[usize::MAX, 2], &[1, 1]).ends_with("fewer than 2^63 bytes"));
    assert!(error(&[2, 2], &[isize::MAX, 1]).ends_with("fewer than 2^63 bytes"));

    let rows = || Layout::new(&[2, 3], &[3, 1], 4).unwrap();
    let one = || Layout::new(&[2, 3], &[0, 1], 4).unwrap();
    let (input, mut output, mut work) = ([0; 24], [0; 24], [0; 64]);
    let refused = Views::new((&input[..23], rows()), (&mut output, rows()), &mut work).unwrap_err();
    let expected =
        "the input view spans 24 bytes of a buffer of 23; it needs to end within its buffer";
    assert_eq!(refused.to_string(), expected);
    let refused = Views::new((&input, one()), (&mut output, one()), &mut work).unwrap_err();
    assert!(matches!(refused, ExecError::View { buffer: "output", .. }), "{refused}");
    // Blocks of another size than the exchange's.
    let machine = machine("full:2").unwrap();
    let (algorithm, problem, setting) = serving(&machine, 16).remove(0);
    let schedule = Request::new(&problem, &*machine.topology)
        .solve(algorithm, &setting)
        .map(|s| s.schedule)
        .unwrap();
    let plan = Arc::new(Plan::new(&schedule, topocoll::Rank(1)).unwrap());
    let views = Views::new((&input, rows()), (&mut output, rows()), &mut work).unwrap();
    let error = topocoll::exec::Endpoint::new(plan, 16u64).check(&views).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rank 1: the input's blocks have 12 bytes, and the exchange's 16"
    );
}
