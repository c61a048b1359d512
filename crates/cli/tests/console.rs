//! Console sessions, including those of the README and of the book: commands, output and exit status.

#[test]
fn sessions_run_as_written() {
    // Sessions name files from the root of the repository.
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::env::set_current_dir(root).expect("the repository is there");
    let cases = trycmd::TestCases::new();
    // The longest takes three seconds. What should be refused before the work would take minutes.
    cases.timeout(std::time::Duration::from_secs(60));
    cases.case("tests/cli/*.trycmd").case("README.md").case("docs/src/**/*.md");
}
