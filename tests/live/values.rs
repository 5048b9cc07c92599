// SPDX-License-Identifier: BSD-2-Clause
// Functions that say what they are called with, what that leads to, and what they return:
// "FUNCTION<TAB>EXPRESSION<TAB>VALUE".
use std::hint::black_box;

pub struct Small {
    pub first: i32,
    pub second: i32,
}
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum State {
    Idle = 0,
    Busy = 3,
}
pub struct Request<'a> {
    pub id: i64,
    pub port: u16,
    pub name: String,
    pub path: &'a str,
    pub state: State,
    pub keep: bool,
    pub ratio: f64,
    pub raw: [u8; 4],
    pub small: Small,
    pub next: Option<&'a Request<'a>>,
}

#[inline(never)]
pub fn scalars(a: i8, b: u8, c: i16, d: u16, e: i32, f: u64, g: bool, h: i64) -> i64 {
    println!("scalars\ta\t{a}\nscalars\tb\t{b}\nscalars\tc\t{c}\nscalars\td\t{d}\nscalars\te\t{e}\nscalars\tf\t{f}");
    println!("scalars\tg\t{}\nscalars\th\t{h}\nscalars_ret\tretval\t{}", g as u8, h - 1);
    black_box(h - 1)
}

#[inline(never)]
pub fn texts(text: &str, owned: String, by_reference: &String, count: usize) -> usize {
    println!("texts\ttext\t\"{text}\"\ntexts\towned\t\"{owned}\"\ntexts\t*by_reference\t\"{by_reference}\"");
    println!("texts\tcount\t{count}\ntexts_ret\tretval\t{}", text.len() + owned.len());
    black_box(text.len() + owned.len())
}

#[inline(never)]
pub fn members(request: &Request, small: Small, list: &[i32]) -> i64 {
    println!("members\trequest->id\t{}\nmembers\trequest->port\t{}", request.id, request.port);
    println!("members\trequest->name\t\"{}\"\nmembers\trequest->path\t\"{}\"", request.name, request.path);
    println!("members\trequest->state\t{}\nmembers\trequest->keep\t{}", request.state as u8, request.keep as u8);
    println!("members\trequest->ratio\t{:?}\nmembers\trequest->raw[3]\t{}", request.ratio, request.raw[3]);
    println!("members\trequest->small.second\t{}", request.small.second);
    println!("members\tsmall.first\t{}\nmembers\tsmall.second\t{}", small.first, small.second);
    println!("members\tlist.length\t{}\nmembers\tlist.data_ptr[1]\t{}", list.len(), list[1]);
    println!("members_ret\tretval\t{}", request.id + small.first as i64);
    black_box(request.id + small.first as i64)
}

#[inline(never)]
pub fn changed(mut n: i32, mut m: u64) -> i32 {
    println!("changed\tn\t{n}\nchanged\tm\t{m}");
    n += 1;
    m *= 3;
    println!("changed_ret\tretval\t{}", n + m as i32);
    black_box(n + m as i32)
}

fn main() {
    for i in 0..3i32 {
        let path = format!("/a/path/{i}");
        let request = Request {
            id: -5_000_000_000 * (i as i64 + 1),
            port: 60000 + i as u16,
            name: format!("name {i}"),
            path: &path,
            state: if i == 1 { State::Idle } else { State::Busy },
            keep: i != 1,
            ratio: 1.0 / (i as f64 + 3.0),
            raw: [1, 0, 2, 250 + i as u8],
            small: Small { first: i, second: -7 },
            next: None,
        };
        scalars(-100 - i as i8, 250 + i as u8, -30000, 60000 + i as u16, -2_000_000_000 - i, u64::MAX - i as u64, i == 1, -9 - i as i64);
        texts(&path[1..], format!("owned {i}"), &request.name, 7 + i as usize);
        members(&request, Small { first: i, second: -i }, &[i, 10 * i, 3]);
        changed(i, 7);
        black_box(&request.next);
    }
}
