/* Makes, fills and reads the maps of the kernel engine. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include "base/io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <sched.h>
#include <sys/mman.h>

#include "base/diag.h"
#include "base/meminfo.h"
#include "data/agg.h"
#include "wire/routines.h"
#include "wire/tick.h"

enum {
	PAGE = 4096,
	MAP_ELEMENT = 64, /* bytes of the kernel's own beside a key and its value */
	SHARE_ALL = 1000,
};

static uint32_t round_pow2(uint64_t n)
{
	uint64_t p = PAGE;

	while (p < n && p < 1u << 30)
		p <<= 1;
	return (uint32_t)p;
}

/* --- the calls --- */

static int map_update(int fd, const void *key, const void *value, uint64_t flags)
{
	union bpf_attr a = { .map_fd = (uint32_t)fd,
			     .key = (uintptr_t)key,
			     .value = (uintptr_t)value,
			     .flags = flags };

	return sys_bpf(BPF_MAP_UPDATE_ELEM, &a, sizeof(a));
}

static int map_lookup(int fd, const void *key, void *value)
{
	union bpf_attr a = { .map_fd = (uint32_t)fd,
			     .key = (uintptr_t)key,
			     .value = (uintptr_t)value };

	return sys_bpf(BPF_MAP_LOOKUP_ELEM, &a, sizeof(a));
}

/* Reads up to *n elements after cursor *in (NULL: from the start). At the end returns -1 with
 * ENOENT and the number of the last elements in *n. */
static int map_batch(int fd, void *in, void *out, void *keys, void *values, uint32_t *n)
{
	union bpf_attr a = { .batch = { .in_batch = (uintptr_t)in,
					.out_batch = (uintptr_t)out,
					.keys = (uintptr_t)keys,
					.values = (uintptr_t)values,
					.count = *n,
					.map_fd = (uint32_t)fd } };
	int r = sys_bpf(BPF_MAP_LOOKUP_BATCH, &a, sizeof(a));

	*n = a.batch.count;
	return r;
}

/* --- creation --- */

/* Makes the BTF that task storage requires for its key (a 32-bit integer) and its value (here: an
 * array of bytes). */
static int task_storage_btf(uint32_t value_size)
{
	struct {
		struct btf_header h;
		struct btf_type key;
		uint32_t key_int;
		struct btf_type byte;
		uint32_t byte_int;
		struct btf_type value;
		struct btf_array array;
		char strings[16];
	} __attribute__((packed)) b = {
		.h = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof(b.h) },
		.key = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 },
		.key_int = BTF_INT_SIGNED << 24 | 32,
		.byte = { .name_off = 5, .info = BTF_KIND_INT << 24, .size = 1 },
		.byte_int = 8,
		.value = { .info = BTF_KIND_ARRAY << 24 },
		.array = { .type = 2, .index_type = 1, .nelems = value_size },
		.strings = "\0int\0char",
	};

	b.h.type_len = (uint32_t)(sizeof(b) - sizeof(b.h) - sizeof(b.strings));
	b.h.str_off = b.h.type_len;
	b.h.str_len = sizeof(b.strings);
	return sys_btf_load(&b, sizeof(b));
}

/* Returns an error for a map that the kernel finds too large. It names the D construct and its
 * place. */
static struct err *too_large(struct kernel_engine *k, const struct image_map *im,
			     const union bpf_attr *a)
{
	enum { PER_CPU_MAX = 32 << 10 /* PCPU_MIN_UNIT_SIZE */ };
	const struct image *img = k->e.image;
	struct err *e;

	if (im->role == MAP_AGG)
		e = err_new(
			E2BIG,
			"a value of this aggregation takes %u bytes, and the kernel keeps at most %d on "
			"each CPU: use fewer buckets, or -x engine=inproc",
			im->value_size, PER_CPU_MAX);
	else if (im->type == BPF_MAP_TYPE_TASK_STORAGE)
		e = err_new(
			E2BIG,
			"thread-local variables (self->) take %u bytes together, and the kernel keeps less "
			"than 64 KB for a thread",
			im->value_size);
	else
		e = err_new(
			E2BIG,
			"%s: %u entries of %u + %u bytes are more than the kernel keeps in a map",
			im->name, a->max_entries, a->key_size, a->value_size);
	for (uint32_t i = 0; im->role == MAP_AGG && img->diags && i < img->naggs; i++)
		if (&img->maps[img->aggs[i].map] == im)
			diag_error(img->diags, img->aggs[i].loc, 0, "D_TOO_LARGE", "%s", e->text);
	return e;
}

static struct err *create(struct kernel_engine *k, const struct image_map *im, struct kmap *m)
{
	bool ring = im->type == BPF_MAP_TYPE_RINGBUF;
	union bpf_attr a = {
		.map_type = im->type,
		.key_size = im->key_size,
		.value_size = im->value_size,
		.max_entries = im->max_entries,
		.map_flags = im->flags,
	};
	int btf = -1;

	sys_object_name(a.map_name, im->name);
	if (ring) {
		a.key_size = a.value_size = 0;
		a.max_entries = round_pow2(im->max_entries);
	} else if (im->role == MAP_SCRATCH) {
		a.max_entries =
			(im->max_entries ? im->max_entries : WIRE_SCRATCH_SLOTS) * k->e.ncpus;
	} else if (im->type == BPF_MAP_TYPE_TASK_STORAGE) {
		a.map_flags |= BPF_F_NO_PREALLOC;
		a.key_size = 4;
		a.max_entries = 0;
		btf = task_storage_btf(im->value_size);
		if (btf < 0)
			return sys_err(errno, "describing thread-local variables to the kernel");
		a.btf_fd = (uint32_t)btf;
		a.btf_key_type_id = 1;
		a.btf_value_type_id = 3;
	}
	m->fd = sys_bpf(BPF_MAP_CREATE, &a, sizeof(a));
	int error = errno;

	if (btf >= 0)
		close(btf);
	if (m->fd < 0) {
		struct err *e = sys_err(error, "creating a map");

		if (error == E2BIG) {
			err_free(e);
			return too_large(k, im, &a);
		}
		return err_wrap(e, "map %s (%u entries of %u + %u bytes)", im->name, a.max_entries,
				a.key_size, a.value_size);
	}
	m->type = im->type;
	m->key_size = a.key_size;
	m->value_size = a.value_size;
	m->max_entries = a.max_entries;
	return NULL;
}

/* Writes the initial contents. Freezes a map that programs only read, so that the verifier knows
 * the contents. */
static struct err *fill(const struct image_map *im, struct kmap *m)
{
	uint32_t n = im->role == MAP_SYSCALLS ? im->ninit : im->init ? 1 : 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *v = (const uint8_t *)im->init + (size_t)i * im->value_size;
		bool zero = true;

		for (uint32_t b = 0; b < im->value_size && zero; b++)
			zero = !v[b];
		if (!zero && map_update(m->fd, &i, v, BPF_ANY))
			return err_wrap(sys_err(errno, "filling it"), "map %s", im->name);
	}
	if (im->flags & BPF_F_RDONLY_PROG) {
		union bpf_attr a = { .map_fd = (uint32_t)m->fd };

		if (sys_bpf(BPF_MAP_FREEZE, &a, sizeof(a)))
			return err_errno(errno, "freezing map %s", im->name);
	}
	return NULL;
}

static struct err *map_memory(struct kmap *m, const char *name)
{
	m->mem_size = (m->value_size + PAGE - 1) & ~(size_t)(PAGE - 1);
	m->mem = mmap(NULL, m->mem_size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (m->mem == MAP_FAILED) {
		m->mem = NULL;
		return err_errno(errno, "mapping the map %s", name);
	}
	return NULL;
}

/* Makes a ring by bufpolicy and bufresize. When the kernel has no memory for it, tries half its
 * size, down to a page. */
static struct err *create_ring(struct kernel_engine *k, const struct image_map *im, struct kmap *m,
			       struct ring *r)
{
	struct image_map smaller = *im;
	struct err *e = create(k, &smaller, m);

	while (e && e->code == ENOMEM && smaller.max_entries > PAGE &&
	       (!k->e.image->options || !opt_num(k->e.image->options, OPT_BUFRESIZE))) {
		err_free(e);
		smaller.max_entries /= 2;
		e = create(k, &smaller, m);
	}
	if (e)
		return e;
	if (smaller.max_entries != im->max_entries &&
	    (!k->e.image->options || !opt_on(k->e.image->options, OPT_QUIETRESIZE)))
		engine_note(k, "buffer %s reduced to %u bytes", im->name, m->max_entries);
	return ring_open(r, m->fd, m->max_entries);
}

/* The maps of unwind tables are made and filled by unwind_tables.c. */
static struct err *take_unwind(struct kernel_engine *k, const struct image_map *im, struct kmap *m)
{
	int fd;

	if (!k->unwind) {
		struct err *e = unwind_tables_new(k->languages, &k->unwind);

		if (e)
			return e;
	}
	fd = im->role == MAP_UNWIND             ? unwind_tables_chunks(k->unwind)
	     : im->role == MAP_UNWIND_PROCESSES ? unwind_tables_processes(k->unwind)
						: unwind_tables_wanted(k->unwind);
	m->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return m->fd < 0 ? err_errno(errno, "unwind tables") : NULL;
}

static bool is_unwind(enum map_role role)
{
	return role == MAP_UNWIND || role == MAP_UNWIND_PROCESSES || role == MAP_UNWIND_WANTED;
}

/* Fills each CPU's cache of the map's elements by adding and deleting one. The cache begins with
 * one element and fills up only after its first use, so that otherwise the second new stack of a
 * firing would be lost. */
static void warm_up(struct kernel_engine *k, const struct kmap *m)
{
	cleanup_free void *key = xcalloc(1, m->key_size),
			  *value = xcalloc(k->e.ncpus, (m->value_size + 7) & ~7u);
	cpu_set_t before, one;

	memset(key, 0xff, m->key_size);
	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	for (uint32_t cpu = 0; cpu < k->e.ncpus && cpu < CPU_SETSIZE; cpu++) {
		union bpf_attr a = { .map_fd = (uint32_t)m->fd, .key = (uintptr_t)key };

		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (!CPU_ISSET(cpu, &before) || sched_setaffinity(0, sizeof(one), &one))
			continue;
		if (!map_update(m->fd, key, value, BPF_ANY))
			sys_bpf(BPF_MAP_DELETE_ELEM, &a, sizeof(a));
	}
	sched_setaffinity(0, sizeof(before), &before);
}

/* Returns the bytes of a map that takes memory as its keys come: no limit of this process counts
 * them. */
static uint64_t grown_bytes(const struct kernel_engine *k, const struct image_map *im)
{
	const uint64_t value = round_up(im->value_size, 8);
	const bool each = im->type == BPF_MAP_TYPE_PERCPU_HASH;

	if (!(im->flags & BPF_F_NO_PREALLOC) || (im->type != BPF_MAP_TYPE_HASH && !each))
		return 0;
	return (MAP_ELEMENT + round_up(im->key_size, 8) + value * (each ? k->e.ncpus : 1)) *
	       im->max_entries;
}

/* All of them may take half of the memory that is available: each has less keys when they could
 * take more. Returns how many thousandths each has. */
static uint64_t share_memory(struct kernel_engine *k)
{
	const struct image *img = k->e.image;
	const uint64_t most = meminfo_available() / 2;
	uint64_t n = 0;

	for (uint32_t i = 0; i < img->nmaps; i++)
		n += grown_bytes(k, &img->maps[i]);
	if (!most || n <= most)
		return SHARE_ALL;
	engine_note(k,
		    "arrays and aggregations reduced to %llu of 1000 of their keys: together they "
		    "could take more than half of the memory that is available",
		    (unsigned long long)(most / (n / SHARE_ALL)));
	return most / (n / SHARE_ALL);
}

static struct err *create_shared(struct kernel_engine *k, const struct image_map *im,
				 uint64_t share, struct kmap *m)
{
	struct image_map less = *im;

	if (share == SHARE_ALL || !grown_bytes(k, im))
		return create(k, im, m); /* too_large() knows it by its address */
	less.max_entries = (uint32_t)(im->max_entries * share / SHARE_ALL) ?: 1;
	return create(k, &less, m);
}

struct err *maps_create(struct kernel_engine *k)
{
	const struct image *img = k->e.image;
	const uint64_t share = share_memory(k);
	struct err *e = NULL;

	k->maps = xcalloc(img->nmaps, sizeof(*k->maps));
	for (uint32_t i = 0; i < img->nmaps; i++)
		k->maps[i].fd = -1;
	for (uint32_t i = 0; i < img->nmaps && !e; i++) {
		const struct image_map *im = &img->maps[i];
		struct kmap *m = &k->maps[i];

		if (is_unwind(im->role)) {
			e = take_unwind(k, im, m);
			continue;
		}
		if (im->type == BPF_MAP_TYPE_RINGBUF)
			e = create_ring(k, im, m, im->role == MAP_CONTROL ? &k->control : &k->data);
		else
			e = create_shared(k, im, share, m);
		e = e ?: fill(im, m);
		if (!e && im->role == MAP_STACKS && (im->flags & BPF_F_NO_PREALLOC))
			warm_up(k, m);
		if (!e && im->flags & BPF_F_MMAPABLE)
			e = map_memory(m, im->name);
		if (!e && im->role == MAP_STATE)
			k->e.state = m->mem;
	}
	return e;
}

void maps_close(struct kernel_engine *k)
{
	ring_close(&k->data);
	ring_close(&k->control);
	if (!k->maps)
		return;
	for (uint32_t i = 0; i < k->e.image->nmaps; i++) {
		if (k->maps[i].mem)
			munmap(k->maps[i].mem, k->maps[i].mem_size);
		if (k->maps[i].fd >= 0)
			close(k->maps[i].fd);
	}
	unwind_tables_free(k->unwind);
	k->unwind = NULL;
	free(k->maps);
	free(k->known_stacks);
	k->known_stacks = NULL;
	k->maps = NULL;
	k->e.state = NULL;
}

struct kmap *maps_role(struct kernel_engine *k, enum map_role role)
{
	const struct image *img = k->e.image;

	for (uint32_t i = 0; k->maps && i < img->nmaps; i++)
		if (img->maps[i].role == role)
			return &k->maps[i];
	return NULL;
}

uint64_t maps_bytes(struct kernel_engine *k)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; k->maps && i < k->e.image->nmaps; i++) {
		cleanup_free char *text = NULL;
		char path[48];
		const char *line;
		struct err *e;

		if (is_unwind(k->e.image->maps[i].role) || k->maps[i].fd < 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", k->maps[i].fd);
		e = io_read_file(path, &text, NULL);
		line = e ? NULL : strstr(text, "memlock:");
		sum += line ? strtoull(line + strlen("memlock:"), NULL, 10) : 0;
		err_free(e);
	}
	return sum;
}

/* --- reading --- */

static void *values_buffer(struct kernel_engine *k, size_t n)
{
	if (n > k->values_n) {
		k->values = xrealloc(k->values, n);
		k->values_n = n;
	}
	return k->values;
}

uint32_t maps_chunk(size_t element)
{
	enum { MOST = 256, BYTES = 64 << 20 };
	const size_t n = BYTES / (element + 1);

	return n > MOST ? MOST : n ? (uint32_t)n : 1;
}

static struct err *read_one_by_one(struct kmap *m, uint8_t *key, uint8_t *next, uint64_t *values,
				   uint32_t ncpus,
				   void (*fn)(void *, const void *, const uint64_t *, uint32_t),
				   void *arg)
{
	union bpf_attr a = { .map_fd = (uint32_t)m->fd, .key = 0, .next_key = (uintptr_t)next };

	while (!sys_bpf(BPF_MAP_GET_NEXT_KEY, &a, sizeof(a))) {
		memcpy(key, next, m->key_size);
		a.key = (uintptr_t)key;
		if (!map_lookup(m->fd, key, values))
			fn(arg, key, values, ncpus);
	}
	return errno == ENOENT ? NULL : err_errno(errno, "reading an aggregation");
}

static struct err *read_hash(struct kernel_engine *k, struct kmap *m,
			     void (*fn)(void *, const void *, const uint64_t *, uint32_t),
			     void *arg)
{
	size_t vsize = (size_t)m->value_size * k->e.ncpus;
	uint32_t chunk = maps_chunk(vsize + m->key_size);
	uint64_t cursor = 0;
	bool first = true;

	for (;;) {
		uint8_t *values = values_buffer(k, chunk * (vsize + m->key_size) + 2 * m->key_size);
		uint8_t *keys = values + chunk * vsize;
		uint32_t n = chunk;
		int r = map_batch(m->fd, first ? NULL : &cursor, &cursor, keys, values, &n);
		int error = errno;

		if (r && error == ENOSPC && chunk < 1u << 20) { /* bucket larger than the chunk */
			chunk *= 4;
			continue;
		}
		if (r && error != ENOENT) {
			if (!first)
				return err_errno(error, "reading an aggregation");
			return read_one_by_one(m, keys, keys + m->key_size, (uint64_t *)values,
					       k->e.ncpus, fn, arg);
		}
		for (uint32_t i = 0; i < n; i++)
			fn(arg, keys + (size_t)i * m->key_size, (uint64_t *)(values + i * vsize),
			   k->e.ncpus);
		if (r)
			return NULL;
		first = false;
	}
}

/* Passes on read_hash()'s elements of one aggregation, with its own keys. */
struct agg_reading {
	const struct agg *agg;
	agg_fn *fn;
	void *arg;
};

/* Passes on an element of an array of slots: puts the key for the index, leaves empty slots out. */
static void read_slot(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	const struct agg_reading *r = arg;
	uint64_t any = 0;
	uint32_t slot;

	memcpy(&slot, key, sizeof(slot));
	for (uint32_t cpu = 0; cpu < ncpus; cpu++)
		any |= values[(size_t)cpu * r->agg->nwords];
	if (any && slot < r->agg->nslots)
		r->fn(r->arg, agg_slot_key(r->agg, slot), values, ncpus);
}

/* Passes on an element of a map that several aggregations share. */
static void pass_on(void *arg, const void *key, const uint64_t *values, uint32_t ncpus)
{
	const struct agg_reading *r = arg;
	uint64_t tag;

	memcpy(&tag, key, sizeof(tag));
	if (tag == r->agg->tag)
		r->fn(r->arg, r->agg->key_size ? (const uint8_t *)key + sizeof(tag) : NULL, values,
		      ncpus);
}

struct err *maps_agg_read(struct kernel_engine *k, uint32_t agg, agg_fn *fn, void *arg)
{
	const struct agg *ag = &k->e.image->aggs[agg];
	struct kmap *m = &k->maps[ag->map];

	assert(m->value_size == ag->nwords * 8);
	if (ag->nslots)
		return read_hash(k, m, read_slot, &(struct agg_reading){ ag, fn, arg });
	if (ag->tag) {
		struct agg_reading r = { .agg = ag, .fn = fn, .arg = arg };

		return read_hash(k, m, pass_on, &r);
	}
	if (ag->key_size)
		return read_hash(k, m, fn, arg);

	uint32_t zero = 0;
	uint64_t *values = values_buffer(k, (size_t)m->value_size * k->e.ncpus);

	if (map_lookup(m->fd, &zero, values))
		return err_errno(errno, "reading an aggregation");
	fn(arg, NULL, values, k->e.ncpus);
	return NULL;
}

struct err *maps_agg_delete(struct kernel_engine *k, uint32_t agg, const void *key,
			    uint64_t *ret_values)
{
	const struct agg *ag = &k->e.image->aggs[agg];
	struct kmap *m = &k->maps[ag->map];
	size_t size = (size_t)m->value_size * k->e.ncpus;
	cleanup_free uint64_t *own =
		xcalloc(1, size); /* not k->values, because agg_read's callback may be calling */
	uint64_t *values = ret_values ? ret_values : own;
	cleanup_free uint8_t *full = NULL;
	uint64_t tag = ag->tag;
	uint32_t at = ag->nslots ? agg_key_slot(ag, key) : 0;

	if (tag) {
		full = xcalloc(1, m->key_size);
		memcpy(full, &tag, sizeof(tag));
		if (ag->key_size)
			memcpy(full + sizeof(tag), key, ag->key_size);
		key = full;
	}
	if (ag->nslots && at == ag->nslots) {
		memset(values, 0, size);
		return NULL;
	}
	if ((!ag->key_size && !tag) || ag->nslots) {
		if (ret_values && map_lookup(m->fd, &at, ret_values))
			return err_errno(errno, "reading an aggregation");
		if (map_update(m->fd, &at, own, BPF_ANY))
			return err_errno(errno, "clearing an aggregation");
		return NULL;
	}
	union bpf_attr a = { .map_fd = (uint32_t)m->fd,
			     .key = (uintptr_t)key,
			     .value = (uintptr_t)values };

	if (!sys_bpf(BPF_MAP_LOOKUP_AND_DELETE_ELEM, &a, sizeof(a)))
		return NULL;
	if (errno == ENOENT) {
		memset(values, 0, size);
		return NULL;
	}
	/* Kernels before 5.14 need two steps, and updates in between are lost. */
	if (map_lookup(m->fd, key, values))
		memset(values, 0, size);
	a.value = 0;
	if (sys_bpf(BPF_MAP_DELETE_ELEM, &a, sizeof(a)) && errno != ENOENT)
		return err_errno(errno, "removing a key of an aggregation");
	return NULL;
}

/* Returns a stack by its id; NULL: none. The id is a hash of the stack, so that a stack read once
 * stays valid. */
static const struct wire_stack *stack_of(struct kernel_engine *k, int64_t id)
{
	struct kmap *m = maps_role(k, MAP_STACKS);
	struct known_stack *known;

	if (!m || id < 0)
		return NULL;
	if (!k->known_stacks)
		k->known_stacks = xcalloc(KNOWN_STACKS, sizeof(*k->known_stacks));
	known = &k->known_stacks[(uint64_t)id % KNOWN_STACKS];
	if (known->id != id || !known->valid) {
		known->id = id;
		known->valid = !map_lookup(m->fd, &id, &known->stack);
	}
	return known->valid ? &known->stack : NULL;
}

uint32_t maps_stack(struct kernel_engine *k, int64_t id, uint64_t *frames, uint32_t max)
{
	const struct wire_stack *s = stack_of(k, id);
	uint32_t n;

	if (!s)
		return 0;
	n = s->n < WIRE_STACK_FRAMES ? s->n : WIRE_STACK_FRAMES;
	if (n > max)
		n = max;
	memcpy(frames, s->pc, n * sizeof(*frames));
	return n;
}

uint32_t maps_stack_end(struct kernel_engine *k, int64_t id)
{
	const struct wire_stack *s = stack_of(k, id);

	return s ? s->end : 0;
}

/* Counts the samples that are missing between the first and the last on each CPU. */
static void count_left_out(struct kernel_engine *k, uint64_t *left_out)
{
	const struct image *img = k->e.image;
	struct kmap *m = maps_role(k, MAP_SAMPLES);

	for (uint32_t i = 0; m && i < img->nprogs; i++) {
		const struct image_prog *p = &img->progs[i];
		uint32_t slot = p->samples - 1;
		struct wire_samples *s;
		uint64_t period, due;
		bool got;

		/* Of other events than the clock's, nobody knows when they come. */
		if (!p->samples || img->probes[p->probes[0]].probe->perf.hardware ||
		    img->probes[p->probes[0]].probe->perf.event)
			continue;
		s = values_buffer(k, sizeof(*s) * k->e.ncpus);
		period = img->probes[p->probes[0]].probe->period_ns;
		left_out[p->probes[0]] = 0;
		got = !map_lookup(m->fd, &slot, s);
		for (uint32_t cpu = 0; got && cpu < k->e.ncpus; cpu++) {
			due = s[cpu].n ? (s[cpu].last - s[cpu].first) / period + 1 : 0;
			left_out[p->probes[0]] += due > s[cpu].n ? due - s[cpu].n : 0;
		}
	}
}

void maps_counters(struct kernel_engine *k, struct engine_counters *ret)
{
	struct kmap *m = maps_role(k, MAP_COUNTERS);
	uint32_t ncpus = k->e.ncpus, nprobes = k->e.image->nprobes;
	struct engine_counters *c = &k->counters;

	if (!c->fixed) {
		c->ncpus = ncpus;
		c->fixed = xcalloc((size_t)ncpus * WIRE_FIXED_COUNTERS, 8);
		c->fired = xcalloc(nprobes + 1, 8);
		c->dropped = xcalloc(nprobes + 1, 8);
		c->left_out = xcalloc(nprobes + 1, 8);
	}
	count_left_out(k, c->left_out);
	*ret = *c;
	if (!m)
		return;
	memset(c->fired, 0, nprobes * sizeof(uint64_t));
	memset(c->dropped, 0, nprobes * sizeof(uint64_t));

	uint32_t n = m->max_entries;
	uint64_t *values = values_buffer(k, (size_t)n * ncpus * 8 + (size_t)n * 4);
	uint32_t *keys = (uint32_t *)(values + (size_t)n * ncpus), cursor, got = n;

	if (map_batch(m->fd, NULL, &cursor, keys, values, &got) && errno != ENOENT) {
		for (uint32_t i = 0; i < n; i++)
			if (map_lookup(m->fd, &i, values + (size_t)i * ncpus))
				memset(values + (size_t)i * ncpus, 0, ncpus * 8);
	}
	for (uint32_t cpu = 0; cpu < ncpus; cpu++) {
		for (uint32_t i = 0; i < WIRE_FIXED_COUNTERS && i < n; i++)
			c->fixed[(size_t)cpu * WIRE_FIXED_COUNTERS + i] =
				values[(size_t)i * ncpus + cpu];
		for (uint32_t p = 0; p < nprobes; p++) {
			uint32_t slot = WIRE_FIXED_COUNTERS + p * WIRE_PROBE_SLOTS;

			if (slot + WIRE_PROBE_SLOTS > n)
				break;
			c->fired[p] += values[(size_t)(slot + WIRE_PROBE_FIRED) * ncpus + cpu];
			c->dropped[p] += values[(size_t)(slot + WIRE_PROBE_DROPPED) * ncpus + cpu];
		}
	}
}
