// Goroutines whose stacks are known: `stacks MS` runs three for MS milliseconds.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

var sum [64]uint64

//go:noinline
func spin(k int, n uint64) uint64 {
	for i := uint64(0); i < n; i++ {
		sum[k*8] += i ^ n
	}
	return sum[k*8]
}

type worker struct{ k int }

//go:noinline
func (w *worker) third(n uint64) uint64 {
	var a [40]uint64

	a[n%40] = spin(w.k, n)
	return a[n%7] + 1
}

//go:noinline
func second(w *worker, n uint64) uint64 { return w.third(n) + 2 }

//go:noinline
func first(k int, until time.Time) {
	for time.Now().Before(until) {
		second(&worker{k}, 20000)
	}
}

//go:noinline
func work(k int, until time.Time, done chan bool) {
	first(k, until)
	done <- true
}

func main() {
	ms, _ := strconv.Atoi(os.Args[1])
	until := time.Now().Add(time.Duration(ms) * time.Millisecond)
	done := make(chan bool)

	go work(1, until, done)
	go work(2, until, done)
	first(0, until)
	<-done
	<-done
	fmt.Println("done")
}
