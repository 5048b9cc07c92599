// SPDX-License-Identifier: BSD-2-Clause
// Interfaces of Go, errors above all, of types that the library has and of its own.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
)

type Code int

func (c Code) Error() string { return "code " + strconv.Itoa(int(c)) }

type Mine struct {
	Op string
	N  int64
}

func (m *Mine) Error() string { return m.Op }

type Shape interface{ Area() int }
type Square struct{ side int }

func (s Square) Area() int { return s.side * s.side }

//go:noinline
func fails(n int) (int, error) {
	switch n {
	case 0:
		return 1, nil
	case 1:
		return 2, errors.New("plain message")
	case 2:
		return 3, fmt.Errorf("outer: %w", errors.New("inner"))
	case 3:
		return 4, &Mine{"mine", 5}
	case 4:
		return 5, Code(77)
	case 5:
		return 6, io.EOF
	}
	return 7, syscall.EPERM
}

//go:noinline
func takes(err error, n int) int {
	if err != nil {
		return n + len(err.Error())
	}
	return n
}

//go:noinline
func anything(v interface{}, s Shape) int {
	if s != nil {
		return s.Area()
	}
	if v == nil {
		return 0
	}
	return 2
}

func main() {
	for i := 0; i < 7; i++ {
		n, err := fails(i)
		takes(err, n)
	}
	anything(nil, nil)
	anything(42, Square{3})
	anything("text", nil)
	anything(&Mine{"x", 1}, nil)
	anything(true, nil)
	anything(-2.5, nil)
	fmt.Fprintln(os.Stderr, "done")
}
