#define _GNU_SOURCE
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "agent_world.h"
#include "wire/wire_unwind.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { PAGE = 4096, SHARED = 32 << 20 };

extern const uint8_t descry_agent[], descry_agent_end[];

static uint64_t align(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) & ~(unit - 1);
}

static void *map_at(uint64_t at, uint64_t size, int prot, int flags, int fd)
{
	void *p = mmap((void *)at, size, prot, flags | MAP_FIXED_NOREPLACE, fd, 0);

	assert(p == (void *)at);
	return p;
}

uint64_t world_facts(struct world *w, uint64_t size)
{
	uint64_t at = w->facts;

	w->facts = align(at + size, 64);
	assert(w->facts <= (uintptr_t)w->area + WIRE_FACTS_SIZE);
	return at;
}

static void lay_out(struct world *w, uint64_t *used, uint64_t *slot)
{
	struct wire_map *m = w->maps;

	m[WORLD_ARRAY] = (struct wire_map){ .kind = WIRE_MAP_ARRAY,
					    .key_size = 4,
					    .value_size = 8,
					    .stride = 8,
					    .max_entries = 4,
					    .base = (uintptr_t)w->common + *used };
	*used += 64;
	m[WORLD_SCRATCH] = (struct wire_map){ .kind = WIRE_MAP_THREAD_ARRAY,
					      .key_size = 4,
					      .value_size = 512,
					      .stride = 512,
					      .max_entries = 4,
					      .base = *slot,
					      .flags = WIRE_MAP_BUSY_WORD };
	*slot += 4 * 512;
	m[WORLD_COUNTERS] = (struct wire_map){ .kind = WIRE_MAP_THREAD_ARRAY,
					       .key_size = 4,
					       .value_size = 8,
					       .stride = 8,
					       .max_entries = 64,
					       .base = *slot };
	w->area->counters_base = *slot;
	*slot += 64 * 8;
	m[WORLD_AGG] = (struct wire_map){ .kind = WIRE_MAP_AGG_HASH,
					  .key_size = 8,
					  .value_size = 16,
					  .stride = 32,
					  .max_entries = 256,
					  .buckets = 1024,
					  .base = *slot,
					  .gen_stride = 8 + 4096 + 256 * 32 };
	*slot += 2 * m[WORLD_AGG].gen_stride;
	m[WORLD_AGG_TEXT] = (struct wire_map){ .kind = WIRE_MAP_AGG_HASH,
					       .key_size = 32,
					       .value_size = 16,
					       .stride = 56,
					       .max_entries = 256,
					       .buckets = 1024,
					       .base = *slot,
					       .gen_stride = 8 + 4096 + 256 * 56 };
	*slot += 2 * m[WORLD_AGG_TEXT].gen_stride;
	m[WORLD_AGG_LONG] = (struct wire_map){ .kind = WIRE_MAP_AGG_HASH,
					       .key_size = 256,
					       .value_size = 8,
					       .stride = 272,
					       .max_entries = 64,
					       .buckets = 256,
					       .base = *slot,
					       .gen_stride = 8 + 1024 + 64 * 272 };
	*slot += 2 * m[WORLD_AGG_LONG].gen_stride;
	m[WORLD_HASH] = (struct wire_map){ .kind = WIRE_MAP_HASH,
					   .key_size = 24,
					   .value_size = 40,
					   .stride = 72,
					   .max_entries = 1024,
					   .buckets = 2048,
					   .base = (uintptr_t)w->common + *used };
	*used += 2048 * 72;
	m[WORLD_RING] =
		(struct wire_map){ .kind = WIRE_MAP_RING, .max_entries = 4096, .base = *slot };
	*slot += sizeof(struct wire_ring) + 4096;
	m[WORLD_TASK] = (struct wire_map){ .kind = WIRE_MAP_TASK,
					   .key_size = 4,
					   .value_size = 64,
					   .stride = 64,
					   .max_entries = 1,
					   .base = *slot };
	*slot += 64;
	m[WORLD_STACKS] = (struct wire_map){ .kind = WIRE_MAP_HASH,
					     .key_size = 8,
					     .value_size = sizeof(struct wire_stack),
					     .stride = 16 + sizeof(struct wire_stack),
					     .max_entries = 64,
					     .buckets = 128,
					     .base = (uintptr_t)w->common + *used };
	*used += 128 * (16 + sizeof(struct wire_stack));
	m[WORLD_UNWIND] = (struct wire_map){ .kind = WIRE_MAP_TABLES,
					     .key_size = 4,
					     .value_size = 4,
					     .stride = 8,
					     .max_entries = 128,
					     .base = world_facts(w, 128 * 8) };
	m[WORLD_UNWIND_PROCESSES] =
		(struct wire_map){ .kind = WIRE_MAP_HASH,
				   .key_size = 4,
				   .value_size = sizeof(struct wire_unwind_process),
				   .stride = 16 + sizeof(struct wire_unwind_process),
				   .max_entries = 16,
				   .buckets = 32,
				   .base = (uintptr_t)w->common + *used };
	*used += 32 * (16 + sizeof(struct wire_unwind_process));
	*slot = align(*slot, 64);
	m[WORLD_UNWIND_WANTED] =
		(struct wire_map){ .kind = WIRE_MAP_RING, .max_entries = 4096, .base = *slot };
	*slot += sizeof(struct wire_ring) + 4096;
	for (uint32_t i = 0; i < WORLD_MAPS; i++) {
		m[i].index = i;
		m[i].used = (uintptr_t)w->common + *used;
		*used += 64;
	}
}

static uint64_t monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void set_clock(struct wire_clock *c)
{
	uint64_t begin_ns = monotonic(), begin_tsc = __builtin_ia32_rdtsc(), ns, tsc;

	do {
		ns = monotonic();
		tsc = __builtin_ia32_rdtsc();
	} while (ns - begin_ns < 2000000);
	c->mult = (uint64_t)(((unsigned __int128)(ns - begin_ns) << 64) / (tsc - begin_tsc));
	c->base_ns = begin_ns - (uint64_t)((unsigned __int128)begin_tsc * c->mult >> 64);
}

void world_make(struct world *w)
{
	static uint64_t next;
	uint64_t psize = WIRE_KEPT + PAGE + WORLD_THREADS * (uint64_t)WIRE_STACK_STRIDE,
		 used = PAGE, slot = WIRE_THREAD_SPACE;
	int code = memfd_create(WIRE_MEMFD_CODE, MFD_CLOEXEC),
	    facts = memfd_create(WIRE_MEMFD_FACTS, MFD_CLOEXEC),
	    shared = memfd_create(WIRE_MEMFD_SHARED, MFD_CLOEXEC);
	struct wire_area *a;

	memset(w, 0, sizeof(*w));
	w->base = WIRE_BASE + next++ * WIRE_BASE_STEP;
	assert(code >= 0 && facts >= 0 && shared >= 0 && !ftruncate(code, 1 << 20) &&
	       !ftruncate(facts, WIRE_FACTS_SIZE) && !ftruncate(shared, SHARED));
	assert(pwrite(code, descry_agent, (size_t)(descry_agent_end - descry_agent), 0) ==
	       descry_agent_end - descry_agent);
	w->head = map_at(w->base, 1 << 20, PROT_READ | PROT_EXEC, MAP_SHARED, code);
	a = w->area = map_at(w->base + WIRE_FACTS, WIRE_FACTS_SIZE, PROT_READ | PROT_WRITE,
			     MAP_SHARED, facts);
	w->common =
		map_at(w->base + WIRE_SHARED, SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, shared);
	w->private = map_at(w->base + WIRE_PRIVATE, psize, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1);
	madvise(w->private, WIRE_KEPT, MADV_WIPEONFORK);
	w->kept = (struct wire_kept *)((uintptr_t)w->private + WIRE_KEPT);
	close(code);
	close(facts);
	close(shared);

	*a = (struct wire_area){ .magic = WIRE_AREA_MAGIC,
				 .version = WIRE_AREA_VERSION,
				 .base = w->base,
				 .shared_size = SHARED,
				 .span = WIRE_FACTS_SIZE + SHARED,
				 .code_size = 1 << 20,
				 .private_size = psize,
				 .nthreads = WORLD_THREADS,
				 .process_count = 2,
				 .nmaps = WORLD_MAPS };
	w->facts = (uintptr_t)a + PAGE;
	set_clock(&a->clock);
	a->state = (uintptr_t)w->common + used;
	used = align(used + sizeof(struct wire_state), 64);
	a->maps = world_facts(w, sizeof(struct wire_map) * WORLD_MAPS);
	w->maps = (struct wire_map *)a->maps;
	lay_out(w, &used, &slot);
	a->processes = world_facts(w, sizeof(struct wire_process) * WIRE_PROCESSES_MAX);
	a->said = (uintptr_t)w->common + used;
	used += sizeof(struct wire_said) * WIRE_PROCESSES_MAX;
	a->unwinds = world_facts(w, sizeof(struct wire_unwind_process) * WIRE_PROCESSES_MAX);
	w->process = (struct wire_process *)a->processes + 1;
	w->said = (struct wire_said *)a->said + 1;
	w->process->ranges = world_facts(w, sizeof(struct wire_range) * WIRE_RANGES_MAX);
	a->undo = world_facts(w, sizeof(struct wire_undo) * WORLD_UNDO);
	a->nundo = WORLD_UNDO;
	a->told = world_facts(w, sizeof(struct wire_told) * WORLD_THREADS);
	a->gen = WIRE_GEN_RUNS;
	used = align(used, PAGE);
	a->thread_stride = WIRE_STACK_STRIDE;
	for (; a->thread_stride < slot; a->stack_shift++)
		a->thread_stride <<= 1;
	a->threads = (uintptr_t)w->common + used;
	a->stacks = (uintptr_t)w->private + WIRE_KEPT + WIRE_STACK_STRIDE -
		    sizeof(struct wire_own) - (a->threads >> a->stack_shift);
	used += a->thread_stride * WORLD_THREADS;
	w->room = (uint8_t *)w->common + used;
	assert(used + WORLD_ROOM <= SHARED);
	for (uint32_t i = 0; i < WORLD_THREADS; i++) {
		struct wire_thread *t = (struct wire_thread *)(a->threads + i * a->thread_stride);

		t->slot = i;
	}
	((struct wire_thread *)a->threads)->owner = 1; /* the tracer's */
	w->private->self = (struct wire_thread_entry){ .thread = a->threads, .rsp = WIRE_IDLE };
	world_own(w, (struct wire_thread *)a->threads)->entry = (uintptr_t)&w->private->self;
	((struct wire_process *)a->processes)->state = WIRE_PROCESS_TRACED;
	((struct wire_state *)a->state)->active = WIRE_ON;
	*w->process = (struct wire_process){ .state = WIRE_PROCESS_TRACED,
					     .pid = (uint32_t)getpid(),
					     .own_pid = (uint32_t)getpid(),
					     .uid = getuid(),
					     .gid = getgid(),
					     .ranges = w->process->ranges };
	w->kept->pid = (uint32_t)getpid();
	w->private->process = 1;
	w->private->ready = 1;
}

void world_share_nothing(const struct world *w)
{
	assert(!madvise(w->common, SHARED, MADV_DONTFORK));
}

struct wire_own *world_own(const struct world *w, const struct wire_thread *t)
{
	return (struct wire_own *)(((uintptr_t)t >> w->area->stack_shift) + w->area->stacks);
}

struct wire_thread_entry *world_entry(const struct world *w, const struct wire_thread *t)
{
	return (struct wire_thread_entry *)world_own(w, t)->entry;
}

void world_ranges(struct world *w)
{
	struct wire_range *r = (struct wire_range *)w->process->ranges;
	FILE *f = fopen("/proc/self/maps", "re");
	uint32_t n = 0;
	unsigned long lo, hi;
	char line[512], prot[5];

	w->process->version++;
	while (f && fgets(line, sizeof(line), f) && n < WIRE_RANGES_MAX)
		if (sscanf(line, "%lx-%lx %4s", &lo, &hi, prot) == 3 && prot[0] == 'r' &&
		    !strstr(line, "[v"))
			r[n++] = (struct wire_range){ lo, hi };
	if (f)
		fclose(f);
	w->process->nranges = n;
	w->process->version++;
}

uint64_t world_call(const struct world *w, enum wire_agent_entry entry, uint64_t r1, uint64_t r2,
		    uint64_t r3, uint64_t r4)
{
	uint64_t (*fn)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, struct wire_thread *);
	uintptr_t at = w->base + w->head->entry[entry];

	memcpy(&fn, &at, sizeof(fn));
	return fn(r1, r2, r3, r4, 0, w->t);
}

struct wire_thread *world_thread(struct world *w, uint64_t key)
{
	w->t = (struct wire_thread *)world_call(w, WIRE_AGENT_thread, key, 0, 0, 0);
	if (w->t)
		world_entry(w, w->t)->rsp = (uintptr_t)__builtin_frame_address(0);
	return w->t;
}

uint64_t world_map(const struct world *w, enum world_map map)
{
	return (uintptr_t)&w->maps[map];
}
