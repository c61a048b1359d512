//! The routers of a network: one at each node and switch.
//!
//! The inputs of a router are the links into it and, at a node, the ports by which its ranks inject;
//! its outputs are the links out of it, and the ports by which its ranks eject. Both are numbered
//! router by router, ports last.

use std::ops::Range;

use topocoll_topology::{Link, LinkId, Machine, Shape};

/// The link of a port, and the ends of a number without a link.
const NONE: u32 = u32::MAX;

pub(super) struct Routers {
    /// The nodes, which are the first routers, and the ports of each.
    nodes: u32,
    ports: u32,
    /// By router, its first input and its first output; one more entry at the end.
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    /// By input, its router.
    of_input: Vec<u32>,
    /// By input and by output, its link.
    link_into: Vec<u32>,
    link_out: Vec<u32>,
    /// By link, the output that it leaves and the input that it enters.
    ends: Vec<[u32; 2]>,
}

/// The most inputs of a router.
pub(crate) fn most_inputs(machine: &Machine) -> u64 {
    let ports = u64::from(machine.ports.node);
    match machine.topology.network() {
        Shape::Grid(grid) => 2 * grid.sides().len() as u64 + ports,
        Shape::Graph(graph) => {
            let mut into = vec![0; graph.vertices() as usize];
            into[..machine.topology.nodes() as usize].fill(ports);
            let links = (0..graph.vertices()).flat_map(|vertex| graph.leaving(vertex));
            links.for_each(|(_, to)| into[to as usize] += 1);
            into.into_iter().max().unwrap_or(0)
        }
        Shape::Complete | Shape::Clustered(_) => ports,
    }
}

impl Routers {
    /// Bytes for an input and an output.
    pub(super) const BYTES: usize = 7 * size_of::<u32>();

    /// Inputs of all routers, and as many outputs.
    pub(super) fn all_inputs(machine: &Machine) -> u128 {
        let ports = u128::from(machine.topology.nodes()) * u128::from(machine.ports.node);
        u128::from(machine.topology.link_numbers()) + ports
    }

    pub(super) fn new(machine: &Machine) -> Self {
        let (topology, numbers) = (&machine.topology, machine.topology.link_numbers());
        let nodes = topology.nodes() as usize;
        let mut links: Vec<(Link, u32)> = (0..numbers)
            .filter_map(|link| Some((topology.link(LinkId(link))?, link as u32)))
            .collect();
        let vertices = links.iter().map(|(link, _)| link.from.max(link.to) as usize + 1);
        let routers = vertices.fold(nodes, usize::max);
        let places = |vertex: fn(&Link) -> u32| {
            let mut first = vec![0; routers + 1];
            links.iter().for_each(|(link, _)| first[vertex(link) as usize + 1] += 1);
            first[1..=nodes].iter_mut().for_each(|places| *places += machine.ports.node);
            (1..=routers).for_each(|router| first[router] += first[router - 1]);
            first
        };
        let (inputs, outputs) = (places(|link| link.to), places(|link| link.from));
        let mut ends = vec![[NONE; 2]; numbers as usize];
        let mut link_into = vec![NONE; inputs[routers] as usize];
        let mut link_out = vec![NONE; outputs[routers] as usize];
        let (mut into, mut out) = (inputs.clone(), outputs.clone());
        let take = |next: &mut [u32], vertex: u32, of: &mut [u32], link| {
            let place = next[vertex as usize];
            next[vertex as usize] += 1;
            of[place as usize] = link;
            place
        };
        // Inputs in the order of dimensions, upward links first; elsewhere in that of links.
        links.sort_by_key(|(link, _)| (link.class, -link.direction));
        for &(Link { from, to, .. }, link) in &links {
            let output = take(&mut out, from, &mut link_out, link);
            ends[link as usize] = [output, take(&mut into, to, &mut link_into, link)];
        }
        let inputs_of = |router| inputs[router + 1] - inputs[router];
        let of_input = (0..routers)
            .flat_map(|router| std::iter::repeat_n(router as u32, inputs_of(router) as usize))
            .collect();
        let (nodes, ports) = (nodes as u32, machine.ports.node);
        Self { nodes, ports, inputs, outputs, of_input, link_into, link_out, ends }
    }

    pub(super) fn count(&self) -> usize {
        self.inputs.len() - 1
    }

    /// Inputs and outputs of all routers.
    pub(super) fn inputs_and_outputs(&self) -> [usize; 2] {
        [self.link_into.len(), self.link_out.len()]
    }

    /// The inputs of a router.
    pub(super) fn inputs(&self, router: u32) -> Range<u32> {
        self.inputs[router as usize]..self.inputs[router as usize + 1]
    }

    /// The outputs of a router.
    pub(super) fn outputs(&self, router: u32) -> Range<u32> {
        self.outputs[router as usize]..self.outputs[router as usize + 1]
    }

    /// The first port at which a router ejects, among its outputs.
    pub(super) fn first_port(&self, router: u32) -> u32 {
        let ports = if router < self.nodes { self.ports } else { 0 };
        self.outputs(router).len() as u32 - ports
    }

    /// The input at which a port of a node injects.
    pub(super) fn injects(&self, node: u32, port: u32) -> u32 {
        self.inputs[node as usize + 1] - self.ports + port
    }

    /// The router of an input.
    pub(super) fn of_input(&self, input: u32) -> u32 {
        self.of_input[input as usize]
    }

    /// The output at the other end of the link into an input; `None` of a port.
    pub(super) fn before(&self, input: u32) -> Option<u32> {
        let link = self.link_into[input as usize];
        (link != NONE).then(|| self.ends[link as usize][0])
    }

    /// The link of an output; `None` of a port.
    pub(super) fn link(&self, output: u32) -> Option<u32> {
        Some(self.link_out[output as usize]).filter(|&link| link != NONE)
    }

    /// The output that a link leaves and the input that it enters.
    pub(super) fn ends(&self, link: u32) -> [u32; 2] {
        self.ends[link as usize]
    }
}
