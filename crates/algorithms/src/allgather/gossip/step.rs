//! The messages of a step: links matched to ranks, and blocks to links.

use std::cmp::Reverse;

use topocoll_topology::{Graph, Rank};

use crate::drawn::{SPREAD, drawn};
use crate::hops;

/// Links between ranks, and ports.
pub(super) struct Network {
    /// By link, its sender and its receiver.
    ends: Vec<[Rank; 2]>,
    /// By rank, the links that lead to it.
    into: Vec<Vec<u32>>,
    ports: usize,
    /// Whether every rank has a port for each of its links.
    all_ports: bool,
}

impl Network {
    pub(super) fn new(graph: &Graph, ports: u32) -> Self {
        let ends = hops::ends(graph);
        let into = hops::entering(&ends, graph.vertices());
        Self { ends, into, ports: ports as usize, all_ports: hops::all_ports(graph) <= ports }
    }

    pub(super) fn ends(&self) -> &[[Rank; 2]] {
        &self.ends
    }

    /// Estimated seconds of a search: every block on every link to a rank that needs it, and where there are
    /// fewer ports than links a matching in each step, which takes longer where ranks have unequally many links.
    pub(super) fn seconds(&self) -> f64 {
        const SECONDS_OF_BLOCK: f64 = 4e-8;
        const MATCHED: f64 = 1.5;
        const UNEQUAL: f64 = 12.0;
        let (ranks, most) = (self.into.len() as f64, self.into.iter().map(Vec::len).max());
        let unequal = self.into.iter().filter(|links| Some(links.len()) < most).count() as f64;
        let matched =
            if self.all_ports { 1.0 } else { MATCHED * (1.0 + UNEQUAL * unequal / ranks) };
        SECONDS_OF_BLOCK * matched * ranks * self.ends.len() as f64
    }

    /// Messages that a rank may receive in a step.
    fn receives(&self, rank: usize) -> usize {
        self.into[rank].len().min(self.ports)
    }

    /// Blocks of the largest messages of all steps, at least.
    pub(super) fn bound(&self) -> u64 {
        let blocks = self.into.len() - 1;
        let least = |rank| blocks.div_ceil(self.receives(rank).max(1));
        (0..self.into.len()).map(least).max().unwrap_or(0) as u64
    }
}

/// The messages of a step: links with the blocks that they carry.
type Messages = Vec<(u32, Vec<u32>)>;

/// The blocks that ranks have between two steps.
pub(super) struct State<'n> {
    network: &'n Network,
    /// Words of a set of blocks.
    words: usize,
    /// By rank, the set of its blocks.
    known: Vec<u64>,
    /// By block, the ranks that have it.
    holders: Vec<u32>,
    /// By rank, the number of its missing blocks.
    missing: Vec<u64>,
}

impl<'n> State<'n> {
    pub(super) fn new(network: &'n Network) -> Self {
        let ranks = network.into.len();
        let words = ranks.div_ceil(64);
        let mut known = vec![0; ranks * words];
        for rank in 0..ranks {
            known[rank * words + rank / 64] |= 1 << (rank % 64);
        }
        let (holders, missing) = (vec![1; ranks], vec![ranks as u64 - 1; ranks]);
        Self { network, words, known, holders, missing }
    }

    pub(super) fn is_done(&self) -> bool {
        self.missing.iter().all(|&missing| missing == 0)
    }

    pub(super) fn deliver(&mut self, link: u32, blocks: &[u32]) {
        let to = self.network.ends[link as usize][1].index();
        for &block in blocks {
            self.known[to * self.words + block as usize / 64] |= 1 << (block % 64);
            self.holders[block as usize] += 1;
        }
        self.missing[to] -= blocks.len() as u64;
    }

    fn known(&self, rank: Rank) -> &[u64] {
        &self.known[rank.index() * self.words..][..self.words]
    }

    fn has(&self, link: u32, block: u32) -> bool {
        let [from, _] = self.network.ends[link as usize];
        self.known(from)[block as usize / 64] >> (block % 64) & 1 != 0
    }

    /// By link, the number of blocks of its sender that are missing at its receiver.
    pub(super) fn useful(&self) -> Vec<u64> {
        let count = |&[from, to]: &[Rank; 2]| {
            let words = self.known(from).iter().zip(self.known(to));
            words.map(|(from, to)| u64::from((from & !to).count_ones())).sum()
        };
        self.network.ends.iter().map(count).collect()
    }

    /// Messages of at most `most` blocks, after which all ranks may receive the rest within a volume of `left`
    /// less these. `None` if they are not found. `useful` is that of this state.
    pub(super) fn messages(&self, useful: &[u64], most: u64, left: u64) -> Option<Messages> {
        let later = |rank| (left - most) * self.network.receives(rank) as u64;
        // By rank, the blocks that it needs in this step. Those with the greatest need come first.
        let needs: Vec<u64> = (0..self.missing.len())
            .map(|rank| self.missing[rank].saturating_sub(later(rank)))
            .collect();
        let mut order: Vec<usize> = (0..needs.len()).collect();
        order.sort_by_key(|&rank| Reverse(needs[rank]));
        let matched = if self.network.all_ports {
            None
        } else {
            Some(self.matched(useful, most, &needs, &order)?)
        };
        let mut messages = Vec::new();
        let links = matched.as_ref().unwrap_or(&self.network.into);
        for rank in order {
            let shares = self.shares(&links[rank], most as usize);
            let found: usize = shares.iter().map(Vec::len).sum();
            if (found as u64) < needs[rank] {
                return None;
            }
            let all = links[rank].iter().copied().zip(shares);
            messages.extend(all.filter(|(_, blocks)| !blocks.is_empty()));
        }
        Some(messages)
    }

    /// By rank, the links of a step that lead to it, with no more messages at any rank than ports.
    fn matched(
        &self,
        useful: &[u64],
        most: u64,
        needs: &[u64],
        order: &[usize],
    ) -> Option<Vec<Vec<u32>>> {
        let mut matching = Matching::new(self.network);
        for (rank, links) in matching.preferred.iter_mut().enumerate() {
            // The other ports receive no more than the largest messages.
            let others = (self.network.receives(rank) as u64).saturating_sub(1) * most;
            let least = needs[rank].saturating_sub(others).max(1);
            let usable = self.network.into[rank].iter().copied();
            links.extend(usable.filter(|&link| useful[link as usize] >= least));
            links.sort_by_key(|&link| {
                let chance = drawn(u64::from(link).wrapping_mul(SPREAD) ^ self.missing[rank]);
                (Reverse(useful[link as usize].min(most)), chance)
            });
        }
        for round in 0..self.network.ports {
            let mut is_larger = false;
            for &rank in order {
                let found = matching.enlarge(rank);
                if !found && round == 0 && needs[rank] > 0 {
                    return None;
                }
                is_larger |= found;
            }
            if !is_larger {
                break;
            }
        }
        Some(matching.by_receiver())
    }

    /// Missing blocks of a rank, each on one of these links to it, at most `most` on each; by link. As many as
    /// possible: where a link is full, blocks on it move to other links.
    fn shares(&self, links: &[u32], most: usize) -> Vec<Vec<u32>> {
        let mut shares = vec![Vec::new(); links.len()];
        let Some(&first) = links.first() else { return shares };
        let to = self.network.ends[first as usize][1];
        let mut useful: Vec<(u32, u32, u64, u32)> = Vec::new();
        for word in 0..self.words {
            let of = |link: &u32| self.known(self.network.ends[*link as usize][0])[word];
            let mut bits = links.iter().map(of).fold(0, |all, of| all | of) & !self.known(to)[word];
            while bits != 0 {
                let block = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                let senders = links.iter().filter(|&&link| self.has(link, block)).count() as u32;
                let chance = drawn(u64::from(to.0 << 16 | block).wrapping_mul(SPREAD));
                useful.push((senders, self.holders[block as usize], chance, block));
            }
        }
        useful.sort_unstable();
        for (.., block) in useful {
            let open = |&place: &usize| self.has(links[place], block) && shares[place].len() < most;
            let shortest = (0..links.len()).filter(open).min_by_key(|&place| shares[place].len());
            match shortest {
                Some(place) => shares[place].push(block),
                None => self.push_onward(links, most, &mut shares, block),
            }
        }
        shares
    }

    /// Adds a block whose links are full, if blocks on them can move to other links.
    fn push_onward(&self, links: &[u32], most: usize, shares: &mut [Vec<u32>], block: u32) {
        // By link, the one that a block comes from, and this block.
        let mut before: Vec<Option<(usize, u32)>> = vec![None; links.len()];
        let mut open: Vec<usize> =
            (0..links.len()).filter(|&place| self.has(links[place], block)).collect();
        let mut next = 0;
        while let Some(&place) = open.get(next) {
            next += 1;
            if shares[place].len() < most {
                let mut at = place;
                while let Some((from, moved)) = before[at] {
                    shares[from].retain(|&other| other != moved);
                    shares[at].push(moved);
                    at = from;
                }
                shares[at].push(block);
                return;
            }
            for other in 0..links.len() {
                if !open.contains(&other)
                    && let Some(&moved) =
                        shares[place].iter().find(|&&moved| self.has(links[other], moved))
                {
                    before[other] = Some((place, moved));
                    open.push(other);
                }
            }
        }
    }
}

/// Links such that no rank sends or receives more messages than it has ports.
struct Matching<'n> {
    network: &'n Network,
    /// By receiver, the links that it may use, the best first.
    preferred: Vec<Vec<u32>>,
    /// By sender, the links that are used.
    sent: Vec<Vec<u32>>,
    /// By sender, whether the search has met it.
    met: Vec<bool>,
}

impl<'n> Matching<'n> {
    fn new(network: &'n Network) -> Self {
        let ranks = network.into.len();
        let (preferred, sent) = (vec![Vec::new(); ranks], vec![Vec::new(); ranks]);
        Self { network, preferred, sent, met: vec![false; ranks] }
    }

    /// Adds a link to a receiver. Others may get another link in place of one.
    fn enlarge(&mut self, to: usize) -> bool {
        self.met.fill(false);
        self.receive(to)
    }

    fn receive(&mut self, to: usize) -> bool {
        for place in 0..self.preferred[to].len() {
            let link = self.preferred[to][place];
            let from = self.network.ends[link as usize][0].index();
            if self.met[from] || self.sent[from].contains(&link) {
                continue;
            }
            self.met[from] = true;
            if self.sent[from].len() < self.network.ports {
                self.sent[from].push(link);
                return true;
            }
            for place in 0..self.sent[from].len() {
                let other = self.sent[from][place];
                if self.receive(self.network.ends[other as usize][1].index()) {
                    self.sent[from][place] = link;
                    return true;
                }
            }
        }
        false
    }

    fn by_receiver(&self) -> Vec<Vec<u32>> {
        let mut links = vec![Vec::new(); self.sent.len()];
        for &link in self.sent.iter().flatten() {
            links[self.network.ends[link as usize][1].index()].push(link);
        }
        links
    }
}
