// SPDX-License-Identifier: BSD-2-Clause

// Package usdt is libusdt-c for Go: what a module over <usdt/usdtc.h> begins with.
package usdt

/*
#cgo pkg-config: usdt-c
#include <stdlib.h>
#include <usdt/usdtc.h>

// A union is bytes to Go.
static int64_t usdt_signed(const struct usdtc_value* value) { return value->number.i; }
static uint64_t usdt_unsigned(const struct usdtc_value* value) { return value->number.u; }
static double usdt_float(const struct usdtc_value* value) { return value->number.f; }
*/
import "C"

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
	"unsafe"
)

// Error is what the library says. errors.Is(err, syscall.EPERM) works.
type Error struct {
	Errno   syscall.Errno
	Message string
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Errno }

// failure takes over what a function that can fail has left.
func failure(result C.int, why *C.usdtc_error) error {
	if result == 0 {
		return nil
	}
	defer C.usdtc_error_free(why)
	return &Error{Errno: syscall.Errno(-result), Message: C.GoString(C.usdtc_error_message(why))}
}

// Point is a place where a probe is, with the types of its arguments: "u64", "f32".
type Point struct {
	Provider, Name string
	Types          []string
}

// texts are C strings in memory of C, which Go may hand over with a struct.
type texts struct {
	all   **C.char
	count C.size_t
}

func textsOf(words []string) texts {
	if len(words) == 0 {
		return texts{}
	}
	out := texts{(**C.char)(C.calloc(C.size_t(len(words)), C.size_t(unsafe.Sizeof(uintptr(0))))), C.size_t(len(words))}
	for n, word := range words {
		out.slice()[n] = C.CString(word)
	}
	return out
}

func (t texts) slice() []*C.char { return unsafe.Slice(t.all, int(t.count)) }

func (t texts) free() {
	for _, each := range t.slice() {
		C.free(unsafe.Pointer(each))
	}
	C.free(unsafe.Pointer(t.all))
}

func choose(patterns, targets []string) (*C.usdtc_selection, error) {
	wanted, places := textsOf(patterns), textsOf(targets)
	defer wanted.free()
	defer places.free()
	var search C.struct_usdtc_search
	search.size = C.size_t(unsafe.Sizeof(search))
	search.patterns, search.pattern_count = wanted.all, wanted.count
	search.targets, search.target_count = places.all, places.count
	var found *C.usdtc_selection
	var why *C.usdtc_error
	result := C.usdtc_select(&search, &found, &why)
	return found, failure(result, why)
}

// List has the probes of a file.
func List(target string) ([]Point, error) {
	found, err := choose(nil, []string{target})
	if err != nil {
		return nil, err
	}
	defer C.usdtc_selection_free(found)
	points := make([]Point, C.usdtc_selection_count(found))
	for n := range points {
		var point C.struct_usdtc_point
		point.size = C.size_t(unsafe.Sizeof(point))
		C.usdtc_selection_point(found, C.size_t(n), &point, nil)
		points[n] = Point{Provider: C.GoString(point.provider), Name: C.GoString(point.name)}
		for i := C.size_t(0); i < C.size_t(point.arg_count); i++ {
			points[n].Types = append(points[n].Types, typeOf(found, C.size_t(n), i))
		}
	}
	return points, nil
}

func typeOf(found *C.usdtc_selection, n, i C.size_t) string {
	var arg C.struct_usdtc_arg
	arg.size = C.size_t(unsafe.Sizeof(arg))
	C.usdtc_selection_arg(found, n, i, &arg, nil)
	letter := 'u'
	if arg.kind == C.USDTC_TYPE_FLOAT {
		letter = 'f'
	} else if arg.flags&C.USDTC_ARG_SIGNED != 0 {
		letter = 'i'
	}
	return fmt.Sprintf("%c%d", letter, 8*arg.bytes)
}

// Unreadable is the reason why no value could be had.
type Unreadable string

// Event is one hit. Args are int64, uint64, float64, string, []byte (text that is not UTF-8), nil (a null pointer where
// there should be text), or Unreadable.
type Event struct {
	Provider, Name string
	PID, TID       int
	Time           time.Duration // CLOCK_MONOTONIC
	Args           []any
}

func eventOf(event *C.usdtc_event) Event {
	var info C.struct_usdtc_event_info
	info.size = C.size_t(unsafe.Sizeof(info))
	C.usdtc_event_read(event, &info, nil)
	out := Event{
		Provider: C.GoString(info.provider), Name: C.GoString(info.name), PID: int(info.pid), TID: int(info.tid),
		Time: time.Duration(info.time), Args: make([]any, info.arg_count),
	}
	for n := range out.Args {
		out.Args[n] = valueOf(event, C.size_t(n))
	}
	return out
}

func valueOf(event *C.usdtc_event, n C.size_t) any {
	var value C.struct_usdtc_value
	value.size = C.size_t(unsafe.Sizeof(value))
	C.usdtc_event_value(event, n, &value, nil)
	words := C.GoBytes(unsafe.Pointer(value.text.data), C.int(value.text.length))
	switch {
	case value.kind == C.USDTC_VALUE_SIGNED:
		return int64(C.usdt_signed(&value))
	case value.kind == C.USDTC_VALUE_UNSIGNED:
		return uint64(C.usdt_unsigned(&value))
	case value.kind == C.USDTC_VALUE_FLOAT:
		return float64(C.usdt_float(&value))
	case value.kind == C.USDTC_VALUE_TEXT && utf8.Valid(words):
		return string(words)
	case value.kind == C.USDTC_VALUE_BYTES:
		return words
	case value.flags&C.USDTC_VALUE_NULL != 0:
		return nil
	}
	return Unreadable(words)
}

// Counts says what became of hits: Hits == Delivered + Lost, once all was taken.
type Counts struct {
	Hits, Delivered, Lost uint64
}

// Tracer traces from Start to Close. Its methods may be called from any goroutine.
type Tracer struct {
	mutex  sync.Mutex // the library's is one thread's at a time
	tracer *C.usdtc_tracer
}

// Start attaches to what patterns mean: "usdt:./server:db:query", "ucall:./server:handle".
func Start(patterns ...string) (*Tracer, error) {
	found, err := choose(patterns, nil)
	if err != nil {
		return nil, err
	}
	defer C.usdtc_selection_free(found)
	var options C.struct_usdtc_plan_options
	options.size = C.size_t(unsafe.Sizeof(options))
	options.texts = C.USDTC_TEXTS_DESCRIBED | C.USDTC_TEXTS_TYPED | C.USDTC_TEXTS_LIKELY
	var plan *C.usdtc_plan
	var why *C.usdtc_error
	result := C.usdtc_plan_make(found, &options, &plan, &why)
	if result != 0 {
		return nil, failure(result, why)
	}
	defer C.usdtc_plan_free(plan)
	tracer := &Tracer{}
	result = C.usdtc_tracer_start(plan, nil, &tracer.tracer, &why)
	return tracer, failure(result, why)
}

// take has what is there, or comes within a moment, during which others wait.
func (t *Tracer) take(wait time.Duration) ([]Event, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.tracer == nil {
		return nil, &Error{Errno: syscall.EBADF, Message: "the tracer is closed"}
	}
	var batch *C.usdtc_batch
	var why *C.usdtc_error
	result := C.usdtc_tracer_take(t.tracer, C.int(wait.Milliseconds()), 1024, &batch, &why)
	if result != 0 {
		return nil, failure(result, why)
	}
	defer C.usdtc_batch_free(batch)
	events := make([]Event, C.usdtc_batch_count(batch))
	for n := range events {
		events[n] = eventOf(C.usdtc_batch_event(batch, C.size_t(n)))
	}
	return events, nil
}

// Events sends events until ctx is done, or the tracer is closed.
func (t *Tracer) Events(ctx context.Context) <-chan Event {
	out := make(chan Event)
	go func() {
		defer close(out)
		for ctx.Err() == nil {
			events, err := t.take(100 * time.Millisecond)
			if err != nil {
				return
			}
			for _, event := range events {
				select {
				case out <- event:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

// Counts is what became of the hits so far.
func (t *Tracer) Counts() (Counts, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var ledger *C.usdtc_ledger
	var why *C.usdtc_error
	if result := C.usdtc_tracer_ledger(t.tracer, &ledger, &why); result != 0 {
		return Counts{}, failure(result, why)
	}
	defer C.usdtc_ledger_free(ledger)
	number := func(name string) uint64 {
		word := C.CString(name)
		defer C.free(unsafe.Pointer(word))
		var value C.uint64_t
		C.usdtc_ledger_value(ledger, C.SIZE_MAX, word, &value, nil)
		return uint64(value)
	}
	return Counts{number("hits"), number("delivered"), number("lost")}, nil
}

// Close detaches.
func (t *Tracer) Close() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	C.usdtc_tracer_free(t.tracer)
	t.tracer = nil
}
