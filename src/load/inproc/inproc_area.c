/* Lays out the memory that the tracer and the traced processes share, for one image. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ticks.h"
#include "load/inproc/events/proc_events.h"
#include "load/inproc/inproc_private.h"
#include "load/inproc/memory/agent_blob.h"
#include "load/inproc/memory/inproc_files.h"
#include "load/inproc/state/area.h"
#include "load/inproc/state/identity.h"
#include "wire/wire_unwind.h"

enum {
	PAGE = 4096,
	LINE = 64,
	HASH_ENTRIES = 1 << 20,
	AGG_ENTRIES = 1 << 16,
	OTHERS_SHARE = 4, /* of the machine's memory, that another user's process may fill */
};

/* Threads do not wait for a tracer without a heartbeat for this long: it is stopped, or dead
 * together with its watchdog. */
static const uint64_t HEARTBEAT_MAX = 30ull * 1000 * 1000 * 1000;

static uint64_t power_of_two(uint64_t n)
{
	uint64_t p = 16;

	while (p < n)
		p <<= 1;
	return p;
}

/* --- the mappings --- */

/* Returns true when [addr, addr + size) is free in the process. */
static bool is_free(pid_t pid, uint64_t addr, uint64_t size)
{
	struct mappings maps = { 0 };
	uint32_t i;
	bool free;

	err_free(mappings_read_whole(pid, &maps));
	i = mappings_from(&maps, addr);
	free = i == maps.n || maps.v[i].start >= addr + size;
	mappings_free(&maps);
	return free;
}

static bool base_is_free(const struct inproc_engine *e, uint64_t base)
{
	const uint64_t size = WIRE_BASE_STEP;

	for (uint32_t i = 0; i < e->named.ntargets; i++)
		if (!is_free(e->named.targets[i].pid, base, size))
			return false;
	return is_free(getpid(), base, size);
}

/* fd -1: anonymous. */
static struct err *map_fixed(uint64_t at, uint64_t size, int prot, int fd)
{
	int flags = MAP_FIXED_NOREPLACE | MAP_NORESERVE |
		    (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED);

	return mmap((void *)at, size, prot, flags, fd, 0) == MAP_FAILED
		       ? err_errno(errno, "mapping %llu bytes at 0x%llx", (unsigned long long)size,
				   (unsigned long long)at)
		       : NULL;
}

static struct err *map_here(struct inproc_engine *e)
{
	struct err *err;
	void *p;

	for (int i = 0; i < WIRE_BASES && !e->addr; i++)
		if (base_is_free(e, WIRE_BASE + (uint64_t)i * WIRE_BASE_STEP))
			e->addr = WIRE_BASE + (uint64_t)i * WIRE_BASE_STEP;
	if (!e->addr)
		return err_new(
			ENOMEM,
			"no range of addresses is free in descry and in every traced process");
	err = files_create(&e->files, WIRE_CODE_SIZE, WIRE_FACTS_SIZE, WIRE_SHARED_MAX);
	if (err)
		return err;
	/* maps it for writing first, so that `descry heal` distinguishes a tracer from a traced
	 * process at any instant */
	p = mmap(NULL, WIRE_CODE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, e->files.code.fd, 0);
	if (p == MAP_FAILED)
		return err_errno(errno, "mapping code");
	e->code = p;
	err = map_fixed(e->addr, WIRE_CODE_SIZE, PROT_READ | PROT_EXEC, e->files.code.fd);
	if (err)
		return err;
	err = map_fixed(e->addr + WIRE_FACTS, WIRE_FACTS_SIZE, PROT_READ | PROT_WRITE,
			e->files.facts.fd);
	if (err)
		return err;
	e->area = (struct wire_area *)(e->addr + WIRE_FACTS);
	err = map_fixed(e->addr + WIRE_SHARED, WIRE_SHARED_MAX, PROT_READ | PROT_WRITE,
			e->files.shared.fd);
	if (err)
		return err;
	e->common = (struct wire_common *)(e->addr + WIRE_SHARED);
	e->room.shared_size = WIRE_SHARED_MAX;
	madvise(e->area, WIRE_FACTS_SIZE, MADV_DONTDUMP);
	madvise(e->common, WIRE_SHARED_MAX, MADV_DONTDUMP);
	err = map_fixed(e->addr + WIRE_PRIVATE, area_private_size(), PROT_READ | PROT_WRITE, -1);
	if (!err)
		e->private = (struct wire_private *)(e->addr + WIRE_PRIVATE);
	return err;
}

/* --- maps --- */

/* Returns true when the user has set the option. */
static bool was_set(const struct inproc_engine *e, enum option_id id)
{
	return e->base.image->options && e->base.image->options->v[id].set;
}

static void lay_out_hash(struct inproc_engine *e, struct wire_map *w, const char *name,
			 uint32_t max)
{
	if (w->max_entries > max) {
		if (was_set(e, w->role == MAP_AGG ? OPT_AGGSIZE : OPT_DYNVARSIZE))
			inproc_note(e, "%s reduced to %u keys%s", name, max,
				    w->role == MAP_AGG ? " for each thread" : "");
		w->max_entries = max;
	}
	w->stride = 8 + (uint32_t)round_up(w->key_size, 8) + (uint32_t)round_up(w->value_size, 8);
	w->buckets = power_of_two((uint64_t)w->max_entries * 2);
}

static void lay_out_tables(struct inproc_engine *e, struct wire_map *w)
{
	uint64_t *inner;

	w->kind = WIRE_MAP_TABLES;
	w->base = area_alloc(e, (uint64_t)w->max_entries * 8);
	inner = (uint64_t *)w->base;
	for (uint32_t i = 0; inner && i < w->max_entries; i++)
		inner[i] = 0;
}

/* Returns true for maps that programs only read. No process may change them, because other
 * processes and the tracer rely on them. */
static bool is_constant(enum map_role role)
{
	return role == MAP_RODATA || role == MAP_SYSCALLS;
}

/* Returns true for count() with known keys: one word for each key. A thread adds to it by one
 * instruction, and nobody clears it. Nobody reclaims its pages either, so it must be small. */
static bool is_counters(const struct image_map *m)
{
	enum { COUNTERS_MAX = 1 << 16 };

	return m->value_size == 8 && m->max_entries <= COUNTERS_MAX / 8;
}

static struct err *lay_out(struct inproc_engine *e, struct wire_map *w, const struct image_map *m)
{
	uint64_t (*const alloc)(struct inproc_engine *, uint64_t) =
		is_constant(m->role) ? area_alloc : area_alloc_shared;
	bool per_thread = m->role == MAP_COUNTERS || m->role == MAP_SCRATCH;
	uint32_t ring;

	w->role = m->role;
	w->key_size = m->key_size;
	w->value_size = m->value_size;
	w->max_entries = m->max_entries;
	w->flags = m->role == MAP_SCRATCH ? WIRE_MAP_BUSY_WORD : 0;
	w->stride = (uint32_t)round_up(m->value_size, 8);
	switch (m->type) {
	case BPF_MAP_TYPE_ARRAY:
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		if (m->role == MAP_AGG) {
			const uint64_t size = round_up((uint64_t)w->stride * w->max_entries, LINE);

			w->kind = WIRE_MAP_AGG_ARRAY;
			w->gen_stride = is_counters(m) ? 0 : size;
			w->base = area_in_slot(e, is_counters(m) ? size : 2 * size);
		} else if (per_thread) {
			w->kind = WIRE_MAP_THREAD_ARRAY;
			w->base = area_in_slot(e, (uint64_t)w->stride * w->max_entries);
		} else {
			w->kind = WIRE_MAP_ARRAY;
			w->base = alloc(e, (uint64_t)w->stride * w->max_entries);
		}
		break;
	case BPF_MAP_TYPE_PERCPU_HASH:
		w->kind = WIRE_MAP_AGG_HASH;
		lay_out_hash(e, w, m->name, AGG_ENTRIES);
		w->gen_stride = round_up(sizeof(struct wire_agg_table) + w->buckets * 4 +
						 (uint64_t)w->stride * w->max_entries,
					 PAGE);
		w->base = area_in_slot(e, 2 * w->gen_stride);
		break;
	case BPF_MAP_TYPE_HASH:
	case BPF_MAP_TYPE_LRU_HASH:
		w->kind = WIRE_MAP_HASH;
		lay_out_hash(e, w, m->name, HASH_ENTRIES);
		w->base = area_alloc_shared(e, w->buckets * w->stride);
		w->used = area_alloc_shared(e, sizeof(uint64_t));
		break;
	case BPF_MAP_TYPE_RINGBUF:
		w->kind = WIRE_MAP_RING;
		w->max_entries = (uint32_t)power_of_two(w->max_entries);
		ring = was_set(e, OPT_BUFSIZE) ? INPROC_RING_MAX : INPROC_RING;
		if (m->role == MAP_DATA && w->max_entries > ring) {
			w->max_entries = ring;
			if (was_set(e, OPT_BUFSIZE))
				inproc_note(e, "buffer %s reduced to %u bytes for each thread",
					    m->name, w->max_entries);
		}
		if (m->role == MAP_CONTROL && w->max_entries > INPROC_CONTROL_RING)
			w->max_entries = INPROC_CONTROL_RING;
		w->base = area_in_slot(e, sizeof(struct wire_ring) + w->max_entries);
		break;
	case BPF_MAP_TYPE_TASK_STORAGE:
		w->kind = WIRE_MAP_TASK;
		w->base = area_in_slot(e, w->stride);
		break;
	case BPF_MAP_TYPE_ARRAY_OF_MAPS: lay_out_tables(e, w); break;
	default:
		return err_new(ENOTSUP, "map %s: type %d is not known to the in-process engine",
			       m->name, m->type);
	}
	return !w->base || (w->kind == WIRE_MAP_HASH && !w->used)
		       ? err_new(ENOMEM, "map %s does not fit", m->name)
		       : NULL;
}

static void fill(const struct wire_map *w, const struct image_map *m)
{
	for (uint32_t i = 0; m->init && i < (m->ninit ? m->ninit : 1); i++)
		if (i < w->max_entries)
			memcpy((uint8_t *)w->base + (uint64_t)i * w->stride,
			       (const uint8_t *)m->init + (uint64_t)i * m->value_size,
			       m->value_size);
}

static struct err *lay_out_maps(struct inproc_engine *e, const struct image *img)
{
	struct err *err;

	e->room.thread_used = WIRE_THREAD_SPACE;
	e->area->maps = area_alloc(e, sizeof(struct wire_map) * (img->nmaps + 1));
	e->area->nmaps = img->nmaps;
	e->maps = (struct wire_map *)e->area->maps;
	for (uint32_t i = 0; i < img->nmaps; i++) {
		struct wire_map *w = &e->maps[i];

		w->index = i;
		err = lay_out(e, w, &img->maps[i]);
		if (err)
			return err;
		if (w->kind == WIRE_MAP_ARRAY)
			fill(w, &img->maps[i]);
		if (w->role == MAP_COUNTERS)
			e->area->counters_base = w->base;
	}
	return NULL;
}

/* --- clock --- */

static void set_clock(struct inproc_engine *e)
{
	struct ticks_clock clock;

	if (!ticks_clock(&clock))
		return;
	e->area->clock.mult = clock.factor;
	e->area->clock.base_ns = clock.ns - ticks_ns(&clock, clock.ticks);
}

/* --- thread slots --- */

static void init_thread(struct inproc_engine *e, uint32_t slot)
{
	struct wire_thread *t = area_thread(e, slot);

	t->slot = slot;
}

/* Takes slot 0 for this process, for BEGIN, END and timers. In shared memory only the slot's owner
 * is set; here, private memory lies over the slot. */
static struct err *claim_self(struct inproc_engine *e)
{
	struct wire_thread *t = area_thread(e, 0);
	struct wire_process *p = e->list;
	struct wire_own *o;

	t->owner = 1;
	if (mmap(t, e->room.thread_stride, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return err_errno(errno, "mapping the tracer's own slot");
	init_thread(e, 0);
	p->state = WIRE_PROCESS_TRACED;
	p->pid = p->own_pid = (uint32_t)getpid();
	p->ppid = (uint32_t)getppid();
	p->uid = getuid();
	p->gid = getgid();
	p->task = area_task(e, getpid());
	e->private->ready = 1;
	e->private->self = (struct wire_thread_entry){ .thread = (uintptr_t)t, .rsp = WIRE_IDLE };
	o = (struct wire_own *)((e->room.threads >> e->area->stack_shift) + e->area->stacks);
	o->entry = (uintptr_t)&e->private->self;
	o->holder = (uint32_t)gettid();
	o->pid = (uint32_t)getpid();
	e->own = o;
	t->owner = 1;
	t->tid = t->own_tid = (uint32_t)gettid();
	t->pid = (uint32_t)getpid();
	t->uid = p->uid;
	t->gid = p->gid;
	t->task = o->task = p->task;
	t->random = ticks_now() | 1;
	prctl(PR_GET_NAME, t->comm);
	e->self = t;
	return NULL;
}

static void describe(struct inproc_engine *e, const struct image *img)
{
	struct wire_area *a = e->area;

	a->magic = WIRE_AREA_MAGIC;
	a->version = WIRE_AREA_VERSION;
	a->base = e->addr;
	a->code_size = WIRE_CODE_SIZE;
	a->private_size = area_private_size();
	a->tracer_pid = (uint32_t)getpid();
	a->heartbeat = now_ns();
	a->heartbeat_max = HEARTBEAT_MAX;
	a->gen = WIRE_GEN_RUNS;
	a->nprobes = img->nprobes;
	a->follow = img->family;
	a->together = a->follow || e->named.ntargets > 1;
	a->process_count = 1;
	set_clock(e);
	identity_find(e);
}

/* Lays out the lists of processes and the undo log. */
static struct err *lay_out_lists(struct inproc_engine *e)
{
	const uint64_t ranges_size = sizeof(struct wire_range) * WIRE_RANGES_MAX;
	uint64_t ranges = area_alloc(e, ranges_size * WIRE_PROCESSES_MAX);
	struct wire_area *a = e->area;

	a->processes = area_alloc(e, sizeof(struct wire_process) * WIRE_PROCESSES_MAX);
	a->said = area_alloc_shared(e, sizeof(struct wire_said) * WIRE_PROCESSES_MAX);
	a->undo = area_alloc(e, sizeof(struct wire_undo) * (uint64_t)INPROC_UNDO_MAX);
	a->told = area_alloc(e, sizeof(struct wire_told) * INPROC_THREADS);
	if (!a->processes || !a->said || !ranges || !a->undo || !a->told)
		return err_new(ENOMEM, "the program's maps leave no room in shared memory");
	e->list = (struct wire_process *)a->processes;
	e->said = (struct wire_said *)a->said;
	e->ranges = (struct wire_range *)ranges;
	e->undo = (struct wire_undo *)a->undo;
	for (uint32_t i = 0; i < WIRE_PROCESSES_MAX; i++)
		e->list[i].ranges = ranges + i * ranges_size;
	return NULL;
}

/* The most bytes that the shared file may have. A process can write every page of it, and the pages
 * stay until descry lets the file go. */
static uint64_t most_shared(const struct inproc_engine *e)
{
	const int64_t asked =
		e->base.image->options ? opt_num(e->base.image->options, OPT_SHAREDSIZE) : 0;

	if (asked)
		return (uint64_t)asked;
	for (uint32_t i = 0; i < e->named.ntargets; i++)
		if (!owner_is_us(e->named.targets[i].pid))
			return (uint64_t)sysconf(_SC_PHYS_PAGES) * PAGE / OTHERS_SHARE;
	return UINT64_MAX;
}

/* Determines the number of thread slots. */
static struct err *count_threads(struct inproc_engine *e)
{
	const uint64_t most = most_shared(e), stride = e->room.thread_stride,
		       other = e->room.shared.at - (uintptr_t)e->common + INPROC_LATER +
			       2ull * PAGE,
		       n = most > other ? (most - other) / stride : 0;

	e->room.nthreads = n < INPROC_THREADS ? (uint32_t)n : INPROC_THREADS;
	if (n < INPROC_THREADS_MIN)
		return err_new(
			ENOMEM,
			"the program needs %llu bytes of memory that the traced processes can fill, and %llu are permitted (sharedsize): lower aggsize or bufsize, or use -x engine=kernel",
			(unsigned long long)(other + INPROC_THREADS_MIN * stride),
			(unsigned long long)most);
	if (n < INPROC_THREADS)
		inproc_note(e, "%u threads at a time have slots, because of sharedsize",
			    e->room.nthreads - 1);
	return NULL;
}

/* Lays out the thread slots at the end of the shared mapping, and gives the remaining addresses
 * back. */
static struct err *lay_out_threads(struct inproc_engine *e)
{
	struct err *err;
	struct wire_area *a = e->area;
	uint64_t end;

	a->thread_stride = WIRE_STACK_STRIDE;
	for (a->stack_shift = 0; a->thread_stride < e->room.thread_used; a->stack_shift++)
		a->thread_stride <<= 1;
	e->room.thread_stride = a->thread_stride;
	a->size_of_thread = (uint32_t)e->room.thread_used;
	err = count_threads(e);
	if (err)
		return err;
	a->nthreads = e->room.nthreads;
	a->threads = area_alloc_shared(e, a->thread_stride * a->nthreads + PAGE);
	if (!a->threads)
		return err_new(ENOMEM, "%u thread slots of %llu bytes do not fit", a->nthreads,
			       (unsigned long long)a->thread_stride);
	a->threads = e->room.threads = round_up(a->threads, PAGE);
	a->entries = e->addr + WIRE_PRIVATE + offsetof(struct wire_private, threads);
	a->stacks = e->addr + WIRE_PRIVATE + WIRE_KEPT + WIRE_STACK_STRIDE -
		    sizeof(struct wire_own) - (a->threads >> a->stack_shift);
	end = round_up(e->room.shared.at + INPROC_LATER, PAGE);
	if (end > e->room.shared.end)
		return err_new(ENOMEM, "the program's maps leave no room in shared memory");
	munmap((void *)end, e->room.shared.end - end);
	e->room.shared.end = end;
	e->room.shared_size = a->shared_size = end - (e->addr + WIRE_SHARED);
	a->span = end - (uintptr_t)a;
	return NULL;
}

struct err *area_create(struct inproc_engine *e, const struct image *img)
{
	struct err *err = map_here(e);
	int state = image_find_map(img, MAP_STATE);

	if (err)
		return err;
	if (!agent_blob() || agent_blob_size() > WIRE_CODE_SIZE / 2)
		return err_new(0, "the agent is not part of this build");
	memcpy(e->code, agent_blob(), agent_blob_size());
	e->room.code_used = round_up(agent_blob_size(), PAGE);
	e->room.facts = (struct inproc_room){ (uintptr_t)e->area + round_up(sizeof(*e->area), PAGE),
					      e->addr + WIRE_SHARED };
	e->room.shared =
		(struct inproc_room){ (uintptr_t)e->common + round_up(sizeof(*e->common), PAGE),
				      (uintptr_t)e->common + WIRE_SHARED_MAX };
	describe(e, img);
	err = lay_out_maps(e, img);
	err = err ?: events_lay_out(e, img);
	if (err)
		return err;
	if (state < 0 || img->maps[state].value_size < sizeof(struct wire_state))
		return err_new(0, "the image has no state map");
	e->area->state = e->maps[state].base;
	e->base.state = (struct wire_state *)e->area->state;
	err = lay_out_lists(e) ?: lay_out_threads(e) ?: files_seal(&e->files, e->room.shared_size);
	for (uint32_t i = 0; i < e->room.nthreads && !err; i++)
		init_thread(e, i);
	return err ?: claim_self(e);
}

void area_free(struct inproc_engine *e)
{
	if (e->private)
		munmap(e->private, area_private_size());
	if (e->common)
		munmap(e->common, e->room.shared_size);
	if (e->area)
		munmap(e->area, WIRE_FACTS_SIZE);
	if (e->code)
		munmap(e->code, WIRE_CODE_SIZE);
	if (e->addr)
		munmap((void *)e->addr, WIRE_CODE_SIZE);
	files_close(&e->files);
	e->private = NULL;
	e->common = NULL;
	e->area = NULL;
	e->code = NULL;
	e->addr = 0;
}
