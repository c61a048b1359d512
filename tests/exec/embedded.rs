//! Programs of people who embedded the library.

#[path = "../inputs/embed/placed.rs"]
mod placed;
#[path = "../inputs/embed/two_exchanges.rs"]
mod two_exchanges;

#[test]
fn exchanges_follow_each_other_over_one_transport() -> Result<(), Box<dyn std::error::Error>> {
    for algorithm in ["best", "direct", "bruck"] {
        two_exchanges::run(20, algorithm)?;
    }
    Ok(())
}

#[test]
fn messages_are_received_in_their_places_and_a_rank_may_end()
-> Result<(), Box<dyn std::error::Error>> {
    placed::run(20, usize::MAX)?;
    placed::run(6, 3)
}
