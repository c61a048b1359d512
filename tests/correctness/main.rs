//! Every schedule delivers, and every broken one is caught.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod broken;
mod certificates;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod conformance;
mod failures;
mod forgery;
mod gather;
mod gossip;
mod graphs;
mod independent;
mod lattices;
mod lifted;
mod link_matchings;
mod matchings;
mod mutants;
mod nodes;
mod offsets;
mod repair;
mod sides;
mod store_and_forward;
mod violations;
