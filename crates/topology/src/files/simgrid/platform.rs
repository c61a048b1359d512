//! The zones of a platform, and the routes between its hosts.
//!
//! A route within a zone is the one that the zone gives. Between zones it leads to the gateway, over the
//! links that the zone around both gives, and on from the other gateway.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hashbrown::HashMap;

use super::junctions::Junctions;

/// The zone of a platform that is in no other.
pub(super) const ROOT: usize = 0;

/// The most places whose routes are composed.
const MOST_COMPOSED: usize = 1 << 11;

/// How a zone gives routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Routing {
    /// A route for each pair.
    Full,
    /// Routes of neighbours, that are composed to those of the fewest links.
    Composed,
    /// Over the links of each host, and the backbone.
    Star,
}

/// A host, a router or a zone.
pub(super) struct Place {
    pub(super) name: String,
    /// The zone that it is in.
    pub(super) within: usize,
    /// Of a zone, how it gives routes.
    pub(super) routing: Option<Routing>,
    /// Where links that lead to it end, and where those that leave it begin.
    pub(super) ends: [u32; 2],
}

/// Links between two places of a zone, in order, and the gateways of places that are zones.
pub(super) struct Route {
    pub(super) links: Vec<u32>,
    pub(super) gateways: [usize; 2],
}

/// All that a platform describes.
#[derive(Default)]
pub(super) struct Platform {
    pub(super) places: Vec<Place>,
    pub(super) names: HashMap<String, usize>,
    /// By source and destination.
    pub(super) routes: HashMap<(usize, usize), Route>,
    /// The links up and down of each place in a star, and of a star those of its backbone.
    pub(super) stars: HashMap<usize, [Vec<u32>; 2]>,
    /// Of a composed pair, the place before the destination.
    before: HashMap<(usize, usize), usize>,
    pub(super) junctions: Junctions,
}

impl Platform {
    pub(super) fn add(
        &mut self,
        name: &str,
        within: usize,
        routing: Option<Routing>,
    ) -> Result<usize, String> {
        let place = self.places.len();
        if self.names.insert(name.to_owned(), place).is_some() {
            return Err(format!("`{name}` is declared twice"));
        }
        let vertex = self.junctions.vertex(name);
        let name = name.to_owned();
        self.places.push(Place { name, within, routing, ends: [vertex; 2] });
        Ok(place)
    }

    pub(super) fn find(&self, name: &str) -> Result<usize, String> {
        self.names.get(name).copied().ok_or_else(|| format!("`{name}` is not declared"))
    }

    /// Adds the links between two places of a zone; those of zones are between their gateways.
    pub(super) fn add_route(
        &mut self,
        [from, to]: [usize; 2],
        gateways: [usize; 2],
        links: &[usize],
    ) -> Result<(), String> {
        let [out, into] = [self.places[gateways[0]].ends[1], self.places[gateways[1]].ends[0]];
        let links = self.junctions.chain(out, links, into);
        match self.routes.insert((from, to), Route { links, gateways }) {
            None => Ok(()),
            Some(_) => {
                let [from, to] = [from, to].map(|place| &self.places[place].name);
                Err(format!(
                    "a second route from `{from}` to `{to}`: a route is symmetrical unless it says symmetrical=\"NO\""
                ))
            }
        }
    }

    /// Whether a place is a zone, or within it.
    pub(super) fn is_within(&self, place: usize, zone: usize) -> bool {
        place == zone || place != ROOT && self.is_within(self.places[place].within, zone)
    }

    /// Composes the routes of zones that give those of neighbours.
    pub(super) fn compose(&mut self) -> Result<(), String> {
        let mut leaving: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (&(from, to), route) in &self.routes {
            if self.places[self.places[from].within].routing == Some(Routing::Composed) {
                leaving.entry(from).or_default().push((to, route.links.len().max(1)));
            }
        }
        if leaving.len() > MOST_COMPOSED {
            let count = leaving.len();
            return Err(format!(
                "{count} places whose routes are composed: the most are {MOST_COMPOSED}"
            ));
        }
        leaving.values_mut().for_each(|to| to.sort_unstable());
        for &source in leaving.keys() {
            let mut open = BinaryHeap::from([Reverse((0, source, source))]);
            while let Some(Reverse((far, at, before))) = open.pop() {
                if at == source && far > 0 || self.before.contains_key(&(source, at)) {
                    continue;
                }
                if at != source {
                    self.before.insert((source, at), before);
                }
                let next = leaving.get(&at).into_iter().flatten();
                open.extend(next.map(|&(to, links)| Reverse((far + links, to, at))));
            }
        }
        Ok(())
    }

    /// Appends the links from a host or router to another.
    pub(super) fn route(&self, from: usize, to: usize, out: &mut Vec<u32>) -> Result<(), String> {
        if from == to {
            return Ok(());
        }
        let around = |mut place: usize| {
            let mut zones = vec![place];
            while place != ROOT {
                place = self.places[place].within;
                zones.push(place);
            }
            zones
        };
        let (mut one, mut other) = (around(from), around(to));
        while one.len() > 1 && other.len() > 1 && one[one.len() - 2..] == other[other.len() - 2..] {
            one.pop();
            other.pop();
        }
        // The zone around both is the last; before it are its places with the two.
        let (zone, from_zone, to_zone) =
            (one[one.len() - 1], one[one.len() - 2], other[other.len() - 2]);
        let missing = || self.missing(from, to);
        if self.places[zone].routing == Some(Routing::Star) {
            for (place, end) in [(from, 0), (zone, 0), (to, 1)] {
                out.extend(&self.stars.get(&place).ok_or_else(missing)?[end]);
            }
            return Ok(());
        }
        let mut places = vec![to_zone];
        while places.last() != Some(&from_zone) {
            let at = places[places.len() - 1];
            let before = self.before.get(&(from_zone, at)).copied().unwrap_or(from_zone);
            places.push(before);
        }
        let mut at = from;
        for ends in places.windows(2).rev() {
            let route = self.routes.get(&(ends[1], ends[0])).ok_or_else(missing)?;
            self.route(at, route.gateways[0], out)?;
            out.extend(&route.links);
            at = route.gateways[1];
        }
        self.route(at, to, out)
    }

    fn missing(&self, from: usize, to: usize) -> String {
        let [from, to] = [from, to].map(|place| &self.places[place].name);
        format!("no route from `{from}` to `{to}`")
    }
}
