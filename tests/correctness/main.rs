//! Every schedule delivers, and every broken one is caught.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod broken;
mod certificates;
mod classes;
mod failures;
mod gather;
mod gossip;
mod graphs;
mod hierarchical;
mod lattices;
mod link_matchings;
mod matchings;
mod mutants;
mod node_matchings;
mod nodes;
mod offsets;
mod periods;
mod placed;
mod repair;
mod sides;
mod sizes;
mod store_and_forward;
mod views;
mod violations;
