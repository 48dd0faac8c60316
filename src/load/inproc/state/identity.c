/* Finds the word that distinguishes a thread from all others, and that is read without a system
 * call:
 *
 *	glibc         its copy of the thread id, at %fs:offset. _thread_db_pthread_tid tells libthread_db the place: three
 *	              uint32_t: bits, number of elements, offset
 *	else, with a C library that is set up before the program starts: the thread pointer at %fs:0 (psABI TLS)
 *	else          the fs base itself, by rdfsbase, because static programs run code before they have set up the pointer
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "load/inproc/state/identity.h"

enum { HWCAP2_RDFSBASE = 1 << 1 /* HWCAP2_FSGSBASE */, TID_BITS = 32, OFFSET_MAX = 1 << 16 };

struct found {
	enum wire_identity identity;
	uint64_t disp;
	/* the dynamic linker has not mapped a C library yet, or the process has ended */
	bool early;
};

bool identity_is_musl(struct object *o)
{
	const char *path = object_path(o), *name = strrchr(path, '/');

	return !object_soname(o) && name &&
	       (!strcmp(name, "/libc.so") || !strncmp(name, "/ld-musl-", 9));
}

static bool glibc_tid(struct object *o, uint64_t *ret_disp)
{
	uint32_t field[3];
	uint64_t addr;

	if (!object_symbol_value(o, "_thread_db_pthread_tid", &addr) ||
	    object_read(o, addr, field, sizeof(field)) != sizeof(field) || field[0] != TID_BITS ||
	    field[2] > OFFSET_MAX)
		return false;
	*ret_disp = field[2];
	return true;
}

static struct found of_process(struct inproc_engine *e, pid_t pid)
{
	struct found f = { .identity = WIRE_ID_FSBASE };
	struct mappings maps = { 0 };
	bool mapped = false, linked = false, any = false;

	if (!(getauxval(AT_HWCAP2) & HWCAP2_RDFSBASE))
		f.identity = WIRE_ID_FS64;
	err_free(mappings_read(pid, &maps));
	for (uint32_t i = 0; i < maps.n; i++) {
		const struct mapping *m = &maps.v[i];
		struct object *o = m->exec ? symbols_object(e->symbols, pid, m) : NULL;

		if (!o)
			continue;
		mapped = true;
		linked |= object_interp(o) != NULL;
		any |= identity_is_musl(o) ||
		       (object_soname(o) && !strncmp(object_soname(o), "libc.", 5));
		if (object_interp(o) && f.identity == WIRE_ID_FSBASE)
			f.identity = WIRE_ID_FS64;
		if (object_soname(o) && !strcmp(object_soname(o), "libc.so.6") &&
		    glibc_tid(o, &f.disp))
			f.identity = WIRE_ID_FS32;
	}
	mappings_free(&maps);
	f.early = !mapped || (linked && !any);
	return f;
}

void identity_find(struct inproc_engine *e)
{
	struct found f = { .identity = WIRE_ID_FS32 }, g;
	bool any = false;

	for (uint32_t i = 0; i < e->named.ntargets; i++) {
		g = of_process(e, e->named.targets[i].pid);
		if (any && (g.identity != f.identity || g.disp != f.disp))
			g = (struct found){ .identity = g.identity == WIRE_ID_FSBASE ||
									f.identity == WIRE_ID_FSBASE
								? WIRE_ID_FSBASE
								: WIRE_ID_FS64 };
		f = g;
		any = true;
	}
	e->area->identity = f.identity;
	e->area->id_disp = f.disp;
}

struct err *identity_check(struct inproc_engine *e, pid_t pid)
{
	struct found f = of_process(e, pid);

	if (e->area->identity == WIRE_ID_FSBASE ||
	    (e->area->identity == WIRE_ID_FS64 && f.identity != WIRE_ID_FSBASE) ||
	    (f.identity == e->area->identity && f.disp == e->area->id_disp))
		return NULL;
	if (f.early) /* or it has executed yet another program since */
		return err_new(ESRCH, "the program has only begun, or has ended");
	return err_new(
		ENOTSUP,
		"the program it executes has another C library than the first one, or none, so its threads cannot be distinguished");
}

bool identity_is_set(const struct inproc_engine *e, const struct user_regs_struct *regs)
{
	return e->area->identity == WIRE_ID_FSBASE || regs->fs_base;
}

struct word {
	uint64_t value;
	pid_t tid;
};

static int by_value(const void *a, const void *b)
{
	const struct word *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

/* Reads a stopped thread's word as a firing reads it, without a guard. */
static struct err *read_word(const struct inproc_engine *e, struct control *c,
			     const struct control_thread *t, struct word *ret)
{
	const size_t size = e->area->identity == WIRE_ID_FS32 ? 4 : 8;

	*ret = (struct word){ .value = t->regs.fs_base, .tid = t->tid };
	if (e->area->identity == WIRE_ID_FSBASE)
		return NULL;
	ret->value = 0;
	return control_read(c, t->regs.fs_base + e->area->id_disp, &ret->value, size);
}

struct err *identity_check_threads(const struct inproc_engine *e, struct control *c)
{
	uint32_t n;
	const struct control_thread *t = control_threads(c, &n);
	VEC(struct word) words = { 0 };
	struct err *err = NULL;

	for (uint32_t i = 0; i < n && !err; i++) {
		struct word w;

		if (t[i].blocked || t[i].guest)
			continue;
		if (!identity_is_set(e, &t[i].regs)) {
			err = err_new(ESRCH, "its thread %d has no thread pointer", (int)t[i].tid);
		} else if (err_drop(read_word(e, c, &t[i], &w))) {
			err = err_new(
				ENOTSUP,
				"its thread %d, which the program has made by clone(2) itself, has no C library's memory: use -x engine=kernel",
				(int)t[i].tid);
		} else {
			vec_push(&words, w);
		}
	}
	if (!err && words.n > 1)
		qsort(words.v, words.n, sizeof(*words.v), by_value);
	for (uint32_t i = 1; i < words.n && !err; i++)
		if (words.v[i].value == words.v[i - 1].value)
			err = err_new(
				ENOTSUP,
				"its threads %d and %d, one of which the program has made by clone(2) itself, cannot be distinguished: use -x engine=kernel",
				(int)words.v[i - 1].tid, (int)words.v[i].tid);
	vec_fini(&words);
	return err;
}
