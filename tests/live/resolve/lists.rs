// SPDX-License-Identifier: BSD-2-Clause
// Functions that say the lists they are called with, as JSON: "FUNCTION<TAB>PARAMETER<TAB>LIST".
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is done with results, so that they are of use.
static SUM: AtomicUsize = AtomicUsize::new(0);

fn add(number: usize) -> usize {
    SUM.fetch_add(number, Ordering::SeqCst)
}

fn say<T: Debug>(function: &str, name: &str, list: &[T]) {
    println!("{function}\t{name}\t{list:?}");
}

#[inline(never)]
pub fn slices(numbers: &[i32], texts: &[&str], owned: Vec<u16>, by_reference: &Vec<i64>) -> usize {
    say("slices", "numbers", numbers);
    say("slices", "texts", texts);
    say("slices", "owned", &owned);
    say("slices", "by_reference", by_reference);
    add(numbers.len() + texts.len() + owned.len() + by_reference.len())
}

#[inline(never)]
pub fn changed(numbers: &mut [u8], names: Vec<String>) -> usize {
    say("changed", "numbers", numbers);
    say("changed", "names", &names);
    add(numbers.len() + names.len())
}

fn main() {
    let many: Vec<i64> = (0..50).map(|i| i * -3_000_000_000).collect();
    slices(&[1, -2, 3], &["one", "", "three"], vec![1, 65535], &many);
    slices(&[], &[], vec![], &vec![]);
    changed(&mut [0, 255, 7], vec!["first".to_string(), "second".to_string()]);
    changed(&mut [], vec![]);
}
