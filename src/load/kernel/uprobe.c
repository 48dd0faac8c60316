/* Attaches uprobes: by uprobe_multi links where the kernel has them, else by perf events. */
#define _GNU_SOURCE
#include "load/kernel/kernel_private.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/shield.h"
#include "base/sorted.h"
#include "program/object/object.h"

/* The probes of one uprobe_multi link: same file, same process filter. */
struct group {
	struct object *file;
	const char *path; /* for messages */
	char fd_path[OBJECT_FILE_PATH];
	pid_t pid;
	bool ret;
	VEC(uint64_t) offsets;
	VEC(uint64_t) semaphores;
	VEC(uint64_t) cookies;
	bool has_semaphores;
};

struct outcome {
	uint32_t attached, refused;
	int error; /* the last refusal's errno */
};

static const char *why_refused(int error)
{
	switch (error) {
	case 524: /* ENOTSUPP: the kernel can neither emulate nor step it */
	case EOPNOTSUPP:
	case ENOEXEC: return "the kernel cannot probe the instruction there";
	case EINVAL: return "the kernel refuses the place";
	default: return strerror(error);
	}
}

static void note_refused(struct kernel_engine *k, const struct group *g, uint32_t i, int error)
{
	const struct image_probe *ip = &k->e.image->probes[g->cookies.v[i]];

	engine_note(k, "%s:%s:%s:%s not enabled: %s", ip->prov, ip->mod, ip->func, ip->name,
		    why_refused(error));
}

static void note_red_zone(struct kernel_engine *k, uint32_t probe)
{
	const struct image_probe *ip = &k->e.image->probes[probe];

	engine_note(k,
		    "%s:%s:%s:%s not enabled: this kernel would overwrite data that the function "
		    "keeps below its stack pointer; -x engine=inproc can probe it",
		    ip->prov, ip->mod, ip->func, ip->name);
}

/* Notes that the program's question whether the probe is enabled stays unanswered. A uprobe's
 * program may not write registers (even in Linux 6.18), and changed text must be restored even when
 * descry is killed. Only the in-process engine can do that. */
static void note_asks(struct kernel_engine *k, uint32_t probe)
{
	const struct image_probe *ip = &k->e.image->probes[probe];

	engine_note(
		k,
		"%s:%s:%s:%s: the program checks whether it is enabled, and the kernel engine cannot answer yes, so code that runs only then is not traced; -x engine=inproc can answer",
		ip->prov, ip->mod, ip->func, ip->name);
}

static void note_flag(struct kernel_engine *k, uint32_t probe)
{
	const struct image_probe *ip = &k->e.image->probes[probe];

	engine_note(
		k,
		"%s:%s:%s:%s: the program passes it only while a flag in its memory is set, and the kernel engine does not set it; -x engine=inproc does",
		ip->prov, ip->mod, ip->func, ip->name);
}

static void note_shared_page(struct kernel_engine *k, uint32_t probe)
{
	const struct image_probe *ip = &k->e.image->probes[probe];

	engine_note(
		k,
		"%s:%s:%s:%s: the flag that tells the program it is enabled lies in a page that its "
		"linker (lld) mapped twice, and the kernel may set the other copy; -x engine=inproc "
		"sets the right one",
		ip->prov, ip->mod, ip->func, ip->name);
}

/* Code that a process has moved to memory without its file: the kernel probes pages of files only.
 * A process may have tens of thousands of mappings, and its probes may be in many files, so the
 * mappings are read once. */
struct moved_code {
	pid_t pid; /* 0: of no process */
	VEC(struct mapping) v;
};

static void moved_read(struct moved_code *c, pid_t pid)
{
	struct mappings maps = { 0 };

	if (c->pid == pid)
		return;
	c->pid = pid;
	c->v.n = 0;
	if (err_drop(mappings_read(pid, &maps)))
		return;
	for (uint32_t i = 0; i < maps.n; i++)
		if (maps.v[i].moved)
			vec_push(&c->v, maps.v[i]); /* without its path, which is freed */
	mappings_free(&maps);
}

static int by_offset(const void *a, const void *b)
{
	return COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Counts the offsets that lie in moved code of the file. */
static uint32_t count_moved(const struct moved_code *c, uint64_t inode, const uint64_t *offsets,
			    uint32_t noffsets)
{
	cleanup_free uint64_t *sorted = xmemdup(offsets, noffsets * sizeof(*offsets));
	uint32_t n = 0;

	qsort(sorted, noffsets, sizeof(*sorted), by_offset);
	for (uint32_t i = 0; i < c->v.n; i++) {
		const struct mapping *m = &c->v.v[i];
		const uint64_t end = m->offset + (m->end - m->start);

		if (m->inode == inode)
			n += partition_point(noffsets, k, sorted[k] < end) -
			     partition_point(noffsets, k, sorted[k] < m->offset);
	}
	return n;
}

static void note_moved(struct kernel_engine *k, const struct group *g, pid_t pid,
		       struct moved_code *moved)
{
	struct stat st;
	uint32_t n;

	if (!pid || !object_stat(g->file, &st))
		return;
	moved_read(moved, pid);
	n = moved->v.n ? count_moved(moved, st.st_ino, g->offsets.v, g->offsets.n) : 0;
	if (n)
		engine_remark(
			&k->e,
			xasprintf(
				"process %d has moved code of %s to other memory (huge pages, for instance), where the kernel cannot probe it: %u place%s will not fire; -x engine=inproc sees %s",
				(int)pid, g->path, n, n == 1 ? "" : "s", n == 1 ? "it" : "them"),
			true);
}

/* Returns true when the error concerns one of the places, so that the others are worth a second
 * attempt. */
static bool is_about_a_place(int error)
{
	return error == 524 || error == EOPNOTSUPP || error == ENOEXEC || error == EINVAL ||
	       error == EIO;
}

/* Attaches places [from, to) by one link. When the kernel refuses, attaches each half, down to the
 * place that it refuses. */
static void attach_range(struct kernel_engine *k, int prog, const struct group *g, uint32_t from,
			 uint32_t to, struct outcome *o)
{
	struct uprobe_multi u = {
		.path = g->fd_path,
		.offsets = g->offsets.v + from,
		.cookies = g->cookies.v + from,
		.semaphores = g->has_semaphores ? g->semaphores.v + from : NULL,
		.n = to - from,
		.ret = g->ret,
		.pid = (uint32_t)g->pid,
	};
	int fd = sys_link_uprobe_multi(prog, &u);

	if (fd >= 0) {
		vec_push(&k->links, fd);
		o->attached += to - from;
		return;
	}
	int error = errno;

	if (is_about_a_place(error) && to - from > 1) {
		uint32_t mid = from + (to - from) / 2;

		attach_range(k, prog, g, from, mid, o);
		attach_range(k, prog, g, mid, to, o);
		return;
	}
	o->error = error;
	o->refused += to - from;
	if (is_about_a_place(error))
		note_refused(k, g, from, error);
}

/* --- perf events, where there is no uprobe_multi --- */

static struct err *uprobe_pmu(int *ret_type)
{
	cleanup_free char *text = NULL;
	struct err *e = io_read_file("/sys/bus/event_source/devices/uprobe/type", &text, NULL);

	if (e)
		return err_wrap(e, "this kernel has no uprobes");
	*ret_type = atoi(text);
	return NULL;
}

static struct err *attach_perf(struct kernel_engine *k, int prog, const struct group *g,
			       struct outcome *o)
{
	int type = 0;
	struct err *e = uprobe_pmu(&type);

	if (e)
		return e;
	for (uint32_t i = 0; i < g->offsets.n; i++) {
		struct perf_event_attr a = {
			.type = (uint32_t)type,
			.size = sizeof(a),
			.config = (g->ret ? 1u : 0) | g->semaphores.v[i] << 32,
			.config1 = (uintptr_t)g->fd_path,
			.config2 = g->offsets.v[i],
		};
		cleanup_close int ev = (int)shield_syscall(SYS_perf_event_open, (intptr_t)&a,
							   g->pid > 0 ? g->pid : -1,
							   g->pid > 0 ? -1 : 0, -1,
							   PERF_FLAG_FD_CLOEXEC);
		int link = ev < 0 ? -1 : sys_link_perf(prog, ev, g->cookies.v[i]);

		if (link < 0) {
			o->error = errno;
			o->refused++;
			if (is_about_a_place(errno))
				note_refused(k, g, i, errno);
			continue;
		}
		vec_push(&k->links, link);
		o->attached++;
	}
	return NULL;
}

static void group_fini(struct group *g)
{
	vec_fini(&g->offsets);
	vec_fini(&g->semaphores);
	vec_fini(&g->cookies);
}

static struct err *attach_group(struct kernel_engine *k, const struct instance *in, struct group *g)
{
	struct outcome o = { 0 };
	struct err *e = NULL;

	/* The owner of a path may let it lead to another program meanwhile. Breakpoints at these
	 * offsets would break every process that runs the other one. */
	if (!object_reopen(g->file) || !object_file_path(g->file, g->fd_path))
		return err_new(ESTALE, "%s changed while descry read it; run descry again",
			       g->path);
	if (feature(FEATURE_UPROBE_MULTI))
		attach_range(k, in->fd, g, 0, g->offsets.n, &o);
	else
		e = attach_perf(k, in->fd, g, &o);
	if (e || o.attached)
		return e;
	if (o.error == ESRCH)
		return err_new(ESRCH, "process %d is gone", g->pid);
	if (is_about_a_place(o.error))
		return err_new(o.error, "%s: none of %u probe%s can be enabled: %s", g->path,
			       o.refused, o.refused == 1 ? "" : "s", why_refused(o.error));
	return err_wrap(sys_err(o.error, "attaching uprobes"), "%s", g->path);
}

/* Lists the semaphores of probes by their places. */
static void semaphores_list(const struct image *img, struct hash *ret)
{
	for (uint32_t i = 0; i < img->nprobes; i++) {
		const struct probe *o = img->probes[i].probe;
		bool is_new;
		uint64_t *at;

		if (!o || !o->semaphore)
			continue;
		at = hash_put(ret, (uint64_t[]){ (uintptr_t)o->file, o->offset }, 16, &is_new);
		if (is_new)
			*at = o->semaphore;
	}
}

/* Returns the semaphore to name at q's place. The kernel keeps one counter for each place of a
 * file, and refuses (EINVAL) a second program there with another counter or none. So a pid probe on
 * the instruction of a USDT probe takes this probe's semaphore. */
static uint64_t semaphore_at(const struct hash *semaphores, const struct probe *q)
{
	const uint64_t *at;

	if (q->semaphore || !semaphores->n)
		return q->semaphore;
	at = hash_get(semaphores, (uint64_t[]){ (uintptr_t)q->file, q->offset }, 16);
	return at ? *at : 0;
}

static void add_place(struct group *g, uint64_t offset, uint64_t semaphore, uint32_t probe)
{
	vec_push(&g->offsets, offset);
	vec_push(&g->semaphores, semaphore);
	vec_push(&g->cookies, probe);
	g->has_semaphores |= semaphore != 0;
}

/* Return probes whose function's ends are not all known. */
struct left_out {
	uint32_t n, first; /* the first one's probe */
	const char *reason;
};

/* Adds the places of a probe. */
static void add_places(struct kernel_engine *k, struct group *g, uint32_t probe,
		       const struct hash *semaphores, struct exits_text *held,
		       struct left_out *left)
{
	const struct image *img = k->e.image;
	const struct probe *p = img->probes[probe].probe;
	exits_t exits = { 0 };
	const char *reason;

	if (!p->by_exits) {
		add_place(g, p->offset, semaphore_at(semaphores, p), probe);
		return;
	}
	reason = exits_find(p, held, &exits);
	if (reason && !left->n++) {
		left->first = probe;
		left->reason = reason;
	}
	for (uint32_t i = 0; i < exits.n && !reason; i++)
		add_place(g, exits.v[i], 0, probe);
	vec_fini(&exits);
}

static void note_left_out(struct kernel_engine *k, const struct left_out *left)
{
	const struct image_probe *ip = &k->e.image->probes[left->first];
	cleanup_free char *more = left->n > 1 ? xasprintf(" and %u more", left->n - 1)
					      : xstrdup("");

	engine_note(
		k,
		"%s:%s:%s:%s%s not enabled: the function's ends are not known, and a return probe of the kernel's could end the process: %s",
		ip->prov, ip->mod, ip->func, ip->name, more, left->reason);
}

/* The probes of a program, in groups: next[i] is the next one of i's group, 0 at its end. Those of
 * thousands of files are not compared with each other. */
static uint32_t *groups_make(const struct image *img, const struct image_prog *p,
			     const struct instance *in, bool *ret_first)
{
	uint32_t *next = xcalloc(p->nprobes, sizeof(*next));
	struct hash last = { 0 };

	for (uint32_t i = 0; i < p->nprobes; i++) {
		const struct probe *q = img->probes[p->probes[i]].probe;
		const uint64_t key[] = { (uintptr_t)q->file, (uint64_t)q->pid,
					 (uint64_t)q->kind << 1 | q->by_exits };
		uint64_t *at;

		if (in->probe != UINT32_MAX && in->probe != p->probes[i])
			continue;
		at = hash_put(&last, key, sizeof(key), &ret_first[i]);
		if (!ret_first[i])
			next[*at] = i;
		*at = i;
	}
	hash_fini(&last);
	return next;
}

/* Adds the places of a probe to its group, or notes why it has none. */
static void add_probe(struct kernel_engine *k, struct group *g, uint32_t probe,
		      const struct hash *semaphores, struct exits_text *held, struct left_out *left)
{
	const struct probe *q = k->e.image->probes[probe].probe;

	if (q->red_zone && !feature(FEATURE_NOP5)) {
		note_red_zone(k, probe);
		return;
	}
	if (q->nasks)
		note_asks(k, probe);
	if (q->flag && !q->java_switch)
		note_flag(k, probe);
	if (q->semaphore_shares_page)
		note_shared_page(k, probe);
	add_places(k, g, probe, semaphores, held, left);
}

struct err *attach_uprobes(struct kernel_engine *k, struct instance *in)
{
	const struct image *img = k->e.image;
	const struct image_prog *p = &img->progs[in->prog];
	cleanup_free bool *first = xcalloc(p->nprobes, sizeof(*first));
	cleanup_free uint32_t *next = groups_make(img, p, in, first);
	/* the program itself checks whose child the process is, or its number */
	bool checks = img->compares || (img->options && opt_on(img->options, OPT_FOLLOW));
	struct hash semaphores = { 0 };
	struct exits_text held = { 0 };
	struct left_out left = { 0 };
	struct moved_code moved = { 0 };
	struct err *e = NULL;

	semaphores_list(img, &semaphores);
	for (uint32_t i = 0; i < p->nprobes && !e; i++) {
		if (!first[i])
			continue;
		const struct probe *q = img->probes[p->probes[i]].probe;
		struct group g = { .file = q->file,
				   .path = q->object,
				   .pid = checks ? 0 : q->pid,
				   .ret = q->kind == ATTACH_URETPROBE && !q->by_exits };

		add_probe(k, &g, p->probes[i], &semaphores, &held, &left);
		for (uint32_t j = next[i]; j; j = next[j])
			add_probe(k, &g, p->probes[j], &semaphores, &held, &left);
		if (g.offsets.n)
			note_moved(k, &g, q->pid, &moved);
		e = g.offsets.n ? attach_group(k, in, &g) : NULL;
		group_fini(&g);
	}
	exits_text_free(&held);
	hash_fini(&semaphores);
	vec_fini(&moved.v);
	if (left.n)
		note_left_out(k, &left);
	return e;
}
