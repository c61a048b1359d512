//! Names the shared library by the version of its interface.

fn main() {
    println!("cargo::rerun-if-changed=src/lib.rs");
    let source = std::fs::read_to_string("src/lib.rs").expect("the source is readable");
    let mark = "pub const TOPOCOLL_ABI_VERSION: u32 = ";
    let version = source.lines().find_map(|line| line.strip_prefix(mark)?.strip_suffix(';'));
    let version = version.expect("bug: no version of the interface");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtopocoll_c.so.{version}");
    }
}
