//! The examples run; each checks what it shows. That in C is run by the C interface's tests.

#[path = "../../examples/channels.rs"]
mod channels;
#[path = "../../examples/fft2d.rs"]
mod fft2d;
#[path = "../../examples/tour.rs"]
mod tour;
#[path = "../../examples/transpose.rs"]
mod transpose;

#[test]
fn the_examples_run() -> Result<(), Box<dyn std::error::Error>> {
    channels::main()?;
    fft2d::main()?;
    tour::main()?;
    transpose::main()
}
