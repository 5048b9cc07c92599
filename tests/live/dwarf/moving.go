// SPDX-License-Identifier: BSD-2-Clause
// Goroutines whose stacks grow, and so move, while they call; which change threads within calls; and which leave calls
// by panics. Says how often each function was called, and how often a call of wander ended on another thread.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

var deepCalls, wanderCalls, throwsCalls, moved int64

//go:noinline
func deep(n int, text string) int {
	var room [256]byte
	room[n%256] = byte(n)
	atomic.AddInt64(&deepCalls, 1)
	if n == 0 {
		return int(room[0]) + len(text)
	}
	if n%7 == 0 {
		return deep(n-1, text) + int(room[n%256])&1
	}
	return deep(n-1, text) + 1
}

//go:noinline
func wander(id, n int) int {
	atomic.AddInt64(&wanderCalls, 1)
	before := syscall.Gettid()
	syscall.Nanosleep(&syscall.Timespec{Nsec: 20000}, nil)
	runtime.Gosched()
	sum := id
	if n > 0 {
		sum = wander(id, n-1) + 1
	}
	if syscall.Gettid() != before {
		atomic.AddInt64(&moved, 1)
	}
	return sum
}

//go:noinline
func throws(n int) int {
	atomic.AddInt64(&throwsCalls, 1)
	if n%3 == 0 {
		panic("thrown")
	}
	return n
}

func caught(n int) (result int) {
	defer func() {
		if recover() != nil {
			result = -1
		}
	}()
	return throws(n)
}

// Inlined by the compiler.
func pick(n int, text string) string {
	if n%3 == 0 {
		return text
	}
	return "other"
}

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	rounds, _ := strconv.Atoi(os.Args[2])
	var all sync.WaitGroup
	for w := 0; w < workers; w++ {
		all.Add(1)
		go func(w int) {
			defer all.Done()
			for i := 0; i < rounds; i++ {
				done := make(chan int)
				go func() { done <- deep(i%100, "x") }() // on a stack of its own, which begins small
				<-done
			}
			for i := 0; i < rounds/10; i++ {
				wander(w+len(pick(i, "abc")), 3)
				caught(i)
			}
		}(w)
	}
	all.Wait()
	fmt.Println("deep", deepCalls)
	fmt.Println("wander", wanderCalls)
	fmt.Println("throws", throwsCalls)
	fmt.Println("moved", moved)
}
