//! SimGrid platforms: clusters, cabinets, and zones of hosts with their routes.
//!
//! Links have no ends in SimGrid: routes list them, and [`junctions`] finds a graph whose routes have the
//! same links. Startup, rearrangement and barriers take no time. A cluster that is a torus, a fat tree or a
//! dragonfly must be the only one.

mod cluster;
mod junctions;
mod machine;
mod platform;
mod quantities;

use std::collections::{BTreeSet, HashMap};

use super::MAX_NODES;
use crate::Machine;
use crate::error::SpecError;
use crate::number::number;
use crate::reading::Reading;
use crate::xml::{Element, elements};
use junctions::Carries;
use platform::{Platform, ROOT, Routing};
use quantities::{bandwidth, radical, seconds};

/// Elements that say nothing of the network.
const OTHERS: &str =
    "config prop model_prop trace trace_connect disk storage storage_type mount actor argument";

/// What is read of a platform.
#[derive(Default)]
struct Reader<'a> {
    platform: Platform,
    /// By name, the link up and the link down: one if they share its bandwidth.
    links: HashMap<String, [usize; 2]>,
    hosts: Vec<Host>,
    /// By zone of a cluster, its backbone.
    backbones: HashMap<usize, usize>,
    /// Zones around the next element, each with its depth.
    zones: Vec<(usize, usize)>,
    /// Routes and links of hosts: they may name what follows.
    later: Vec<Later>,
    /// The only machine, if a cluster is one by itself.
    whole: Option<Machine>,
    without_effect: BTreeSet<String>,
    name: &'a str,
    by_core: bool,
    /// Whether hosts are joined to switches by links of any name.
    has_host_links: bool,
}

/// Why hosts around a switch are refused.
const NOT_STAR: &str = "hosts around a switch are in a zone whose routing is Cluster";

/// An element, the zone that it is in, and the links that it lists, each with its direction.
struct Later {
    element: Element,
    zone: usize,
    links: Vec<(String, Option<String>)>,
}

/// A host.
#[derive(Clone, Copy)]
struct Host {
    place: usize,
    cores: u32,
    /// Bytes a second of all that it sends and receives.
    limiter: Option<f64>,
    /// Bytes a second and seconds of messages within it.
    loopback: Option<(f64, f64)>,
}

pub(super) fn read(name: &str, text: &str, reading: &Reading) -> Result<Machine, SpecError> {
    let mut reader = Reader { name, by_core: reading.cores, ..Reader::default() };
    reader.platform.add("", ROOT, Some(Routing::Full))?;
    elements(text, |element, depth| {
        reader.element(element, depth).map_err(|message| element.wrong(message))
    })?;
    for later in std::mem::take(&mut reader.later) {
        reader.late(&later).map_err(|message| later.element.wrong(message))?;
    }
    reader.machine()
}

impl Reader<'_> {
    fn element(&mut self, element: &Element, depth: usize) -> Result<(), String> {
        while self.zones.last().is_some_and(|(_, around)| *around >= depth) {
            self.zones.pop();
        }
        let zone = self.zones.last().map_or(ROOT, |(zone, _)| *zone);
        let id = || element.get("id").ok_or_else(|| "no id".to_owned());
        let known: &[&str] = match element.name.as_str() {
            "zone" | "AS" => {
                let routing = match element.get("routing").unwrap_or("Full") {
                    "Full" | "None" => Routing::Full,
                    "Floyd" | "Dijkstra" | "DijkstraCache" => Routing::Composed,
                    "Cluster" => Routing::Star,
                    other => return Err(format!("routing {other} is not supported")),
                };
                let inner = self.zone(id()?, zone, routing)?;
                self.zones.push((inner, depth));
                &["id", "routing"]
            }
            "host" => {
                let place = self.platform.add(id()?, zone, None)?;
                self.host(Host { place, cores: cores(element)?, limiter: None, loopback: None })?;
                &["id"]
            }
            "router" => {
                let place = self.platform.add(id()?, zone, None)?;
                self.gateway(place);
                &["id"]
            }
            "link" => {
                let policy = element.get("sharing_policy").unwrap_or("SHARED");
                self.link(element, id()?, ["bandwidth", "latency"], policy)?;
                &["id", "bandwidth", "latency", "sharing_policy"]
            }
            "backbone" => {
                let policy = element.get("sharing_policy").unwrap_or("SHARED");
                let [link, _] = self.link(element, id()?, ["bandwidth", "latency"], policy)?;
                self.backbones.insert(zone, link);
                &["id", "bandwidth", "latency", "sharing_policy"]
            }
            "cluster" => {
                self.cluster(element, zone)?;
                &[
                    "id",
                    "prefix",
                    "suffix",
                    "radical",
                    "bw",
                    "lat",
                    "sharing_policy",
                    "bb_bw",
                    "bb_lat",
                    "bb_sharing_policy",
                    "limiter_link",
                    "topology",
                    "topo_parameters",
                    "router_id",
                ]
            }
            "cabinet" => {
                self.cabinet(element, zone)?;
                &["id", "prefix", "suffix", "radical", "bw", "lat"]
            }
            "host_link" | "route" | "zoneRoute" | "ASroute" => {
                self.later.push(Later { element: element.clone(), zone, links: Vec::new() });
                return Ok(());
            }
            "platform" => &["version"],
            "link_ctn" | "link:ctn" => {
                let route = self.later.last_mut().ok_or("a link of no route")?;
                route.links.push((id()?.to_owned(), element.get("direction").map(str::to_owned)));
                return Ok(());
            }
            other if OTHERS.split(' ').any(|known| known == other) => {
                self.without_effect.insert(format!("<{other}>"));
                return Ok(());
            }
            other => return Err(format!("<{other}> is not supported")),
        };
        let others = element.names().filter(|name| !known.contains(name));
        let others =
            others.filter(|name| !self.by_core || *name != "core" && !name.starts_with("loopback"));
        self.without_effect.extend(others.map(str::to_owned));
        Ok(())
    }

    fn zone(&mut self, name: &str, around: usize, routing: Routing) -> Result<usize, String> {
        if self.platform.places[around].routing == Some(Routing::Star) {
            return Err("a zone within a zone of hosts around a switch".to_owned());
        }
        let zone = self.platform.add(name, around, Some(routing))?;
        if routing == Routing::Star {
            self.platform.places[zone].ends[1] =
                self.platform.junctions.vertex(&format!("{name} out"));
        }
        Ok(zone)
    }

    fn host(&mut self, host: Host) -> Result<(), String> {
        if self.hosts.len() == MAX_NODES {
            return Err(format!("more than {MAX_NODES} hosts"));
        }
        self.hosts.push(host);
        Ok(())
    }

    /// Makes a router of hosts around a switch the way in and out.
    fn gateway(&mut self, place: usize) {
        let zone = self.platform.places[place].within;
        if self.platform.places[zone].routing == Some(Routing::Star) {
            self.platform.places[place].ends = self.platform.places[zone].ends;
            self.platform.stars.insert(place, [Vec::new(), Vec::new()]);
        }
    }

    /// Reads a link, one in each direction if its policy says so.
    fn link(
        &mut self,
        element: &Element,
        name: &str,
        [of, latency]: [&str; 2],
        policy: &str,
    ) -> Result<[usize; 2], String> {
        let of = element.get(of).ok_or_else(|| format!("no {of}"))?;
        let latency = element.get(latency).map_or(Ok(0.0), seconds)?;
        self.add_link(name, Carries { bandwidth: bandwidth(of)?, latency, each: false }, policy)
    }

    fn add_link(
        &mut self,
        name: &str,
        carries: Carries,
        policy: &str,
    ) -> Result<[usize; 2], String> {
        let junctions = &mut self.platform.junctions;
        let ends = match policy {
            "SPLITDUPLEX" | "FULLDUPLEX" => {
                let ends =
                    ["UP", "DOWN"].map(|way| junctions.resource(&format!("{name}_{way}"), carries));
                for (way, end) in ["UP", "DOWN"].into_iter().zip(ends) {
                    self.links.insert(format!("{name}_{way}"), [end; 2]);
                }
                ends
            }
            "SHARED" => [junctions.resource(name, carries); 2],
            "FATPIPE" => [junctions.resource(name, Carries { each: true, ..carries }); 2],
            other => return Err(format!("sharing_policy {other} is not supported")),
        };
        match self.links.insert(name.to_owned(), ends) {
            None => Ok(ends),
            Some(_) => Err(format!("link `{name}` is declared twice")),
        }
    }

    /// A flat cluster: hosts around a switch.
    fn cluster(&mut self, element: &Element, around: usize) -> Result<(), String> {
        let given = |name: &str| element.get(name).ok_or_else(|| format!("no {name}"));
        let loopback = element.get("loopback_bw").map(bandwidth).transpose()?;
        let latency = element.get("loopback_lat").map_or(Ok(0.0), seconds)?;
        let mut host = Host {
            place: ROOT,
            cores: cores(element)?,
            limiter: element.get("limiter_link").map(bandwidth).transpose()?,
            loopback: loopback.map(|loopback| (loopback, latency)),
        };
        let numbers = radical(given("radical")?)?;
        if let Some(machine) = cluster::read(self.name, element, numbers.len())? {
            self.whole = Some(machine);
            return numbers.iter().try_for_each(|_| self.host(host));
        }
        let id = given("id")?;
        let zone = self.zone(id, around, Routing::Star)?;
        let (prefix, suffix) =
            (element.get("prefix").unwrap_or_default(), element.get("suffix").unwrap_or_default());
        let router = format!("{prefix}{id}_router{suffix}");
        let router = element.get("router_id").filter(|id| !id.is_empty()).unwrap_or(&router);
        let router = self.platform.add(router, zone, None)?;
        self.gateway(router);
        if element.get("bb_bw").is_some() {
            let policy = element.get("bb_sharing_policy").unwrap_or("SHARED");
            let [link, _] =
                self.link(element, &format!("{id}_backbone"), ["bb_bw", "bb_lat"], policy)?;
            self.backbones.insert(zone, link);
        }
        let carries = Carries {
            bandwidth: bandwidth(given("bw")?)?,
            latency: seconds(given("lat")?)?,
            each: false,
        };
        let policy = element.get("sharing_policy").unwrap_or("SPLITDUPLEX");
        for number in numbers {
            host.place = self.platform.add(&format!("{prefix}{number}{suffix}"), zone, None)?;
            self.host(host)?;
            let links = self.add_link(&format!("{id}_link_{number}"), carries, policy)?;
            self.attach(host.place, links);
        }
        Ok(())
    }

    /// Hosts around the switch of their zone.
    fn cabinet(&mut self, element: &Element, zone: usize) -> Result<(), String> {
        let given = |name: &str| element.get(name).ok_or_else(|| format!("no {name}"));
        if self.platform.places[zone].routing != Some(Routing::Star) {
            return Err(NOT_STAR.to_owned());
        }
        let carries = Carries {
            bandwidth: bandwidth(given("bw")?)?,
            latency: seconds(given("lat")?)?,
            each: false,
        };
        let (prefix, suffix) = (given("prefix")?, given("suffix")?);
        for number in radical(given("radical")?)? {
            let name = format!("{prefix}{number}{suffix}");
            let place = self.platform.add(&name, zone, None)?;
            self.host(Host { place, cores: 1, limiter: None, loopback: None })?;
            let links = self.add_link(&format!("link_{name}"), carries, "SPLITDUPLEX")?;
            self.attach(place, links);
        }
        Ok(())
    }

    /// Joins a host to its switch by a link up and a link down.
    fn attach(&mut self, place: usize, [up, down]: [usize; 2]) {
        let Platform { places, junctions, stars, .. } = &mut self.platform;
        let [into, out] = places[places[place].within].ends;
        let links = [
            junctions.chain(places[place].ends[1], &[up], into),
            junctions.chain(out, &[down], places[place].ends[0]),
        ];
        stars.insert(place, links);
    }

    /// Reads what may name elements that follow it.
    fn late(&mut self, later: &Later) -> Result<(), String> {
        let Later { element, zone, links } = later;
        let zone = *zone;
        let given = |name: &str| element.get(name).ok_or_else(|| format!("no {name}"));
        let link = |name: &str| {
            self.links.get(name).copied().ok_or_else(|| format!("link `{name}` is not declared"))
        };
        match element.name.as_str() {
            "host_link" if self.platform.places[zone].routing != Some(Routing::Star) => {
                Err(NOT_STAR.to_owned())
            }
            "host_link" => {
                let place = self.platform.find(given("id")?)?;
                let [up, down] = [link(given("up")?)?, link(given("down")?)?];
                self.attach(place, [up[0], down[1]]);
                self.has_host_links = true;
                Ok(())
            }
            _ => {
                let [from, to] =
                    [self.platform.find(given("src")?)?, self.platform.find(given("dst")?)?];
                if from == to {
                    self.without_effect.insert("routes to oneself".to_owned());
                    return Ok(());
                }
                let of_zones = element.name != "route";
                let gateways = if of_zones {
                    [self.platform.find(given("gw_src")?)?, self.platform.find(given("gw_dst")?)?]
                } else {
                    [from, to]
                };
                for (place, gateway) in [from, to].into_iter().zip(gateways) {
                    let Platform { places, .. } = &self.platform;
                    let (name, gate) = (&places[place].name, &places[gateway].name);
                    if places[place].within != zone || place == ROOT {
                        return Err(format!("`{name}` is not in the zone of the route"));
                    }
                    if places[gateway].routing.is_some() || !self.platform.is_within(gateway, place)
                    {
                        return Err(format!("`{gate}` is not a host or router of `{name}`"));
                    }
                }
                let mut there = Vec::new();
                for (name, direction) in links {
                    let ends = link(name)?;
                    there.push(match direction.as_deref() {
                        Some("UP") => ends,
                        Some("DOWN") => [ends[1], ends[0]],
                        None | Some("NONE") if ends[0] == ends[1] => ends,
                        _ => {
                            return Err(format!(
                                "link `{name}` is SPLITDUPLEX: its direction is UP or DOWN"
                            ));
                        }
                    });
                }
                let one_way = |way: usize| there.iter().map(move |ends| ends[way]);
                let (out, back): (Vec<_>, Vec<_>) =
                    (one_way(0).collect(), one_way(1).rev().collect());
                self.platform.add_route([from, to], gateways, &out)?;
                match element.get("symmetrical").unwrap_or("YES") {
                    "YES" | "yes" | "1" | "true" => {
                        self.platform.add_route([to, from], [gateways[1], gateways[0]], &back)
                    }
                    "NO" | "no" | "0" | "false" => Ok(()),
                    other => Err(format!("symmetrical is `{other}`: it is YES or NO")),
                }
            }
        }
    }
}

fn cores(element: &Element) -> Result<u32, String> {
    element.get("core").map_or(Ok(1), |cores| number("core", cores))
}

#[cfg(test)]
mod tests;
