// SPDX-License-Identifier: BSD-2-Clause
//! Lists probes with the types of their arguments, or traces them, from Rust:
//!     trace FILE                   lists, unprivileged
//!     trace PROBE MILLISECONDS     traces, as root, until nothing comes for so long: "usdt:./server:db:query"
//!
//!     rustc --edition 2021 trace.rs -L DIRECTORY_OF_LIBUSDT_C

mod usdt;

use std::time::Duration;

fn trace(pattern: &str, wait: Duration) -> usdt::Result<()> {
    let mut tracer = usdt::Tracer::start(pattern, &[])?;
    eprintln!("tracing");
    for event in tracer.events(wait) {
        let event = event?;
        let args: Vec<String> = event.args.iter().map(|value| value.to_string()).collect();
        println!("{} {}:{} {}", event.pid, event.provider, event.name, args.join(" "));
    }
    let counts = tracer.counts()?;
    println!("{} hits, {} delivered, {} lost", counts.hits, counts.delivered, counts.lost);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [file] => {
            for point in usdt::list(file)? {
                println!("{}:{}({})", point.provider, point.name, point.types.join(", "));
            }
        }
        [probe, milliseconds] => trace(probe, Duration::from_millis(milliseconds.parse()?))?,
        _ => return Err("usage: trace FILE | trace PROBE MILLISECONDS".into()),
    }
    Ok(())
}
