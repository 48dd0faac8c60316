// From Go to C, and from there to Go again: `cgo MS`.
package main

/*
#include <stdint.h>
extern void back(int);
static __attribute__((noinline)) uint64_t burn(uint64_t n)
{
	volatile uint64_t s = 0;

	for (uint64_t i = 0; i < n; i++)
		s += i;
	return s;
}
static __attribute__((noinline)) void through(int n) { back(n); __asm__ volatile("" ::: "memory"); }
*/
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

var sum uint64

//export back
func back(n C.int) { spin(uint64(n)) }

//go:noinline
func spin(n uint64) {
	for i := uint64(0); i < n; i++ {
		sum += i
	}
}

func main() {
	ms, _ := strconv.Atoi(os.Args[1])
	until := time.Now().Add(time.Duration(ms) * time.Millisecond)

	for time.Now().Before(until) {
		C.burn(20000)
		C.through(20000)
	}
	fmt.Println("done")
}
