// SPDX-License-Identifier: BSD-2-Clause
// The same in Go: functions that return 1000 more than what they are given, or panic, on stacks that grow and move.
package main

import (
	"fmt"
	"os"
	"sync"
)

type server struct{ base int }

//go:noinline
func behave(id int) int {
	var room [200]int
	for i := range room {
		room[i] = id
	}
	if id%10 == 9 {
		panic("left")
	}
	if id%10 > 4 {
		return behave(id-1) + room[id%200] - id
	}
	return room[id%200]
}

//go:noinline
func work(id int) int {
	behave(id)
	return 1000 + id
}

//go:noinline
func (s *server) handle(id int) int {
	behave(id)
	return s.base + id
}

//go:noinline
func pick[T any](id int, what T) int {
	behave(id)
	return 1000 + id
}

func call(id int) (sum int) {
	defer func() {
		if recover() != nil {
			sum = 7
		}
	}()
	s := &server{1000}
	return work(id) + s.handle(id) + pick[string](id, "a")
}

func main() {
	var all sync.WaitGroup
	sums := make([]int, 8)
	for g := range sums {
		all.Add(1)
		go func(g int) {
			defer all.Done()
			for i := 0; i < 30; i++ {
				sums[g] += call(i)
			}
		}(g)
	}
	all.Wait()
	sum := 0
	for _, each := range sums {
		sum += each
	}
	fmt.Println("go", sum)
	os.Exit(sum % 100)
}
