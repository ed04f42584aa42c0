//! A model server without a model, for trying real agents by hand: `rally-mock-model [--port N] [--record FILE]`.
//!
//! Prints the address that it listens on and runs until its standard input ends or it is killed.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use rallypoint_testkit::mock_model::{MockModel, MockOptions};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to try when standard error is closed too.
            let _ = writeln!(io::stderr().lock(), "rally-mock-model: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<()> {
    let mut options = MockOptions::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("`{argument}` needs a value"));
        match argument.as_str() {
            "--port" => options.port = value()?.parse().context("`--port` takes a number")?,
            "--record" => options.record = Some(value()?.into()),
            "--model" => options.model = value()?,
            other => bail!("unknown argument `{other}`; there are --port, --record and --model"),
        }
    }
    let server = MockModel::start(options)?;
    writeln!(io::stdout().lock(), "{}", server.url())?;
    io::stdin().lock().read_to_end(&mut Vec::new())?;
    Ok(())
}
