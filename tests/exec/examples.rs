//! The examples run, and each checks its results. The tests of the C interface run the example in C.

#[path = "../../examples/asynchronous.rs"]
mod asynchronous;
#[path = "../../examples/channels.rs"]
mod channels;
#[path = "../../examples/fft2d.rs"]
mod fft2d;
#[path = "../../examples/pencils.rs"]
mod pencils;
#[path = "../../examples/tcp.rs"]
mod tcp;
#[path = "../../examples/tour.rs"]
mod tour;
#[path = "../../examples/transpose.rs"]
mod transpose;

#[test]
fn the_examples_run() -> Result<(), Box<dyn std::error::Error>> {
    asynchronous::main()?;
    channels::main()?;
    fft2d::main()?;
    pencils::main()?;
    tcp::main().map_err(|error| error.to_string())?;
    tour::main()?;
    transpose::main()
}
