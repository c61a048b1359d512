//! Schedules for other views of the machine: orders of its dimensions or nodes, directions at half a ring, and
//! graphs without slow links.

use topocoll_algorithms::{Algorithm, Request, VIEW};
use topocoll_schedule::{Parameters, Setting};
use topocoll_topology::{Shape, Ties, View};

use super::Pool;
use super::fewer_ports::is_limited;
use crate::price::Priced;

/// The most ranks of a machine of which views are tried.
const MOST_RANKS: u32 = 128;
/// The most ranks of a machine of which all views are tried.
const FEW_RANKS: u32 = 32;
/// The parts of the budget for counting schedules for views, of few ranks and of more, and of a graph of more.
const PARTS: [u128; 3] = [64, 8192, 1024];

/// Algorithms whose schedules follow the numbers of ranks, or the order of dimensions.
const IN_ORDER: [&str; 10] = [
    "bruck",
    "bucket",
    "concat",
    "direct",
    "direct-offsets",
    "neighbour-gather",
    "one-factor",
    "pairwise-xor",
    "product",
    "recursive-doubling",
];

impl Pool<'_> {
    /// Adds the schedules for other views, as far as the lower bound is below the least exact time at some
    /// block size and a small part of the budget is enough to count them. Returns these views; of grids none if it
    /// was not enough.
    pub(super) fn try_views(&mut self) -> Vec<View> {
        let machine = self.exchange().machine();
        if machine.ranks() > MOST_RANKS || !self.may_gain(self.exchange().problem().both_ports()) {
            return Vec::new();
        }
        let (mut views, is_large) = (View::all(machine), machine.ranks() > FEW_RANKS);
        views.retain(|view| {
            let is_up =
                matches!(view.shown().shape(), Shape::Grid(grid) if grid.ties() == Ties::Up);
            !is_large || !view.has_other_rings() || is_up
        });
        let is_graph = views.iter().any(View::is_of_graph);
        let part = PARTS[usize::from(is_large) * (1 + usize::from(is_graph))];
        let work = self.exchange().limits().work / part;
        let left = std::mem::replace(&mut self.left, work);
        for view in &views {
            self.add_with(&Parameters::new(), Some((view, Kind::Rules)));
        }
        let all = self.decide();
        self.left = left;
        self.drop_uncounted();
        views.retain(|view| all || view.is_of_graph());
        views
    }

    /// Searches again on views of few ranks, and of graphs: a search finds other schedules in another order of dimensions.
    pub(super) fn search_views(&mut self, views: &[View]) {
        let few = self.exchange().problem().ranks <= FEW_RANKS;
        let searched = |view: &&View| view.has_own_ties() && (few || view.is_of_graph());
        for view in views.iter().filter(searched) {
            self.add_with(&Parameters::new(), Some((view, Kind::Searches)));
            self.decide();
        }
        self.drop_uncounted();
    }

    /// Drops the schedules for fewer ports and other views without an exact price.
    pub(super) fn drop_uncounted(&mut self) {
        self.candidates.retain(|one| !one.other || one.price.priced == Priced::Exactly);
    }
}

/// Which algorithms are tried on a view.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rules,
    Searches,
}

impl Kind {
    /// Whether an algorithm is of this kind, and its schedules may differ on a view with these ports: on one
    /// of a graph or of other rings those of all, else those that follow an order. Products for fewer ports are left out,
    /// as they take long to plan.
    pub(super) fn may_differ(
        self,
        view: &View,
        algorithm: &dyn Algorithm,
        request: &Request<'_>,
        limit: &Parameters,
    ) -> bool {
        let name = &*algorithm.info().name;
        match request.search(algorithm, &Parameters::new()) {
            Some(_) => self == Self::Searches,
            None if name == "product" && is_limited(limit) => false,
            None => {
                let all = view.is_of_graph() || view.has_other_rings();
                self == Self::Rules && (all || IN_ORDER.contains(&name))
            }
        }
    }
}

/// Whether parameters are those of a schedule on another view.
pub(crate) fn is_on_view(parameters: &Parameters) -> bool {
    VIEW.iter().any(|name| parameters.contains_key(*name))
}

/// The parameters of a view of a machine.
pub(super) fn of_view(view: &View) -> impl Iterator<Item = (String, Setting)> {
    let words = VIEW.into_iter().zip(view.words());
    words.filter_map(|(name, word)| {
        let word = word?;
        let number = word.parse().map(Setting::Integer);
        Some((name.to_owned(), number.unwrap_or_else(|_| (&*word).into())))
    })
}
