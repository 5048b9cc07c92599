// SPDX-License-Identifier: BSD-2-Clause
// Functions that say the lists they are called with, as JSON: "FUNCTION<TAB>PARAMETER<TAB>LIST".
package main

import (
	"encoding/json"
	"fmt"
)

type id int32

type ids []id

type box struct {
	Items []string
	Count int
}

func say(function, name string, list any) {
	text, _ := json.Marshal(list)
	fmt.Printf("%s\t%s\t%s\n", function, name, text)
}

//go:noinline
func slices(numbers []int, words []string) int {
	say("slices", "numbers", numbers)
	say("slices", "words", words)
	return len(numbers) + len(words)
}

//go:noinline
func named(list ids, small []uint16) int {
	say("named", "list", list)
	say("named", "small", small)
	return len(list) + len(small)
}

//go:noinline
func members(b *box) int {
	say("members", "b->Items", b.Items)
	return len(b.Items) + b.Count
}

func main() {
	many := []int{}
	for i := 0; i < 30; i++ {
		many = append(many, -i*5000000000)
	}
	slices([]int{1, -2, 3}, []string{"one", "", "three"})
	slices(many, []string{})
	named(ids{7, -8}, []uint16{1, 65535})
	named(ids{}, []uint16{})
	members(&box{[]string{"a", "bc"}, 2})
}
