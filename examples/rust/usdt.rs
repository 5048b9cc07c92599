// SPDX-License-Identifier: BSD-2-Clause
//! libusdt-c as safe Rust: what a crate over <usdt/usdtc.h> begins with. No dependencies; Rust 1.63.
#![allow(dead_code)] // not every program uses all of it

use std::ffi::{CStr, CString, NulError};
use std::fmt;
use std::os::raw::{c_char, c_int};
use std::ptr::{null, null_mut};
use std::time::Duration;

/// The part of the header that is used here: names, layouts and constants are its own.
mod sys {
    use super::{c_char, c_int};

    #[repr(C)]
    pub struct Error {
        _opaque: [u8; 0],
    }
    #[repr(C)]
    pub struct Selection {
        _opaque: [u8; 0],
    }
    #[repr(C)]
    pub struct Plan {
        _opaque: [u8; 0],
    }
    #[repr(C)]
    pub struct Tracer {
        _opaque: [u8; 0],
    }
    #[repr(C)]
    pub struct Batch {
        _opaque: [u8; 0],
    }
    #[repr(C)]
    pub struct Event {
        _opaque: [u8; 0],
    }
    #[repr(C)]
    pub struct Ledger {
        _opaque: [u8; 0],
    }

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Text {
        pub data: *const c_char,
        pub length: usize,
    }

    #[repr(C)]
    pub struct Search {
        pub size: usize,
        pub patterns: *const *const c_char,
        pub pattern_count: usize,
        pub targets: *const *const c_char,
        pub target_count: usize,
        pub pids: *const i32,
        pub pid_count: usize,
        pub program: *const c_char,
        pub stop: *const u8,
    }

    #[repr(C)]
    pub struct Point {
        pub size: usize,
        pub kind: u32,
        pub flags: u32,
        pub full_name: *const c_char,
        pub file: *const c_char,
        pub machine: *const c_char,
        pub provider: *const c_char,
        pub name: *const c_char,
        pub pc: u64,
        pub offset: u64,
        pub semaphore: u64,
        pub args_text: *const c_char,
        pub instruction: *const c_char,
        pub source_file: *const c_char,
        pub source_line: u32,
        pub arg_count: u32,
        pub refused: *const c_char,
    }

    pub const TYPE_FLOAT: u32 = 2;
    pub const ARG_SIGNED: u32 = 1;

    #[repr(C)]
    pub struct Arg {
        pub size: usize,
        pub kind: u32,
        pub bytes: u32,
        pub flags: u32,
        pub part_of: i32,
        pub name: *const c_char,
        pub type_: *const c_char,
        pub meaning: *const c_char,
        pub unit: *const c_char,
        pub source: *const c_char,
        pub refused: *const c_char,
    }

    pub const TEXTS_ALL: u32 = 7; // described, typed, likely

    #[repr(C)]
    pub struct PlanOptions {
        pub size: usize,
        pub pids: *const i32,
        pub pid_count: usize,
        pub user_cookie: u64,
        pub texts: u32,
        pub flags: u32,
        pub text_args: *const *const c_char,
        pub text_arg_count: usize,
        pub values: *const *const c_char,
        pub value_count: usize,
        pub stop: *const u8,
    }

    #[repr(C)]
    pub struct EventInfo {
        pub size: usize,
        pub kind: u32,
        pub probe: u32,
        pub site: u32,
        pub arg_count: u32,
        pub time: u64,
        pub duration: u64,
        pub pid: u32,
        pub tid: u32,
        pub cpu: u32,
        pub reserved: u32,
        pub address: u64,
        pub user_cookie: u64,
        pub comm: Text,
        pub full_name: *const c_char,
        pub file: *const c_char,
        pub provider: *const c_char,
        pub name: *const c_char,
    }

    pub const VALUE_SIGNED: u32 = 1;
    pub const VALUE_UNSIGNED: u32 = 2;
    pub const VALUE_FLOAT: u32 = 3;
    pub const VALUE_TEXT: u32 = 4;
    pub const VALUE_BYTES: u32 = 5;
    pub const VALUE_NULL: u32 = 2; // a flag

    #[repr(C)]
    pub struct Value {
        pub size: usize,
        pub kind: u32,
        pub flags: u32,
        pub bits: u64, // a union of i64, u64 and f64
        pub text: Text,
        pub enumerator: Text,
    }

    #[link(name = "usdt-c")]
    extern "C" {
        pub fn usdtc_error_message(error: *const Error) -> *const c_char;
        pub fn usdtc_error_kind(error: *const Error) -> u32;
        pub fn usdtc_error_free(error: *mut Error);
        pub fn usdtc_select(search: *const Search, selection: *mut *mut Selection, error: *mut *mut Error) -> c_int;
        pub fn usdtc_selection_count(selection: *const Selection) -> usize;
        pub fn usdtc_selection_point(s: *const Selection, n: usize, p: *mut Point, error: *mut *mut Error) -> c_int;
        pub fn usdtc_selection_arg(
            s: *const Selection,
            n: usize,
            arg: usize,
            info: *mut Arg,
            error: *mut *mut Error,
        ) -> c_int;
        pub fn usdtc_selection_free(selection: *mut Selection);
        pub fn usdtc_plan_make(
            selection: *const Selection,
            options: *const PlanOptions,
            plan: *mut *mut Plan,
            error: *mut *mut Error,
        ) -> c_int;
        pub fn usdtc_plan_free(plan: *mut Plan);
        pub fn usdtc_tracer_start(p: *const Plan, options: *const u8, t: *mut *mut Tracer, e: *mut *mut Error) -> c_int;
        pub fn usdtc_tracer_take(
            tracer: *mut Tracer,
            timeout_ms: c_int,
            limit: usize,
            batch: *mut *mut Batch,
            error: *mut *mut Error,
        ) -> c_int;
        pub fn usdtc_tracer_ledger(tracer: *const Tracer, ledger: *mut *mut Ledger, error: *mut *mut Error) -> c_int;
        pub fn usdtc_tracer_free(tracer: *mut Tracer);
        pub fn usdtc_ledger_value(
            ledger: *const Ledger,
            probe: usize,
            name: *const c_char,
            value: *mut u64,
            error: *mut *mut Error,
        ) -> c_int;
        pub fn usdtc_ledger_free(ledger: *mut Ledger);
        pub fn usdtc_batch_count(batch: *const Batch) -> usize;
        pub fn usdtc_batch_event(batch: *const Batch, n: usize) -> *const Event;
        pub fn usdtc_batch_free(batch: *mut Batch);
        pub fn usdtc_event_read(event: *const Event, info: *mut EventInfo, error: *mut *mut Error) -> c_int;
        pub fn usdtc_event_value(event: *const Event, n: usize, value: *mut Value, error: *mut *mut Error) -> c_int;
    }
}

/// What the library says: a number of enum usdtc_error_kind, and words.
#[derive(Debug)]
pub struct Error {
    pub kind: u32,
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Error {}
impl From<NulError> for Error {
    fn from(why: NulError) -> Self {
        Error { kind: 1, message: format!("a name has a NUL: {}", why) }
    }
}
pub type Result<T> = std::result::Result<T, Error>;

/// Calls a function that can fail, whose last parameter is the place for its error.
fn call(function: impl FnOnce(*mut *mut sys::Error) -> c_int) -> Result<()> {
    let mut error = null_mut();
    if function(&mut error) == 0 {
        return Ok(());
    }
    unsafe {
        let out = Error { kind: sys::usdtc_error_kind(error), message: text(sys::usdtc_error_message(error)) };
        sys::usdtc_error_free(error);
        Err(out)
    }
}

/// A struct to fill in: all 0, which means "the default" or "not known", but for its size.
macro_rules! sized {
    ($type:ty) => {{
        #[allow(unused_unsafe)] // where it is used in unsafe functions
        let mut out: $type = unsafe { std::mem::zeroed() };
        out.size = std::mem::size_of::<$type>();
        out
    }};
}

unsafe fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    CStr::from_ptr(from).to_string_lossy().into_owned()
}

unsafe fn bytes<'a>(from: sys::Text) -> &'a [u8] {
    if from.length == 0 {
        return &[];
    }
    std::slice::from_raw_parts(from.data as *const u8, from.length)
}

struct Selection(*mut sys::Selection);

impl Selection {
    /// `pattern` or `target` may be empty.
    fn of(pattern: &str, target: &str, pids: &[i32]) -> Result<Selection> {
        let (pattern, target) = (CString::new(pattern)?, CString::new(target)?);
        let (patterns, targets) = ([pattern.as_ptr()], [target.as_ptr()]);
        let mut search = sized!(sys::Search);
        search.patterns = patterns.as_ptr();
        search.pattern_count = usize::from(!pattern.as_bytes().is_empty());
        search.targets = targets.as_ptr();
        search.target_count = usize::from(!target.as_bytes().is_empty());
        search.pids = pids.as_ptr();
        search.pid_count = pids.len();
        let mut found = null_mut();
        call(|error| unsafe { sys::usdtc_select(&search, &mut found, error) })?;
        Ok(Selection(found))
    }
}

impl Drop for Selection {
    fn drop(&mut self) {
        unsafe { sys::usdtc_selection_free(self.0) }
    }
}

/// A place where a probe is, with the types of its arguments: "u64", "f32".
pub struct Point {
    pub provider: String,
    pub name: String,
    pub types: Vec<String>,
}

/// The probes of a file.
pub fn list(target: &str) -> Result<Vec<Point>> {
    let found = Selection::of("", target, &[])?;
    (0..unsafe { sys::usdtc_selection_count(found.0) }).map(|n| point(&found, n)).collect()
}

fn point(found: &Selection, n: usize) -> Result<Point> {
    let mut point = sized!(sys::Point);
    call(|error| unsafe { sys::usdtc_selection_point(found.0, n, &mut point, error) })?;
    let types = (0..point.arg_count as usize).map(|arg| type_of(found, n, arg)).collect::<Result<_>>()?;
    unsafe { Ok(Point { provider: text(point.provider), name: text(point.name), types }) }
}

fn type_of(found: &Selection, n: usize, arg: usize) -> Result<String> {
    let mut info = sized!(sys::Arg);
    call(|error| unsafe { sys::usdtc_selection_arg(found.0, n, arg, &mut info, error) })?;
    let letter = match info.kind {
        sys::TYPE_FLOAT => 'f',
        _ if info.flags & sys::ARG_SIGNED != 0 => 'i',
        _ => 'u',
    };
    Ok(format!("{}{}", letter, 8 * info.bytes))
}

/// What was passed.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    /// Text that is not UTF-8.
    Bytes(Vec<u8>),
    /// A null pointer where there should be text.
    Null,
    /// No value could be had, and why.
    Unreadable(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Signed(number) => write!(f, "{}", number),
            Value::Unsigned(number) => write!(f, "{}", number),
            Value::Float(number) => write!(f, "{}", number),
            Value::Text(text) => write!(f, "{:?}", text),
            Value::Bytes(bytes) => write!(f, "{:?}", bytes),
            Value::Null => f.write_str("null"),
            Value::Unreadable(why) => write!(f, "<{}>", why),
        }
    }
}

/// One hit.
#[derive(Clone, Debug)]
pub struct Event {
    pub provider: String,
    pub name: String,
    pub pid: u32,
    pub tid: u32,
    /// CLOCK_MONOTONIC.
    pub time: Duration,
    pub args: Vec<Value>,
}

unsafe fn event_of(event: *const sys::Event) -> Result<Event> {
    let mut info = sized!(sys::EventInfo);
    call(|error| sys::usdtc_event_read(event, &mut info, error))?;
    Ok(Event {
        provider: text(info.provider),
        name: text(info.name),
        pid: info.pid,
        tid: info.tid,
        time: Duration::from_nanos(info.time),
        args: (0..info.arg_count as usize).map(|n| value_of(event, n)).collect::<Result<_>>()?,
    })
}

unsafe fn value_of(event: *const sys::Event, n: usize) -> Result<Value> {
    let mut value = sized!(sys::Value);
    call(|error| sys::usdtc_event_value(event, n, &mut value, error))?;
    let words = bytes(value.text);
    Ok(match value.kind {
        sys::VALUE_SIGNED => Value::Signed(value.bits as i64),
        sys::VALUE_UNSIGNED => Value::Unsigned(value.bits),
        sys::VALUE_FLOAT => Value::Float(f64::from_bits(value.bits)),
        sys::VALUE_TEXT => Value::Text(String::from_utf8_lossy(words).into_owned()),
        sys::VALUE_BYTES => Value::Bytes(words.to_vec()),
        _ if value.flags & sys::VALUE_NULL != 0 => Value::Null,
        _ => Value::Unreadable(String::from_utf8_lossy(words).into_owned()),
    })
}

/// What became of hits: hits == delivered + lost, once all was taken.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub hits: u64,
    pub delivered: u64,
    pub lost: u64,
}

/// A trace, from here to the end of this value.
pub struct Tracer(*mut sys::Tracer);

// One thread at a time, whichever: `take` wants it mutable.
unsafe impl Send for Tracer {}

impl Tracer {
    /// Attaches to what `pattern` means: "usdt:./server:db:query", "ucall:./server:handle". `pids`: only hits of these
    /// processes; none: everybody's.
    pub fn start(pattern: &str, pids: &[i32]) -> Result<Tracer> {
        let found = Selection::of(pattern, "", pids)?;
        let mut options = sized!(sys::PlanOptions);
        options.pids = pids.as_ptr();
        options.pid_count = pids.len();
        options.texts = sys::TEXTS_ALL;
        let (mut plan, mut tracer) = (null_mut(), null_mut());
        call(|error| unsafe { sys::usdtc_plan_make(found.0, &options, &mut plan, error) })?;
        let started = call(|error| unsafe { sys::usdtc_tracer_start(plan, null(), &mut tracer, error) });
        unsafe { sys::usdtc_plan_free(plan) };
        started.map(|()| Tracer(tracer))
    }

    /// What is there, or what comes within `wait`; nothing: time is up.
    pub fn take(&mut self, wait: Duration) -> Result<Vec<Event>> {
        let mut batch = null_mut();
        let milliseconds = wait.as_millis().min(c_int::MAX as u128) as c_int;
        call(|error| unsafe { sys::usdtc_tracer_take(self.0, milliseconds, 0, &mut batch, error) })?;
        unsafe {
            let events =
                (0..sys::usdtc_batch_count(batch)).map(|n| event_of(sys::usdtc_batch_event(batch, n))).collect();
            sys::usdtc_batch_free(batch);
            events
        }
    }

    /// Events until none comes for so long.
    pub fn events(&mut self, wait: Duration) -> Events<'_> {
        Events { tracer: self, wait, taken: Vec::new().into_iter() }
    }

    pub fn counts(&self) -> Result<Counts> {
        let mut ledger = null_mut();
        call(|error| unsafe { sys::usdtc_tracer_ledger(self.0, &mut ledger, error) })?;
        let number = |name: &[u8]| -> Result<u64> {
            let mut value = 0;
            let name = name.as_ptr() as *const c_char;
            call(|error| unsafe { sys::usdtc_ledger_value(ledger, usize::MAX, name, &mut value, error) })?;
            Ok(value)
        };
        let read = || -> Result<Counts> {
            Ok(Counts { hits: number(b"hits\0")?, delivered: number(b"delivered\0")?, lost: number(b"lost\0")? })
        };
        let counts = read();
        unsafe { sys::usdtc_ledger_free(ledger) };
        counts
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        unsafe { sys::usdtc_tracer_free(self.0) }
    }
}

/// Tracer::events().
pub struct Events<'a> {
    tracer: &'a mut Tracer,
    wait: Duration,
    taken: std::vec::IntoIter<Event>,
}

impl Iterator for Events<'_> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(event) = self.taken.next() {
            return Some(Ok(event));
        }
        match self.tracer.take(self.wait) {
            Ok(events) => self.taken = events.into_iter(),
            Err(error) => return Some(Err(error)),
        }
        self.taken.next().map(Ok)
    }
}
