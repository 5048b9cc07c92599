// SPDX-License-Identifier: BSD-2-Clause
// Go functions that say what they are called with, what that leads to, and what they return:
// "FUNCTION<TAB>EXPRESSION<TAB>VALUE".
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func say(function, expression string, value interface{}) {
	if text, is := value.(string); is {
		fmt.Printf("%s\t%s\t\"%s\"\n", function, expression, text)
	} else if truth, is := value.(bool); is {
		fmt.Printf("%s\t%s\t%d\n", function, expression, map[bool]int{false: 0, true: 1}[truth])
	} else {
		fmt.Printf("%s\t%s\t%v\n", function, expression, value)
	}
}

// What debug information calls the first result if it has no name.
func nameless() string {
	if runtime.Version() < "go1.20" {
		return "b0"
	}
	return "r0"
}

type Name string
type State uint8

type Small struct {
	first, second int32
}
type Five struct {
	a, b, c, d int64
	text       string
}
type Item struct {
	number int64
}
type Gaps struct {
	first  uint32
	second uint16
	item   *Item
}
type Nested struct {
	gaps   Gaps
	number int64
	array  [1]uint8
	last   [1]int64
}
type Mixed struct {
	state  State
	_      int16
	name   Name
	bytes  [3]uint8
	nested Small
	next   *Mixed
	ratio  float64
	words  []string
}

//go:noinline
func scalars(a int8, b uint8, c int16, d uint16, e int32, f uint32, g int64, h uint64, i bool) int8 {
	say("scalars", "a", a)
	say("scalars", "b", b)
	say("scalars", "c", c)
	say("scalars", "d", d)
	say("scalars", "e", e)
	say("scalars", "f", f)
	say("scalars", "g", g)
	say("scalars", "h", h)
	say("scalars", "i", i)
	return a - 1
}

//go:noinline
func many(a, b, c, d, e, f, g, h, i, j, k int, l uint8, m uint8, text string) (int, uint8, uint8) {
	for name, value := range map[string]int{"a": a, "e": e, "h": h, "i": i, "j": j, "k": k} {
		_ = name
		_ = value
	}
	say("many", "a", a)
	say("many", "h", h)
	say("many", "i", i)
	say("many", "j", j)
	say("many", "k", k)
	say("many", "l", l)
	say("many", "m", m)
	say("many", "text", text)
	say("many_ret", "retval.r0", k-a)
	say("many_ret", "retval.r1", m)
	say("many_ret", "retval.r2", l)
	return k - a, m, l
}

//go:noinline
func texts(text string, name Name, bytes []byte, words ...string) (result string, size int, err error) {
	say("texts", "text", text)
	say("texts", "name", string(name))
	say("texts", "bytes.len", len(bytes))
	say("texts", "bytes.cap", cap(bytes))
	say("texts", "words.len", len(words))
	say("texts", "words.array[1]", words[1])
	result, size = text+"+"+string(name), len(bytes)
	if size > 3 {
		err = errors.New("too long")
	}
	say("texts_ret", "retval.result", result)
	say("texts_ret", "retval.size", size)
	return
}

//go:noinline
func structs(small Small, five Five, array [2]int16, one [1]int32, mixed *Mixed, empty struct{}, tail int16) Five {
	say("structs", "small.first", small.first)
	say("structs", "small.second", small.second)
	say("structs", "five.a", five.a)
	say("structs", "five.text", five.text)
	say("structs", "array[1]", array[1])
	say("structs", "one[0]", one[0])
	say("structs", "mixed->state", mixed.state)
	say("structs", "mixed->name", string(mixed.name))
	say("structs", "mixed->bytes[2]", mixed.bytes[2])
	say("structs", "mixed->nested.second", mixed.nested.second)
	say("structs", "mixed->next->next->name", string(mixed.next.next.name))
	say("structs", "mixed->ratio", mixed.ratio)
	say("structs", "mixed->words.array[0]", mixed.words[0])
	say("structs", "tail", tail)
	five.c += int64(tail)
	say("structs_ret", "retval.a", five.a)
	say("structs_ret", "retval.c", five.c)
	say("structs_ret", "retval.text", five.text)
	return five
}

// Behind members that end off the alignment of what follows, registers have nothing.
//
//go:noinline
func gaps(first uint8, gaps Gaps, nested Nested) int {
	say("gaps", "first", first)
	say("gaps", "gaps.first", gaps.first)
	say("gaps", "gaps.second", gaps.second)
	say("gaps", "gaps.item->number", gaps.item.number)
	say("gaps", "nested.gaps.second", nested.gaps.second)
	say("gaps", "nested.gaps.item->number", nested.gaps.item.number)
	say("gaps", "nested.number", nested.number)
	return int(first) + int(nested.last[0]) + int(nested.array[0])
}

//go:noinline
func blanks(_ int, b int, _ string, text string, _ ...int) (_ int, even bool) {
	say("blanks", "b", b)
	say("blanks", "text", text)
	say("blanks_ret", "retval."+nameless(), 0)
	say("blanks_ret", "retval.even", b%2 == 0)
	even = b%2 == 0
	return
}

//go:noinline
func generic[T any](value T, n int) (T, int) {
	say("generic", "n", n)
	say("generic_ret", "retval.r1", n+1)
	return value, n + 1
}

//go:noinline
func recovers(n int) (result int) {
	say("recovers", "n", n)
	say("recovers_ret", "retval", map[bool]int{false: n + 1, true: -7}[n%2 == 0])
	defer func() {
		if recover() != nil {
			result = -7
		}
	}()
	if n%2 == 0 {
		panic("even")
	}
	return n + 1
}

//go:noinline
func floats(x float64, n int, y float32) (float64, int) {
	say("floats", "n", n)
	say("floats_ret", "retval.r1", n*2)
	return x + float64(y), n * 2
}

//go:noinline
func (m *Mixed) method(n int, other Mixed) *Mixed {
	say("method", "m->state", m.state)
	say("method", "n", n)
	say("method", "other.name", string(other.name))
	say("method_ret", "retval->name", string(m.next.name))
	return m.next
}

func main() {
	all := [3]Mixed{}
	for i := range all {
		all[i] = Mixed{State(200 + i), 0, Name(fmt.Sprint("name-", i)), [3]uint8{1, 0, uint8(250 + i)},
			Small{int32(i), int32(-i - 5)}, &all[(i+1)%3], 1 / float64(i+3), []string{fmt.Sprint("word", i), "x"}}
	}
	for i := 0; i < 3; i++ {
		n := i + len(os.Args)
		scalars(int8(-100-n), uint8(200+n), int16(-30000-n), uint16(60000+n), int32(-2000000000-n), uint32(4000000000)+uint32(n),
			-9000000000000-int64(n), 18000000000000000000+uint64(n), n%2 == 0)
		many(n, 2, 3, 4, 5, 6, 7, -n, 900+n, 1000+n, 1100+n, uint8(n), uint8(2*n), fmt.Sprint("many", n))
		texts(fmt.Sprint("a text ", n), Name(fmt.Sprint("n", n)), make([]byte, n+1, 10), "first", fmt.Sprint("second", n))
		structs(Small{int32(n), -7}, Five{int64(n), 2, 3, 4, fmt.Sprint("five", n)}, [2]int16{1, int16(-n)}, [1]int32{int32(n)}, &all[i],
			struct{}{}, int16(-n))
		own := Gaps{uint32(90 + n), uint16(60000 + n), &Item{int64(-n)}}
		gaps(uint8(n), own, Nested{Gaps{7, uint16(n), own.item}, int64(-1000 - n), [1]uint8{3}, [1]int64{int64(n)}})
		blanks(1, n, "nobody", fmt.Sprint("seen", n), 1, 2, 3)
		generic("text", n)
		generic(n, n*2)
		recovers(n)
		floats(0.5, n, 2.5)
		all[i].method(n, all[(i+2)%3])
	}
}
