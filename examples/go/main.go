// SPDX-License-Identifier: BSD-2-Clause

// Lists probes with the types of their arguments, or traces them, from Go:
//
//	trace FILE                   lists, unprivileged
//	trace PROBE MILLISECONDS     traces, as root, until nothing comes for so long: "usdt:./server:db:query"
//
// Built by `go build`, where pkg-config finds usdt-c.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"example.org/trace/usdt"
)

func show(event usdt.Event) {
	args := make([]string, len(event.Args))
	for n, value := range event.Args {
		switch value := value.(type) {
		case string:
			args[n] = strconv.Quote(value)
		case nil:
			args[n] = "null"
		case usdt.Unreadable:
			args[n] = "<" + string(value) + ">"
		default:
			args[n] = fmt.Sprint(value)
		}
	}
	fmt.Printf("%d %s:%s %s\n", event.PID, event.Provider, event.Name, strings.Join(args, " "))
}

func list(file string) error {
	points, err := usdt.List(file)
	for _, point := range points {
		fmt.Printf("%s:%s(%s)\n", point.Provider, point.Name, strings.Join(point.Types, ", "))
	}
	return err
}

func trace(probe string, wait time.Duration) error {
	tracer, err := usdt.Start(probe)
	if err != nil {
		return err
	}
	defer tracer.Close()
	fmt.Fprintln(os.Stderr, "tracing")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	quiet := time.AfterFunc(wait, cancel)
	for event := range tracer.Events(ctx) {
		quiet.Reset(wait)
		show(event)
	}
	counts, err := tracer.Counts()
	fmt.Printf("%d hits, %d delivered, %d lost\n", counts.Hits, counts.Delivered, counts.Lost)
	return err
}

func run(words []string) error {
	switch len(words) {
	case 1:
		return list(words[0])
	case 2:
		milliseconds, err := strconv.Atoi(words[1])
		if err != nil {
			return err
		}
		return trace(words[0], time.Duration(milliseconds)*time.Millisecond)
	}
	return fmt.Errorf("usage: trace FILE | trace PROBE MILLISECONDS")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "trace:", err)
		os.Exit(1)
	}
}
