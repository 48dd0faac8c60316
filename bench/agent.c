/* bench/agent builds and runs this. */
#define _GNU_SOURCE
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/ring.h"
#include "agent_world.h"

enum { RUNS = 31, CALLS = 20000 };

typedef uint64_t helper(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, struct wire_thread *);

static struct world w;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}
static helper *entry(enum wire_agent_entry e)
{
	uintptr_t at = w.base + w.head->entry[e];
	helper *fn;

	memcpy(&fn, &at, sizeof(fn));
	return fn;
}

/* Makes call number i of the measured function. */
typedef void step(uint32_t i);

static double system_call; /* the cost of a system call, ns: the unit of targets */

/* Measures fn. target: its highest cost in system calls, 0: any. Returns the median, ns. */
static double measure(const char *what, double target, uint32_t calls, step *fn)
{
	double ns[RUNS];

	for (int r = 0; r < RUNS; r++) {
		uint64_t start = now();

		for (uint32_t i = 0; i < calls; i++)
			fn(i);
		ns[r] = (double)(now() - start) / calls;
	}
	qsort(ns, RUNS, sizeof(*ns), by_value);
	printf("  %-52s %8.1f ns   (least %.1f)", what, ns[RUNS / 2], ns[0]);
	if (target > 0)
		printf("   %.2f of a system call <= %g %s", ns[RUNS / 2] / system_call, target,
		       ns[RUNS / 2] <= target * system_call ? "ok"
		       : ns[0] <= target * system_call      ? "ok at least"
							    : "MISSED");
	printf("\n");
	return ns[RUNS / 2];
}

static helper *f;
static uint64_t a1, a2, a3, a4;
static uint64_t key[64], *value;
static volatile uint64_t sink;

static void getppid_step(uint32_t i)
{
	sink = (uint64_t)syscall(SYS_getppid);
}
static void plain(uint32_t i)
{
	sink = f(a1, a2, a3, a4, 0, w.t);
}
static void by_key(uint32_t i)
{
	value[0] = i % 200 * 64;
	sink = f(a1, (uintptr_t)value, (uintptr_t)value, a4, 0, w.t);
}
static void record(uint32_t i)
{
	struct wire_ring *r = (struct wire_ring *)((uint8_t *)w.t + w.maps[WORLD_RING].base);
	uint64_t *p = (uint64_t *)entry(WIRE_AGENT_ring_reserve)(world_map(&w, WORLD_RING), 32, 0,
								 0, 0, w.t);

	p[0] = i;
	p[3] = i;
	entry(WIRE_AGENT_ring_submit)((uintptr_t)p, 0, 0, 0, 0, w.t);
	__atomic_store_n(&r->tail, r->head, __ATOMIC_RELEASE); /* the consumer's part */
}

static void go(const char *what, enum wire_agent_entry e, double target, uint32_t calls,
	       uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4)
{
	f = entry(e);
	a1 = r1, a2 = r2, a3 = r3, a4 = r4;
	measure(what, target, calls, plain);
}

static uint64_t *deep; /* frames of a made-up stack */
static void stacks(uint64_t *regs)
{
	uint64_t chain[64];

	deep = chain;
	for (int i = 0; i < 32; i++) {
		chain[2 * i] = (uintptr_t)&chain[2 * i + 2];
		chain[2 * i + 1] = 0x400000 + (uint64_t)i;
	}
	regs[4] = (uintptr_t)chain;
	w.t->regs = (uintptr_t)regs;
	w.t->rsp = (uintptr_t)chain - 1024; /* the probe fired below the stack */
	go("get_stack, 16 frames by frame pointers", WIRE_AGENT_get_stack, 4, CALLS, 0,
	   (uintptr_t)w.room, 128, BPF_F_USER_STACK);
}

static void reads(const char *mode, uint32_t calls, double target)
{
	static const char text[] = "a string of 25 characters";
	char name[80], *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);
	uint64_t dst = (uintptr_t)w.room, local = 5;

	memcpy(page, text, sizeof(text));
	world_ranges(&w);
	snprintf(name, sizeof(name), "probe_read, 8 bytes of its stack, %s", mode);
	go(name, WIRE_AGENT_probe_read, 0, calls, dst, 8, (uintptr_t)&local + 1024, 0);
	snprintf(name, sizeof(name), "probe_read, 8 bytes elsewhere, %s", mode);
	go(name, WIRE_AGENT_probe_read, 0, calls, dst, 8, (uintptr_t)page, 0);
	snprintf(name, sizeof(name), "probe_read, 64 bytes elsewhere, %s", mode);
	go(name, WIRE_AGENT_probe_read, 0, calls, dst, 64, (uintptr_t)page, 0);
	snprintf(name, sizeof(name), "probe_read, bad address, %s", mode);
	go(name, WIRE_AGENT_probe_read, 0, calls / 10, dst, 8, 0x7fff00000000, 0);
	snprintf(name, sizeof(name), "probe_read at 0 (clears), 256 bytes, %s", mode);
	go(name, WIRE_AGENT_probe_read, 0, calls, dst, 256, 0, 0);
	snprintf(name, sizeof(name), "probe_read_str, 25 characters, %s", mode);
	go(name, WIRE_AGENT_probe_read_str, target, calls, dst, 256, (uintptr_t)page, 0);
	munmap(page, 8192);
}

int main(void)
{
	uint64_t regs[21] = { 0 };
	char room[4096];

	memset(room, 0, sizeof(room));
	world_make(&w);
	world_ranges(&w);
	world_thread(&w, 4711);
	value = (uint64_t *)(w.room + 4096);
	w.t->rsp = (uintptr_t)__builtin_frame_address(0) - sizeof(room);
	printf("the agent, %u bytes of text\n", w.head->size);
	system_call = measure("a system call (getppid)", 0, CALLS, getppid_step);
	go("thread, by the slow path (an entry further on)", WIRE_AGENT_thread, 0, CALLS, 4711, 0,
	   0, 0);
	go("ktime", WIRE_AGENT_ktime, 0, CALLS, 0, 0, 0, 0);
	go("cpu", WIRE_AGENT_cpu, 0, CALLS, 0, 0, 0, 0);
	go("prandom", WIRE_AGENT_prandom, 0, CALLS, 0, 0, 0, 0);
	go("pid_tgid", WIRE_AGENT_pid_tgid, 0, CALLS, 0, 0, 0, 0);
	go("comm", WIRE_AGENT_comm, 0, CALLS, (uintptr_t)w.room, 16, 0, 0);
	go("strncmp, 8 characters", WIRE_AGENT_strncmp, 0, CALLS, (uintptr_t)w.room, 8,
	   (uintptr_t)w.room + 64, 0);
	go("task_storage_get", WIRE_AGENT_task_storage_get, 0, CALLS, world_map(&w, WORLD_TASK), 1,
	   0, 1);
	go("map_lookup, thread array", WIRE_AGENT_map_lookup, 0, CALLS,
	   world_map(&w, WORLD_COUNTERS), (uintptr_t)w.room, 0, 0);

	a4 = 0;
	f = entry(WIRE_AGENT_map_update);
	a1 = world_map(&w, WORLD_AGG);
	measure("map_update, aggregation, 8-byte keys, 200 of them", 0, CALLS, by_key);
	f = entry(WIRE_AGENT_map_lookup);
	measure("map_lookup, aggregation, 8-byte keys", 0, CALLS, by_key);
	a1 = world_map(&w, WORLD_AGG_TEXT);
	f = entry(WIRE_AGENT_map_update);
	measure("map_update, aggregation, 32-byte keys", 0, CALLS, by_key);
	f = entry(WIRE_AGENT_map_lookup);
	measure("map_lookup, aggregation, 32-byte keys", 0, CALLS, by_key);
	mem_zero(w.room + 4096, 4096);
	go("map_update, aggregation, 256-byte text", WIRE_AGENT_map_update, 0, CALLS,
	   world_map(&w, WORLD_AGG_LONG), (uintptr_t)w.room + 4096, (uintptr_t)w.room + 4096, 0);
	go("map_lookup, aggregation, 256-byte text", WIRE_AGENT_map_lookup, 0, CALLS,
	   world_map(&w, WORLD_AGG_LONG), (uintptr_t)w.room + 4096, 0, 0);
	a4 = 0;
	a1 = world_map(&w, WORLD_HASH);
	f = entry(WIRE_AGENT_map_update);
	measure("map_update, shared hash, 24-byte keys", 0, CALLS, by_key);
	f = entry(WIRE_AGENT_map_lookup);
	measure("map_lookup, shared hash, 24-byte keys", 0, CALLS, by_key);
	measure("ring_reserve + ring_submit, 32 bytes", 0.2, CALLS, record);

	reads("system calls", CALLS / 10, 0);
	world_call(&w, WIRE_AGENT_guard, 7, 0, 0, 0);
	w.area->reads_guarded = 1;
	w.t->stack_lo = w.t->stack_hi = 0;
	reads("guarded", CALLS, 0.5);
	stacks(regs);
	return 0;
}
