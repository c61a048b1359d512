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

use super::{MAX_NODES, Source};
use crate::Machine;
use crate::error::SpecError;
use crate::number::number;
use crate::xml::{Element, each};
use junctions::Carries;
use platform::{Platform, ROOT, Routing};
use quantities::{bandwidth, radical, seconds};

/// Elements that are read, and their attributes that are.
const KNOWN: [(&str, &str); 11] = [
    ("platform", "version"),
    ("zone AS", "id routing"),
    ("host router", "id"),
    ("link backbone", "id bandwidth latency sharing_policy"),
    (
        "cluster",
        "id prefix suffix radical bw lat sharing_policy bb_bw bb_lat bb_sharing_policy limiter_link topology \
         topo_parameters router_id",
    ),
    ("cabinet", "id prefix suffix radical bw lat"),
    ("host_link", "id up down"),
    ("route", "src dst symmetrical"),
    ("zoneRoute ASroute", "src dst gw_src gw_dst symmetrical"),
    ("link_ctn link:ctn", "id direction"),
    // These say nothing of the network.
    (
        "config prop model_prop trace trace_connect disk storage storage_type mount actor argument",
        "",
    ),
];

/// What is read of a platform.
#[derive(Default)]
struct Reader<'a> {
    platform: Platform,
    /// By name, the link up and the link down: one if they share its bandwidth.
    links: HashMap<String, [usize; 2]>,
    hosts: Vec<Host>,
    /// By zone of a cluster, its backbone.
    backbones: HashMap<usize, usize>,
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

pub(super) fn read(file: &Source<'_>) -> Result<Machine, SpecError> {
    let Source { name, text, reading, .. } = *file;
    let mut reader = Reader { name, by_core: reading.cores, ..Reader::default() };
    reader.platform.add("", ROOT, Some(Routing::Full))?;
    // By element, the zone around what is in it.
    let mut zones: Vec<usize> = Vec::new();
    let all = each(text, |all, place| {
        let around = all[place].around.map_or(ROOT, |around| zones[around]);
        zones.push(reader.element(&all[place], around)?);
        Ok(())
    })?;
    // Routes and links of hosts may name what follows them.
    for (place, element) in all.iter().enumerate() {
        let later = match element.name.as_str() {
            "host_link" => reader.host_link(element, zones[place]),
            name if is_route(name) => {
                let within = all[place + 1..].iter().take_while(|e| e.around == Some(place));
                reader.route(element, &within.collect::<Vec<_>>(), zones[place])
            }
            "link_ctn" | "link:ctn"
                if !element.around.is_some_and(|around| is_route(&all[around].name)) =>
            {
                Err("a link of no route".to_owned())
            }
            _ => Ok(()),
        };
        later.map_err(|message| element.wrong(message))?;
    }
    reader.machine()
}

impl Reader<'_> {
    /// Reads an element, and returns the zone around what is in it.
    fn element(&mut self, element: &Element, zone: usize) -> Result<usize, String> {
        let name = element.name.as_str();
        let known = KNOWN.iter().find(|(names, _)| names.split(' ').any(|known| known == name));
        let (_, known) = known.ok_or_else(|| format!("<{name}> is not supported"))?;
        let is_core = |name: &str| name == "core" || name.starts_with("loopback");
        let others = element.names().filter(|name| !known.split(' ').any(|known| known == *name));
        let others = others.filter(|name| !self.by_core || !is_core(name)).map(str::to_owned);
        match known.is_empty() {
            true => drop(self.without_effect.insert(format!("<{name}>"))),
            false => self.without_effect.extend(others),
        }
        let policy = element.get("sharing_policy").unwrap_or("SHARED");
        match name {
            "zone" | "AS" => {
                let routing = match element.get("routing").unwrap_or("Full") {
                    "Full" | "None" => Routing::Full,
                    "Floyd" | "Dijkstra" | "DijkstraCache" => Routing::Composed,
                    "Cluster" => Routing::Star,
                    other => return Err(format!("routing {other} is not supported")),
                };
                return self.zone(element.given("id")?, zone, routing);
            }
            "host" => {
                let place = self.platform.add(element.given("id")?, zone, None)?;
                self.host(Host { place, cores: cores(element)?, limiter: None, loopback: None })?;
            }
            "router" => {
                let place = self.platform.add(element.given("id")?, zone, None)?;
                self.gateway(place);
            }
            "link" | "backbone" => {
                let carries = carries(element, ["bandwidth", "latency"])?;
                let [link, _] = self.add_link(element.given("id")?, carries, policy)?;
                if name == "backbone" {
                    self.backbones.insert(zone, link);
                }
            }
            "cluster" => self.cluster(element, zone)?,
            "cabinet" if self.platform.places[zone].routing != Some(Routing::Star) => {
                return Err(NOT_STAR.to_owned());
            }
            "cabinet" => {
                let host = Host { place: zone, cores: 1, limiter: None, loopback: None };
                self.around_switch(element, host, "SPLITDUPLEX", |_, name| format!("link_{name}"))?;
            }
            _ => {}
        }
        Ok(zone)
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

    /// Adds a link, one in each direction if its policy says so.
    fn add_link(
        &mut self,
        name: &str,
        carries: Carries,
        policy: &str,
    ) -> Result<[usize; 2], String> {
        let junctions = &mut self.platform.junctions;
        let ends = match policy {
            "SPLITDUPLEX" | "FULLDUPLEX" => ["UP", "DOWN"].map(|way| {
                let name = format!("{name}_{way}");
                let end = junctions.resource(&name, carries);
                self.links.insert(name, [end; 2]);
                end
            }),
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
        let loopback = element.get("loopback_bw").map(bandwidth).transpose()?;
        let latency = element.get("loopback_lat").map_or(Ok(0.0), seconds)?;
        let host = Host {
            place: ROOT,
            cores: cores(element)?,
            limiter: element.get("limiter_link").map(bandwidth).transpose()?,
            loopback: loopback.map(|loopback| (loopback, latency)),
        };
        if let Some(machine) = cluster::read(self.name, element)? {
            let hosts = machine.topology.ranks();
            self.whole = Some(machine);
            return (0..hosts).try_for_each(|_| self.host(host));
        }
        let id = element.given("id")?;
        let zone = self.zone(id, around, Routing::Star)?;
        let [prefix, suffix] = ["prefix", "suffix"].map(|key| element.get(key).unwrap_or_default());
        let router = format!("{prefix}{id}_router{suffix}");
        let router = element.get("router_id").filter(|id| !id.is_empty()).unwrap_or(&router);
        let router = self.platform.add(router, zone, None)?;
        self.gateway(router);
        if element.get("bb_bw").is_some() {
            let policy = element.get("bb_sharing_policy").unwrap_or("SHARED");
            let carries = carries(element, ["bb_bw", "bb_lat"])?;
            let [link, _] = self.add_link(&format!("{id}_backbone"), carries, policy)?;
            self.backbones.insert(zone, link);
        }
        let policy = element.get("sharing_policy").unwrap_or("SPLITDUPLEX");
        let host = Host { place: zone, ..host };
        self.around_switch(element, host, policy, |number, _| format!("{id}_link_{number}"))
    }

    /// Adds the hosts of a cluster or a cabinet around the switch of a zone, the place of `host`.
    fn around_switch(
        &mut self,
        element: &Element,
        host: Host,
        policy: &str,
        link: impl Fn(u32, &str) -> String,
    ) -> Result<(), String> {
        element.given("lat")?;
        let carries = carries(element, ["bw", "lat"])?;
        let [prefix, suffix] = ["prefix", "suffix"].map(|key| element.get(key).unwrap_or_default());
        for number in radical(element.given("radical")?)? {
            let name = format!("{prefix}{number}{suffix}");
            let place = self.platform.add(&name, host.place, None)?;
            self.host(Host { place, ..host })?;
            let links = self.add_link(&link(number, &name), carries, policy)?;
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

    fn declared(&self, link: &str) -> Result<[usize; 2], String> {
        self.links.get(link).copied().ok_or_else(|| format!("link `{link}` is not declared"))
    }

    fn host_link(&mut self, element: &Element, zone: usize) -> Result<(), String> {
        if self.platform.places[zone].routing != Some(Routing::Star) {
            return Err(NOT_STAR.to_owned());
        }
        let place = self.platform.find(element.given("id")?)?;
        let [up, _] = self.declared(element.given("up")?)?;
        let [_, down] = self.declared(element.given("down")?)?;
        self.attach(place, [up, down]);
        self.has_host_links = true;
        Ok(())
    }

    /// Reads a route between hosts or zones, over links in their directions.
    fn route(&mut self, element: &Element, links: &[&Element], zone: usize) -> Result<(), String> {
        let find = |key: &str| self.platform.find(element.given(key)?);
        let [from, to] = [find("src")?, find("dst")?];
        if from == to {
            self.without_effect.insert("routes to oneself".to_owned());
            return Ok(());
        }
        let gateways = match element.name.as_str() {
            "route" => [from, to],
            _ => [find("gw_src")?, find("gw_dst")?],
        };
        for (place, gateway) in [from, to].into_iter().zip(gateways) {
            let Platform { places, .. } = &self.platform;
            let (name, gate) = (&places[place].name, &places[gateway].name);
            if places[place].within != zone || place == ROOT {
                return Err(format!("`{name}` is not in the zone of the route"));
            }
            if places[gateway].routing.is_some() || !self.platform.is_within(gateway, place) {
                return Err(format!("`{gate}` is not a host or router of `{name}`"));
            }
        }
        let mut there = Vec::new();
        for link in links {
            let name = link.given("id")?;
            let ends = self.declared(name)?;
            there.push(match link.get("direction") {
                Some("UP") => ends,
                Some("DOWN") => [ends[1], ends[0]],
                None | Some("NONE") if ends[0] == ends[1] => ends,
                _ => {
                    let rule = "its direction is UP or DOWN";
                    return Err(format!("link `{name}` is SPLITDUPLEX: {rule}"));
                }
            });
        }
        let out: Vec<_> = there.iter().map(|ends| ends[0]).collect();
        let back: Vec<_> = there.iter().rev().map(|ends| ends[1]).collect();
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

fn is_route(name: &str) -> bool {
    matches!(name, "route" | "zoneRoute" | "ASroute")
}

fn cores(element: &Element) -> Result<u32, String> {
    element.get("core").map_or(Ok(1), |cores| number("core", cores))
}

/// What a link carries, by the names of its attributes.
fn carries(element: &Element, [of, latency]: [&str; 2]) -> Result<Carries, String> {
    let latency = element.get(latency).map_or(Ok(0.0), seconds)?;
    Ok(Carries { bandwidth: bandwidth(element.given(of)?)?, latency, each: false })
}

#[cfg(test)]
mod tests;
