/* Keeps islands to which code of the process's own leads.
 *
 * A program that hooks a function while it is traced finds descry's jump there. It copies the jump
 * to a trampoline, and keeps it, to put it back when it removes the hook. So the jump may run, or
 * be in the text again, at any time after the detach. Such an island stays, as a copy in private
 * memory whose gates lead back to their stub. A stub then executes the displaced instructions and
 * jumps back, and needs nothing else of descry's. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/sorted.h"
#include "load/inproc/undo/undo_private.h"

enum {
	JMP = 0xe9,
	JMP_LEN = 5,
	CHUNK = 1 << 16,
	STILL_MAX = 1 << 16, /* a process may have any number of jumps */
	/* Bytes of the process's own code that are searched, in all and in one mapping: some 15 ms.
	 * Trampolines lie in small mappings, the code of compilers at run time in large ones. */
	SCAN_MAX = 16 << 20,
	SCAN_MAPPING_MAX = 4 << 20,
};

static const uint8_t gate_code[] = WIRE_GATE_CODE;

static int by_number(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* The addresses to which descry's jumps lead. */
struct targets {
	VEC(uint64_t) v; /* sorted */
};

static void find_targets(const struct undo_log *log, struct targets *ret)
{
	for (uint32_t i = 0; i < log->sites.n; i++) {
		const struct wire_undo *u = &log->sites.v[i];
		int32_t rel;

		if (!u->stub_len || u->len < JMP_LEN || u->after[0] != JMP)
			continue;
		memcpy(&rel, u->after + 1, sizeof(rel));
		vec_push(&ret->v, u->site + JMP_LEN + (uint64_t)(int64_t)rel);
	}
	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), by_number);
}

static bool is_target(const struct targets *t, uint64_t addr)
{
	const uint32_t at = partition_point(t->v.n, i, t->v.v[i] < addr);

	return at < t->v.n && t->v.v[at] == addr;
}

/* Searches n bytes at `addr` for jumps to a target, by their distance or by the address itself, and
 * adds the targets to *still. */
static void scan_bytes(const uint8_t *p, uint32_t n, uint64_t addr, const struct targets *t,
		       struct undo_log *log)
{
	const uint64_t lo = t->v.v[0], size = *vec_last(&t->v) - lo;

	for (uint32_t i = 0; i + sizeof(uint64_t) <= n; i++) {
		uint64_t word, to;
		int32_t rel;

		memcpy(&word, p + i, sizeof(word));
		memcpy(&rel, p + i + 1, sizeof(rel));
		to = addr + i + JMP_LEN + (uint64_t)(int64_t)rel;
		if (p[i] != JMP || to - lo > size)
			to = word;
		if (to - lo <= size && log->still.n < STILL_MAX && is_target(t, to))
			vec_push(&log->still, to);
	}
}

static void scan_range(struct control *c, struct space_range r, const struct targets *t,
		       uint64_t *left, struct undo_log *log)
{
	enum { OVERLAP = sizeof(uint64_t) - 1 };
	cleanup_free uint8_t *buf = xmalloc(CHUNK + 2 * OVERLAP);

	/* behind the end, zeros, so that a jump in the last bytes is seen */
	for (uint64_t at = r.start; at < r.end && *left;) {
		uint32_t n = r.end - at < CHUNK + OVERLAP ? (uint32_t)(r.end - at)
							  : CHUNK + OVERLAP;

		n = n < *left ? n : (uint32_t)*left;
		if (err_drop(control_read(c, at, buf, n)))
			return;
		memset(buf + n, 0, OVERLAP);
		scan_bytes(buf, n + OVERLAP, at, t, log);
		*left -= n;
		at += n > OVERLAP && at + n < r.end ? n - OVERLAP : n;
	}
}

/* Returns true for memory in which a program makes code: no file's, or a file's that it writes. */
static bool is_made_code(const struct mapping *m, const char *island)
{
	return m->exec && m->read && strncmp(m->path, "[v", 2) &&
	       (!m->inode || m->write || !strncmp(m->path, "/memfd:", 7)) &&
	       !mapping_is_memfd(m, island) && !mapping_is_memfd(m, WIRE_MEMFD_CODE);
}

/* Adds to log->still the stubs that code of the process's own leads to. */
static struct err *find_jumps(struct control *c, struct undo_log *log, const struct mappings *maps,
			      const char *island)
{
	struct targets targets = { 0 };
	struct space *space = NULL;
	uint64_t left = SCAN_MAX;
	struct err *e = NULL;

	find_targets(log, &targets);
	for (uint32_t i = 0; i < maps->n && targets.v.n && left && !e; i++) {
		const struct mapping *m = &maps->v[i];
		uint64_t part = left < SCAN_MAPPING_MAX ? left : SCAN_MAPPING_MAX;
		space_range_vec code = { 0 };

		if (!is_made_code(m, island))
			continue;
		left -= part;
		e = space ? NULL : control_space(c, &space);
		if (!e)
			err_free(space_resident_of(space, (struct space_range){ m->start, m->end },
						   &code));
		for (uint32_t k = 0; k < code.n && !e; k++)
			scan_range(c, code.v[k], &targets, &part, log);
		left += part;
		vec_fini(&code);
	}
	space_free(space);
	vec_fini(&targets.v);
	return e;
}

bool undo_any_in(const uint64_t *v, uint32_t n, uint64_t lo, uint64_t hi)
{
	const uint32_t at = partition_point(n, i, v[i] < lo);

	return at < n && v[at] < hi;
}

bool undo_is_kept(const undo_ranges *kept, uint64_t lo)
{
	const uint32_t at = partition_point(kept->n, i, kept->v[i].lo < lo);

	return at < kept->n && kept->v[at].lo == lo;
}

struct err *undo_find_kept(struct control *c, struct undo_log *log, undo_ranges *ret)
{
	const struct mappings *maps;
	char island[UNDO_NAME];
	struct err *e = control_maps(c, &maps);

	undo_island_name(log->base, island);
	e = e ?: find_jumps(c, log, maps, island);
	if (log->still.n)
		qsort(log->still.v, log->still.n, sizeof(*log->still.v), by_number);
	for (uint32_t i = 0; !e && i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];

		if (undo_any_in(log->still.v, log->still.n, m->start, m->end) &&
		    mapping_is_memfd(m, island))
			vec_push(ret, (struct control_range){ m->start, m->end });
	}
	return e;
}

uint64_t undo_first_stub(const struct undo_log *log, uint64_t from)
{
	const uint32_t at = partition_point(log->sites.n, i, log->by_stub[i].stub < from);

	return at < log->sites.n ? log->by_stub[at].stub : UINT64_MAX;
}

/* Lets the gates at the beginning of an island lead back. Returns false when there are none. */
static bool turn_gates(uint8_t *island, uint64_t addr, uint64_t size)
{
	uint64_t at = 0;

	for (struct wire_gate g; at + sizeof(g) <= size; at += sizeof(g)) {
		static const struct wire_gate unused;

		memcpy(&g, island + at, sizeof(g));
		if (!memcmp(&g, &unused, sizeof(g)))
			continue;
		if (memcmp(g.code, gate_code, sizeof(g.code)))
			break;
		g.target = addr + at + WIRE_GATE_BACK;
		memcpy(island + at, &g, sizeof(g));
	}
	return at > 0 && !memcmp(island, gate_code, sizeof(gate_code));
}

static struct err *call(struct control *c, const char *what, long nr, const uint64_t args[6],
			uint64_t *ret)
{
	int64_t got = 0;
	struct err *e = control_syscall(c, nr, args, &got);

	if (!e && got < 0 && got > -UNDO_PAGE)
		e = err_errno((int)-got, "%s in process %d", what, control_pid(c));
	*ret = (uint64_t)got;
	return e;
}

/* Writes the copy elsewhere, and moves it over the island in one system call: at each moment the
 * process can execute the island. */
struct err *undo_keep(struct control *c, struct control_range r, uint64_t *left)
{
	enum { HOW = MAP_PRIVATE | MAP_ANONYMOUS };
	const uint64_t size = r.hi - r.lo;
	cleanup_free uint8_t *copy = NULL;
	uint64_t at = 0, got;
	struct err *e;

	if (size > *left)
		return err_new(E2BIG, "islands of more than %d bytes", UNDO_KEPT_MAX);
	*left -= size;
	copy = xmalloc(size);
	e = control_read(c, r.lo, copy, (uint32_t)size);
	if (!e && !turn_gates(copy, r.lo, size))
		e = err_new(EINVAL, "an island without gates");
	if (!e)
		e = call(c, "mmap", SYS_mmap,
			 (uint64_t[6]){ 0, size, PROT_READ | PROT_WRITE, HOW, (uint64_t)-1 }, &at);
	if (e)
		return e;
	e = control_write(c, at, copy, (uint32_t)size);
	e = e
		    ?: call(c, "mprotect", SYS_mprotect,
			    (uint64_t[6]){ at, size, PROT_READ | PROT_EXEC }, &got);
	e = e
		    ?: call(c, "mremap", SYS_mremap,
			    (uint64_t[6]){ at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, r.lo },
			    &got);
	if (e)
		err_free(call(c, "munmap", SYS_munmap, (uint64_t[6]){ at, size }, &got));
	return e;
}
