/* Plays a hostile traced process against its tracer: the bytes determine the writes of the process
 * into the shared memory, and the tracer's steps in between. The engine is the real one
 * (src/load/inproc), without a process: area_create() lays the memory out, and the writes go
 * through another mapping of the same file, as those of a process do. Then the tracer's readers run
 * over it: rings, aggregations, stacks, counters, bells, the list of processes, the consumer with
 * the text and the JSON sink, and the programs that the tracer itself runs (BEGIN, END, tick).
 *
 *	input: number of the D program, flags (WITH_*), then steps: u8 kind of step, its arguments
 *	or: UNDO, then an undo log that a process has forged, for `descry heal`
 *
 * Checks beside the sanitizers: memory of the tracer whose address the process knows is neither
 * changed nor read for the process. No ring gives more records in a pass than it has room for.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/map.h"
#include "agent/ring.h"
#include "base/clock.h"
#include "compile/gen/gen.h"
#include "consume/consume_private.h"
#include "load/inproc/events/proc_events.h"
#include "load/inproc/follow/inproc_follow.h"
#include "load/inproc/inproc_private.h"
#include "load/inproc/patch/bell.h"
#include "load/inproc/patch/inproc_patch.h"
#include "unit/bind_run.h"

#include "forged_log.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SMALL \
	"#pragma D option bufsize=16k\n" \
	"#pragma D option aggsize=8k\n" \
	"#pragma D option dynvarsize=8k\n" \
	"#pragma D option strsize=64\n" \
	"#pragma D option nspec=4\n" \
	"#pragma D option specsize=4k\n"

static const char *const texts[] = {
	SMALL
	"int g; string s; int a[string, int]; string t[int]; self int x; self string y; uint64_t where, at, seen;\n"
	"BEGIN { g = 1; s = \"hello\"; a[s, g] = 5; t[3] = \"abc\"; self->x = 3; self->y = t[3]; @c[s, g] = count(); }\n"
	"tick-1s { a[s, g]++; t[g] = strjoin(t[3], s); printf(\"%s %d %s %S %c %x\", s, a[s, g], t[g], self->y, self->x, g); }\n"
	"tick-2s { self->y = substr(t[g], self->x, g); @c2[t[g], self->x] = sum(g); @q = quantize(g); trace(strlen(self->y)); }\n"
	"tick-3s { @l[probefunc, s] = lquantize(g, 0, 100, 10); @d[self->x] = stddev(g); @m = min(a[s, g]); @n[s] = max(g); }\n"
	"tick-4s { trace(copyinstr(g)); trace(strtok(self->y, t[g])); trace(index(s, t[3])); }\n"
	"tick-5s { printa(\"%s %d %@d\\n\", @c); clear(@c); trunc(@d, 2); trunc(@n); normalize(@l, g); printa(@m); }\n"
	"tick-6s { a[t[g], g] = 0; t[g] = 0; self->x = 0; self->y = 0; s = self->y; exit(g); }\n"
	"tick-7s { at = where; seen = *(uint64_t *)copyin(at, 8); s = copyinstr(at); }\n"
	"END { printa(@c, @c); trace(a[s, g]); printf(\"%*s %.*s\", g, s, g, t[3]); }\n"
	"ERROR { printf(\"%d %d %d\", arg1, arg4, arg5); }\n",

	SMALL
	"struct point { int x; char name[12]; struct { short a; long b; } in; char *p; float f; };\n"
	"struct point p; int sp; uint64_t v[int]; this string w;\n"
	"BEGIN { p.x = 7; v[1] = 2; sp = speculation(); }\n"
	"tick-1s { print(p); trace(p); tracemem(v[1], 20, p.x); }\n"
	"tick-2s { sp = speculation(); speculate(sp); printf(\"%d\", p.x); }\n"
	"tick-3s { speculate(sp); trace(p.in.b); }\n"
	"tick-4s { commit(sp); }\n"
	"tick-5s { discard(sp); v[p.x]++; v[v[1]] = p.in.b; }\n"
	"tick-6s { ustack(); usym(v[1]); umod(v[1]); uaddr(v[2]); sym(v[1]); mod(v[2]); }\n"
	"tick-7s { @u[ustack(5), pid] = count(); @s[usym(v[1]), sym(v[2])] = avg(p.x); @a[uaddr(v[1])] = llquantize(p.x, 10, 0, 6, 20); }\n"
	"tick-8s { printf(\"%A %a %T %Y %k %P %I\", v[1], v[2], v[3], v[4], ustack(3), v[5], v[6]); }\n"
	"tick-9s { trace(inet_ntoa6((struct in6_addr *)0)); }\n"
	"END { printa(@u); printa(\"%A\\n\", @a); trunc(@u); clear(@s); }\n",

	SMALL
	"#pragma D option bufpolicy=ring\n"
	"#pragma D option aggsortkey\n"
	"profile-97 { @[ustack(8), probename] = count(); @k[arg1, ucaller] = quantize(arg1); }\n"
	"tick-1s { printf(\"%s\", execname); trace(tid); trace(curcpu->cpu_id); @e[execname, pid] = sum(timestamp); }\n"
	"END { printa(@e); }\n",
};

/* --- the programs, compiled once --- */

static struct program {
	struct bind_run run;
	struct image *img;
	/* The machine code, which is the same for each engine, because all of them lie at the same
	 * address. */
	struct inproc_prog *progs;
	uint8_t *code;
	uint64_t addr, code_used;
} programs[ARRAY_SIZE(texts)];

static void compile(struct program *p, const char *text)
{
	struct compile_target target = { .unwind = true, .inside = true };

	bind_run_init(&p->run, "hostile.d", text, "");
	if (!p->run.diags.errors)
		p->img = compile_image(p->run.bound, p->run.types, &p->run.diags, &p->run.options,
				       &target, NULL);
	if (!p->img) {
		diags_print(&p->run.diags, &(struct diag_style){ .progname = "fuzz" }, stderr);
		abort();
	}
}

/* --- the tracer, and its parts that the process can reach --- */

enum { WITH_JSON = 1, AS_DTRACE = 2, WITH_RACE = 4 };
enum {
	SLOTS = 4, /* thread slots that the process uses, from 1 on */
	PASSES_MAX = 24,
	STEPS_MAX = 400,
	WITNESS = 4096,
	RACES = 64,
};

struct world {
	struct program *program;
	struct inproc_engine *e;
	uint8_t *target; /* the process's mapping of the shared file */
	struct sink *sink;
	FILE *messages;
	struct consumer *consumer;
	struct bytes_in in;
	uint32_t passes;
	/* WITH_RACE: words that another thread changes, and changes back, all the time */
	struct {
		uint64_t *at, one, other;
	} race[RACES];
	uint32_t nraces; /* atomic */
	bool over;       /* atomic */
	pthread_t racer;
};

/* Memory of the tracer whose address the process knows, and which it must never change or see:
 * numbers that are in no input. */
static uint64_t witness[WITNESS / 8] __attribute__((aligned(4096))), secret;

static ssize_t discard(void *arg, const char *text, size_t n)
{
	return (ssize_t)n;
}

static FILE *nowhere(void)
{
	return fopencookie(NULL, "w", (cookie_io_functions_t){ .write = discard });
}

static struct inproc_engine *new_engine(const struct program *p)
{
	struct engine *en =
		engine_inproc.new(&(struct engine_setting){ .scope = ENGINE_EVERY_ONE });

	en->image = p->img;
	return (struct inproc_engine *)en;
}

static void give_up(struct err *err)
{
	fprintf(stderr, "%s\n", err->text);
	abort();
}

/* Compiles D to machine code once, so that a thousand inputs take the time of one compilation. */
static void prepare(struct program *p, const char *text)
{
	struct inproc_engine *e;
	struct err *err;

	compile(p, text);
	e = new_engine(p);
	err = e->base.ops->load(&e->base, p->img, false);
	if (err)
		give_up(err);
	p->progs = e->progs;
	p->code = xmemdup(e->code, e->room.code_used);
	p->code_used = e->room.code_used;
	p->addr = e->addr;
	e->progs = NULL;
	e->base.ops->free(&e->base);
}

/* Does what load() does, without the compilation. */
static struct err *load(struct inproc_engine *e, const struct program *p)
{
	const struct image *img = p->img;
	struct err *err;

	e->base.ncpus = 1;
	e->aggs.stores = xcalloc(img->naggs + 1, sizeof(*e->aggs.stores));
	e->placement.placed = xcalloc(img->nprobes + 1, sizeof(*e->placement.placed));
	e->placement.refused = xcalloc(img->nprobes + 1, sizeof(*e->placement.refused));
	e->placement.left_out = xcalloc(img->nprobes + 1, sizeof(*e->placement.left_out));
	err = area_create(e, img);
	if (!err)
		err = unwind_start(e);
	if (err)
		return err;
	assert(e->addr == p->addr);
	memcpy(e->code, p->code, p->code_used);
	e->room.code_used = p->code_used;
	e->progs = p->progs;
	return samples_start(e);
}

static void *race(void *arg)
{
	struct world *w = arg;

	while (!__atomic_load_n(&w->over, __ATOMIC_ACQUIRE)) {
		uint32_t n = __atomic_load_n(&w->nraces, __ATOMIC_ACQUIRE);

		for (uint32_t i = 0; i < n; i++)
			__atomic_store_n(w->race[i].at, w->race[i].other, __ATOMIC_RELAXED);
		for (uint32_t i = 0; i < n; i++)
			__atomic_store_n(w->race[i].at, w->race[i].one, __ATOMIC_RELAXED);
		sched_yield();
	}
	return NULL;
}

static void take_message(void *arg, const char *text, size_t n)
{
	fwrite(text, 1, n, arg);
}

static bool world_init(struct world *w, struct program *p, uint32_t flags)
{
	struct err *err;

	w->program = p;
	w->e = new_engine(p);
	err = load(w->e, p);
	if (err)
		give_up(err);
	(void)bell_hang(w->e);
	w->target = mmap(NULL, w->e->room.shared_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, w->e->files.shared.fd, 0);
	assert(w->target != MAP_FAILED);
	w->sink = flags & WITH_JSON ? sink_json_new() : sink_text_new();
	w->sink->out = nowhere();
	w->messages = nowhere();
	w->sink->message = take_message;
	w->sink->message_arg = w->messages;
	w->sink->dtrace = flags & AS_DTRACE;
	w->sink->progname = w->sink->dtrace ? "dtrace" : "descry";
	w->sink->options = &p->run.options;
	w->sink->types = p->run.types;
	w->consumer = consumer_new(&w->e->base, w->sink, &p->run.options);
	engine_start(&w->e->base);
	w->over = !(flags & WITH_RACE) || pthread_create(&w->racer, NULL, race, w);
	return !consumer_begin(w->consumer);
}

static void world_fini(struct world *w)
{
	FILE *out = w->sink->out;

	munmap(w->target, w->e->room.shared_size);
	consumer_free(w->consumer);
	w->sink->ops->free(w->sink);
	fclose(out);
	fclose(w->messages);
	w->e->progs = NULL; /* the program's */
	w->e->base.ops->free(&w->e->base);
}

/* --- writing as the process does --- */

/* All of the shared file. Descriptors and code lie in other files, and the tracer's own slot is
 * private memory there. */
static bool may_write(const struct world *w, uint64_t off, uint64_t n)
{
	return off <= w->e->room.shared_size && n <= w->e->room.shared_size - off;
}

static void put(struct world *w, uint64_t off, const void *bytes, uint64_t n)
{
	if (may_write(w, off, n))
		memcpy(w->target + off, bytes, n);
}

static void put_u32(struct world *w, uint64_t off, uint32_t v)
{
	put(w, off, &v, sizeof(v));
}

static void put_u64(struct world *w, uint64_t off, uint64_t v)
{
	if (!w->over && off % 8 == 0 && may_write(w, off, sizeof(v)) && w->nraces < RACES) {
		uint64_t *at = (uint64_t *)(void *)(w->target + off);

		w->race[w->nraces].at = at;
		w->race[w->nraces].one = v;
		w->race[w->nraces].other = *at;
		__atomic_store_n(&w->nraces, w->nraces + 1, __ATOMIC_RELEASE);
	}
	put(w, off, &v, sizeof(v));
}

static uint64_t get_u64(const struct world *w, uint64_t off)
{
	uint64_t v = 0;

	if (may_write(w, off, sizeof(v)))
		memcpy(&v, w->target + off, sizeof(v));
	return v;
}

static uint64_t slot_at(const struct world *w, uint32_t slot)
{
	return w->e->room.threads + (1 + slot % SLOTS) * w->e->room.thread_stride -
	       (w->e->addr + WIRE_SHARED);
}

/* Returns the nth map of a kind, from any on. NULL: there is none. */
static const struct wire_map *map_of(const struct world *w, uint32_t kind, uint32_t nth)
{
	uint32_t n = w->e->base.image->nmaps;

	for (uint32_t i = 0; i < n; i++) {
		const struct wire_map *m = &w->e->maps[(nth + i) % n];

		if (m->kind == kind)
			return m;
	}
	return NULL;
}

/* Returns a number that a process would try. */
static uint64_t take_word(struct world *w)
{
	uint32_t kind = (uint32_t)take(&w->in, 1);
	uint64_t shared = w->e->addr + WIRE_SHARED, by = take(&w->in, 2), here = 0;

	switch (kind % 16) {
	case 0: return by;
	case 1: return (uintptr_t)witness + by % WITNESS;
	case 2: return shared + by * 8;
	case 3: return (uintptr_t)w->e->self + by;
	case 4: return w->e->room.threads + by * 64;
	case 5: return w->e->addr + by;
	case 6: return (uintptr_t)w->e + by % sizeof(*w->e);
	case 7: return (uintptr_t)&here + by;
	case 8: return (uintptr_t)memcpy + by;
	case 9: return ~by;
	case 10: return 1ull << (by % 64);
	case 11: return (1ull << (by % 64)) - 1;
	case 12: return by << 32 | by;
	case 13: return (uint64_t)getpid();
	case 14: return w->e->addr + WIRE_PRIVATE + by * 8;
	default: return take(&w->in, 8);
	}
}

/* Returns a place in the shared file. */
static uint64_t take_place(struct world *w)
{
	const struct inproc_engine *e = w->e;
	uint32_t kind = (uint32_t)take(&w->in, 1), nth = kind >> 4;
	uint64_t shared = e->addr + WIRE_SHARED, by = take(&w->in, 2), slot = slot_at(w, nth);
	const struct wire_map *m = NULL;

	switch (kind % 16) {
	case 0: return by;
	case 1: return slot + by % sizeof(struct wire_thread);
	case 2: return slot + by * 4;
	case 3: m = map_of(w, WIRE_MAP_ARRAY, nth); break;
	case 4: m = map_of(w, WIRE_MAP_HASH, nth); break;
	case 5: m = map_of(w, WIRE_MAP_RING, nth); return slot + m->base + by;
	case 6: m = map_of(w, WIRE_MAP_AGG_HASH, nth); return m ? slot + m->base + by * 4 : 0;
	case 7: m = map_of(w, WIRE_MAP_THREAD_ARRAY, nth); return m ? slot + m->base + by : 0;
	case 8: m = map_of(w, WIRE_MAP_TASK, nth); return m ? slot + m->base + by % 512 : 0;
	case 9: return (uintptr_t)e->said - shared + by % (sizeof(*e->said) * 8);
	case 10:
		return (uintptr_t)(e->said + WIRE_PROCESSES_MAX) - shared - 1 -
		       by % (sizeof(*e->said) * 8);
	case 11: return (uintptr_t)e->bells.bell - shared + by % sizeof(*e->bells.bell);
	case 12: return (uintptr_t)e->base.state - shared + by % sizeof(*e->base.state);
	case 13:
		return slot_at(w, SLOTS - 1) - SLOTS * e->room.thread_stride +
		       by % e->room.thread_stride; /* the tracer's own */
	case 14: return e->wanted_at ? slot + e->wanted_at + by % sizeof(struct wire_wanted) : 0;
	default: return by * 4096 % e->room.shared_size;
	}
	return m ? m->base - shared + by : 0;
}

static void write_bytes(struct world *w)
{
	uint64_t at = take_place(w), n = take(&w->in, 1);

	if (n > w->in.n)
		n = w->in.n;
	put(w, at, w->in.p, n);
	w->in.p += n;
	w->in.n -= n;
}

static void write_word(struct world *w)
{
	uint64_t at = take_place(w);

	if (take(&w->in, 1) & 1)
		put_u64(w, at, take_word(w));
	else
		put_u32(w, at, (uint32_t)take_word(w));
}

/* --- rings --- */

static void claim_slot(struct world *w, uint32_t slot)
{
	put_u32(w, slot_at(w, slot) + offsetof(struct wire_thread, owner), 1 + slot % 3);
}

/* A record as a program would write it, except where the bytes determine other values. */
static void put_record(struct world *w)
{
	const struct image *img = w->e->base.image;
	uint32_t how = (uint32_t)take(&w->in, 1), slot = (uint32_t)take(&w->in, 1);
	uint32_t segment = (uint32_t)take(&w->in, 1), n;
	const struct segment *seg = &img->segments[segment % img->nsegments];
	const struct wire_map *m =
		&w->e->maps[image_find_map(img, (seg->control ? MAP_CONTROL : MAP_DATA))];
	uint64_t ring = slot_at(w, slot) + m->base, head = get_u64(w, ring), size = m->max_entries;
	uint8_t text[4096] = { 0 };
	struct wire_record r = { .time = take(&w->in, 2),
				 .segment = segment % img->nsegments,
				 .probe = (uint32_t)take(&w->in, 1) % img->nprobes,
				 .spec = how & 1 ? (uint32_t)take(&w->in, 1) : 0,
				 .late = how & 2 ? (uint32_t)take(&w->in, 1) : 0 };
	uint32_t words[2] = { 0 };

	if (how & 4)
		r.segment = WIRE_SEG_FAULT - segment % 3;
	if (how & 8)
		r.time = take_word(w);
	n = seg->size;
	if (how & 4)
		n = segment % 3 == 1 ? sizeof(struct wire_late) : sizeof(struct wire_fault);
	if (how & 16)
		n += (uint32_t)take(&w->in, 1) - 128;
	if (how & 32)
		r.probe = (uint32_t)take_word(w);
	n = n < sizeof(text) ? n : sizeof(text);
	memcpy(text, &r, n < sizeof(r) ? n : sizeof(r));
	if (n > sizeof(r)) { /* missing bytes are zero, or all bits */
		uint64_t given = take(&w->in, 1);

		memset(text + sizeof(r), how & 64 ? 0xff : 0, n - sizeof(r));
		given = given < n - sizeof(r) ? given : n - sizeof(r);
		given = given < w->in.n ? given : w->in.n;
		memcpy(text + sizeof(r), w->in.p, given);
		w->in.p += given;
		w->in.n -= given;
	}
	words[0] = n | (how & 128 ? (uint32_t)take(&w->in, 1) << 24 : 0);
	if (head % size + WIRE_RING_HEAD + n > size) { /* the rest is left out */
		words[0] = WIRE_RING_PAD | (uint32_t)(size - head % size - WIRE_RING_HEAD);
		put(w, ring + sizeof(struct wire_ring) + head % size, words, sizeof(words));
		put_u64(w, ring, head + size - head % size);
		return;
	}
	claim_slot(w, slot);
	put(w, ring + sizeof(struct wire_ring) + head % size, words, sizeof(words));
	put(w, ring + sizeof(struct wire_ring) + head % size + WIRE_RING_HEAD, text, n);
	put_u64(w, ring, head + ring_room(n));
}

static void forge_ring(struct world *w)
{
	uint32_t slot = (uint32_t)take(&w->in, 1), which = (uint32_t)take(&w->in, 1);
	const struct wire_map *m = map_of(w, WIRE_MAP_RING, which >> 4);
	uint64_t ring = slot_at(w, slot) + m->base, v = take_word(w);
	uint64_t at = which & 1 ? offsetof(struct wire_ring, tail) : 0;

	claim_slot(w, slot);
	put_u64(w, ring + at, which & 2 ? get_u64(w, ring + at) + v : v);
}

/* --- keys and values --- */

static void put_agg(struct world *w)
{
	uint32_t slot = (uint32_t)take(&w->in, 1), which = (uint32_t)take(&w->in, 1);
	const struct wire_map *m = map_of(w, WIRE_MAP_AGG_HASH, which >> 1);
	uint64_t at, en;
	uint32_t n;
	uint8_t text[512];

	if (!m)
		return;
	at = slot_at(w, slot) + m->base + (which & 1 ? m->gen_stride : 0);
	claim_slot(w, slot);
	n = (uint32_t)get_u64(w, at);
	en = at + sizeof(struct wire_agg_table) + m->buckets * 4 +
	     (n % m->max_entries) * (uint64_t)m->stride;
	put_u32(w, at, n % m->max_entries + 1);
	memset(text, (int)take(&w->in, 1), sizeof(text));
	n = (uint32_t)take(&w->in, 1);
	n = n < w->in.n ? n : (uint32_t)w->in.n;
	memcpy(text, w->in.p, n);
	w->in.p += n;
	w->in.n -= n;
	put(w, en, text, m->stride < sizeof(text) ? m->stride : sizeof(text));
}

/* An entry of a shared hash, found under the key that the bytes give. */
static void put_hash(struct world *w)
{
	uint32_t which = (uint32_t)take(&w->in, 1), n = (uint32_t)take(&w->in, 1);
	const struct wire_map *m = map_of(w, WIRE_MAP_HASH, which);
	uint64_t shared = w->e->addr + WIRE_SHARED, home, at;
	uint8_t text[2048] = { 0 };

	if (!m || m->stride > sizeof(text))
		return;
	n = n < w->in.n ? n : (uint32_t)w->in.n;
	memcpy(text, w->in.p, n);
	w->in.p += n;
	w->in.n -= n;
	home = map_hash_key(m, text) & (m->buckets - 1);
	at = m->base - shared + home * m->stride;
	put_u32(w, at, which & 0x80 ? (uint32_t)take(&w->in, 1) : WIRE_HASH_READY);
	put_u32(w, at + 4, which & 0x40 ? (uint32_t)take(&w->in, 4) : 1u << 16);
	put(w, at + sizeof(struct wire_hash_entry), text,
	    m->stride - sizeof(struct wire_hash_entry));
}

/* --- the tracer's steps --- */

static void pass(struct world *w)
{
	if (w->passes++ < PASSES_MAX)
		err_free(consumer_pass(w->consumer));
}

static void fire(struct world *w)
{
	const struct image *img = w->e->base.image;
	uint32_t prog = (uint32_t)take(&w->in, 1) % img->nprogs;

	err_free(w->e->base.ops->fire(&w->e->base, prog));
}

static void row(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	uint64_t *sum = arg;

	*sum += values[0] + ncpus;
}

static void read_agg(struct world *w)
{
	const struct image *img = w->e->base.image;
	struct engine *en = &w->e->base;
	uint32_t i = (uint32_t)take(&w->in, 1);
	uint64_t sum = 0;
	uint8_t key[512];

	if (!img->naggs || w->passes++ >= PASSES_MAX)
		return;
	err_free(en->ops->agg_read(en, i % img->naggs, row, &sum));
	if (i & 0x80 && img->aggs[i % img->naggs].key_size <= sizeof(key)) {
		cleanup_free uint64_t *last = xcalloc(img->aggs[i % img->naggs].nwords, 8);

		memset(key, (int)take(&w->in, 1), sizeof(key));
		err_free(en->ops->agg_delete(en, i % img->naggs, key, last));
	}
}

static void read_stack(struct world *w)
{
	struct engine *en = &w->e->base;
	int64_t id = (int64_t)take(&w->in, 1);
	uint64_t frames[WIRE_STACK_FRAMES];
	uint32_t n = en->ops->stack(en, id, frames, ARRAY_SIZE(frames));

	assert(n <= ARRAY_SIZE(frames));
	(void)en->ops->stack_end(en, id);
}

static void read_counters(struct world *w)
{
	struct engine_counters c;

	w->e->base.ops->counters(&w->e->base, &c);
	events_answer(w->e);
}

/* --- all of it --- */

static void step(struct world *w)
{
	switch (take(&w->in, 1) % 16) {
	case 0: write_bytes(w); break;
	case 1:
	case 2: write_word(w); break;
	case 3:
	case 4:
	case 5: put_record(w); break;
	case 6: forge_ring(w); break;
	case 7:
	case 8: put_agg(w); break;
	case 9: put_hash(w); break;
	case 10:
	case 11: fire(w); break;
	case 12: read_agg(w); break;
	case 13: read_stack(w); break;
	case 14: read_counters(w); break;
	default: pass(w); break;
	}
}

/* A new secret for each input, because the fuzzer puts values that it sees compared into later
 * inputs. */
static void new_secret(void)
{
	if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(witness); i++)
		witness[i] = secret;
}

/* The fuzzer must not learn the secret from a comparison. */
#ifdef __clang__
#define UNSEEN __attribute__((no_sanitize("coverage")))
#else
#define UNSEEN
#endif

/* Returns true when the secret is in a D variable, which all processes can read. */
UNSEEN static bool is_told(const struct world *w)
{
	for (uint32_t i = 0; i < w->e->base.image->nmaps; i++) {
		const struct wire_map *m = &w->e->maps[i];
		bool hash = m->kind == WIRE_MAP_HASH && m->role == MAP_ASSOC;
		uint64_t n = (uint64_t)m->stride * (hash ? m->buckets : 1);

		if (!hash && (m->kind != WIRE_MAP_ARRAY || m->role != MAP_GLOBALS))
			continue;
		for (const uint8_t *p = (const uint8_t *)m->base; n >= 8; n--, p++)
			if (*(const any64 *)p == secret)
				return true;
	}
	return false;
}

UNSEEN static void check_witness(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(witness); i++)
		assert(witness[i] == secret);
}

/* The tracer's clock, so that it waits for the process's threads without sleeping. */
static uint64_t fake_ns;

static uint64_t fake_now(void)
{
	return __atomic_add_fetch(&fake_ns, 1000, __ATOMIC_RELAXED);
}

static void fake_nap(uint64_t ns)
{
	__atomic_fetch_add(&fake_ns, ns, __ATOMIC_RELAXED);
}

static void run(struct program *p, uint32_t flags, struct bytes_in in)
{
	static const struct clock_source fake = { fake_now, fake_nap };
	struct world w = { .in = in };

	__atomic_store_n(&fake_ns, now_ns(), __ATOMIC_RELAXED);
	clock_use(&fake);
	new_secret();
	if (world_init(&w, p, flags))
		for (int i = 0; i < STEPS_MAX && w.in.n; i++)
			step(&w);
	err_free(consumer_finish(w.consumer, true, false));
	assert(!is_told(&w));
	if (!w.over) {
		__atomic_store_n(&w.over, true, __ATOMIC_RELEASE);
		pthread_join(w.racer, NULL);
	}
	world_fini(&w);
	clock_use(NULL);
	check_witness();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (!programs[i].img)
			prepare(&programs[i], texts[i]);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes_in in = { data, size };
	uint32_t which, flags;

	if (size < 3)
		return 0;
	(void)LLVMFuzzerInitialize(NULL, NULL);
	which = (uint32_t)take(&in, 1) % (ARRAY_SIZE(programs) + 1);
	flags = (uint32_t)take(&in, 1);
	if (which < ARRAY_SIZE(programs))
		run(&programs[which], flags, in);
	else
		read_log(in);
	return 0;
}
