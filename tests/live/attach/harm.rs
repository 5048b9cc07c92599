// SPDX-License-Identifier: BSD-2-Clause
// One function in three forms (free, method, generic), all of which are called with numbers and return 1000 more than
// that. How they are left is the program's first argument; it prints the sum of what happened.
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU8, Ordering};

static HOW: AtomicU8 = AtomicU8::new(0);

#[inline(never)]
fn behave(id: i32, text: &str) {
    if id % 10 != 9 {
        return;
    }
    match HOW.load(Ordering::Relaxed) {
        b'p' => panic!("left: {text}"),
        b't' => std::panic::resume_unwind(Box::new(text.to_string())),
        _ => (),
    }
}

pub struct Server {
    base: i32,
}

// Each has something to drop.
#[inline(never)]
pub fn work(id: i32, path: &str) -> i32 {
    let text = format!("{path}{id}");
    behave(id, &text);
    1000 + id + (text.len() > 1000) as i32
}

impl Server {
    #[inline(never)]
    pub fn handle(&self, id: i32, path: &str) -> i32 {
        let text = format!("{path}{id}/member");
        behave(id, &text);
        self.base + id + (text.len() > 1000) as i32
    }
}

#[inline(never)]
pub fn pick<T: std::fmt::Display>(id: i32, path: T) -> i32 {
    let text = format!("{path}{id}/generic");
    behave(id, &text);
    1000 + id + (text.len() > 1000) as i32
}

fn call(id: i32, server: &Server) -> i64 {
    let path = "/a/path/that/is/longer/than/what/fits/into/a/string/itself/";
    (work(id, path) + server.handle(id, path) + pick(id, path)) as i64
}

fn run(server: &Server) -> i64 {
    (1..=30).map(|id| catch_unwind(AssertUnwindSafe(|| call(id, server))).unwrap_or(7)).sum()
}

fn main() {
    let how = std::env::args().nth(1).unwrap_or_default();
    HOW.store(how.bytes().next().unwrap_or(0), Ordering::Relaxed);
    std::panic::set_hook(Box::new(|_| ()));
    let server = Server { base: 1000 };
    let mut sum = run(&server);
    // A panic that ends its thread, and is handed to who joins it.
    let in_thread = std::thread::spawn(|| call(39, &Server { base: 1000 })).join();
    sum += in_thread.unwrap_or(11);
    println!("{how} {sum}");
    std::process::exit((sum % 100) as i32);
}
