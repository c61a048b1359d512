//! The machine of a platform.

use std::sync::Arc;

use super::junctions::CLASSES;
use super::platform::Routing;
use super::{Host, Reader, cluster};
use crate::error::SpecError;
use crate::{
    Clusters, Injection, LinkKind, ListedGraph, Machine, PerClass, Shape, Timing, Topology,
};

/// Bytes a second and seconds of messages within a host, unless a cluster gives them: SimGrid's own.
const LOOPBACK: (f64, f64) = (498e6, 15e-6);

/// The most hosts of one flat cluster whose routes are compared with the shortest ones, which they are.
const MOST_CHECKED: usize = 1 << 10;

impl Reader<'_> {
    pub(super) fn machine(mut self) -> Result<Machine, SpecError> {
        if self.hosts.is_empty() {
            return Err("no <host>, <cluster> or <cabinet>".to_owned().into());
        }
        let limiter = equal("limiter_link", &self.hosts, |host| host.limiter)?;
        let mut machine = match self.whole.take() {
            Some(machine) if machine.topology.ranks() as usize == self.hosts.len() => machine,
            Some(_) => {
                return Err("other hosts beside a cluster with a topology are not supported"
                    .to_owned()
                    .into());
            }
            None => self.network()?,
        };
        self.by_cores(&mut machine)?;
        if let Some(limiter) = limiter {
            let limited = Injection { rank: 0.0, node: 1.0 / limiter };
            let single = !matches!(machine.topology.shape(), Shape::Clustered(_));
            machine.timing.injection = if single { limited.of_single_ranks() } else { limited };
            machine.assume("limiter_link limits what a host sends, and what it receives");
        }
        let names: Vec<_> = self.without_effect.into_iter().collect();
        if !names.is_empty() {
            machine.assume(&format!("no effect: {}", names.join(", ")));
        }
        Ok(machine)
    }

    /// The machine whose network has the routes of the platform.
    fn network(&mut self) -> Result<Machine, SpecError> {
        let Self { platform, hosts, backbones, has_host_links, .. } = self;
        for zone in 0..platform.places.len() {
            if platform.places[zone].routing == Some(Routing::Star) {
                let [into, out] = platform.places[zone].ends;
                let link: Vec<usize> = backbones.get(&zone).copied().into_iter().collect();
                let links = platform.junctions.chain(into, &link, out);
                platform.stars.insert(zone, [links, Vec::new()]);
            }
        }
        platform.compose()?;
        let vertices: Vec<u32> =
            hosts.iter().map(|host| platform.places[host.place].ends[0]).collect();
        let mut joined = platform.junctions.merge(&vertices);
        let values = of_classes(&mut joined.links);
        let listed = ListedGraph {
            form: "network".to_owned(),
            nodes: hosts.len() as u32,
            switches: (joined.names.len() - hosts.len()) as u32,
            names: joined.names,
            classes: values.iter().map(|(class, _)| CLASSES[*class].to_owned()).collect(),
            links: joined.links,
        };
        let is_flat = platform.routes.is_empty() && !*has_host_links;
        let mut graph = listed.with_shortest_routes()?;
        if !is_flat || hosts.len() <= MOST_CHECKED {
            let mut edges = Vec::new();
            graph = graph.with_routes(|from, to, links| {
                edges.clear();
                let [from, to] = [from, to].map(|node| hosts[node as usize].place);
                platform.route(from, to, &mut edges)?;
                let [each, shared] = platform.junctions.narrowest(&edges);
                if each < shared {
                    let [from, to] = [from, to].map(|place| &platform.places[place].name);
                    return Err(format!(
                        "the slowest link from `{from}` to `{to}` is FATPIPE: a limit of each message is not supported"
                    ));
                }
                links.extend(edges.iter().filter_map(|edge| joined.places[*edge as usize]));
                Ok(())
            })?;
        }
        let mut machine = Machine { name: self.name.to_owned(), ..Machine::of(Arc::new(graph)) };
        let Timing { per_byte, per_hop, .. } = &machine.timing;
        let value = |class: usize, own: &PerClass, of: fn(&LinkKind) -> f64| {
            values[class].1.as_ref().map_or(own.of(class), of)
        };
        let each = |own: &PerClass, of: fn(&LinkKind) -> f64| {
            PerClass::each(
                &(0..values.len()).map(|class| value(class, own, of)).collect::<Vec<_>>(),
            )
        };
        let timing = Timing {
            per_byte: each(per_byte, |kind| kind.capacity.seconds_per_byte(0.0)),
            per_hop: each(per_hop, |kind| kind.latency.unwrap_or_default()),
            ..cluster::timing(self.name, 1.0, 0.0)
        };
        machine.timing = timing;
        Ok(machine)
    }

    /// Puts as many ranks on each host as it has cores, if that is asked for.
    fn by_cores(&self, machine: &mut Machine) -> Result<(), SpecError> {
        if !self.by_core {
            return Ok(());
        }
        if self.hosts.iter().all(|host| host.cores == 1) {
            return Err("--cores: each host has one core".to_owned().into());
        }
        let loopback = equal("loopback_bw or loopback_lat", &self.hosts, |host| host.loopback)?;
        let (bandwidth, latency) = loopback.unwrap_or(LOOPBACK);
        let groups: Vec<_> = self.hosts.iter().map(|host| (1, host.cores)).collect();
        let topology: Arc<dyn Topology> =
            Arc::new(Clusters::on(machine.topology.clone(), &groups)?);
        let classes = machine.topology.link_classes().len();
        let with = |inside: f64, own: &PerClass| {
            let own = (0..classes).map(|class| own.of(class));
            PerClass::each(&std::iter::once(inside).chain(own).collect::<Vec<_>>())
        };
        let timing = Timing {
            startup: with(latency, &machine.timing.startup),
            per_byte: with(1.0 / bandwidth, &machine.timing.per_byte),
            per_hop: with(0.0, &machine.timing.per_hop),
            ..machine.timing.clone()
        };
        *machine = Machine { name: self.name.to_owned(), timing, ..Machine::of(topology) };
        if loopback.is_none() {
            machine.assume("498 MB/s and 15 us within a host, as SimGrid has without a loopback");
        }
        Ok(())
    }
}

/// What all hosts have.
fn equal<T: PartialEq>(
    what: &str,
    hosts: &[Host],
    of: impl Fn(&Host) -> Option<T>,
) -> Result<Option<T>, String> {
    let first = of(&hosts[0]);
    if hosts.iter().any(|host| of(host) != first) {
        return Err(format!("{what} is not equal on all hosts: it is one value of a machine"));
    }
    Ok(first)
}

/// Leaves out classes without links, and gives links the values of their class where these are equal: the
/// place of each class left in [`CLASSES`], and its values.
fn of_classes(links: &mut [(u32, u32, LinkKind)]) -> Vec<(usize, Option<LinkKind>)> {
    let mut left = Vec::new();
    for class in 0..CLASSES.len() {
        let of_class = || links.iter().filter(|(.., kind)| kind.class == class as u32);
        let Some((.., first)) = of_class().next().copied() else { continue };
        let equal = of_class().all(|(.., kind)| *kind == first);
        left.push((class, equal.then_some(first)));
    }
    if left.is_empty() {
        left.push((0, None));
    }
    for (.., kind) in links {
        let own = left.iter().position(|(class, _)| *class == kind.class as usize);
        let own = own.expect("bug: a class without links");
        let equal = left[own].1.is_some();
        let class = own as u32;
        *kind = if equal { LinkKind::of_class(class) } else { LinkKind { class, ..*kind } };
    }
    left
}
