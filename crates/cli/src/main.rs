//! The program `rally`.
fn main() {}
