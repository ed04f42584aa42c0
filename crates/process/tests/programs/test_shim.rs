//! `rally-test-shim shim <folder>`: what `rally shim <folder>` is in the real program.

use std::path::PathBuf;
use std::process::ExitCode;

use rallypoint_process::shim::run_shim;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(mode), Some(folder)) if mode == "shim" => run_shim(&PathBuf::from(folder)),
        _ => ExitCode::from(2),
    }
}
