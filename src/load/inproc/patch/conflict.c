/* Finds uprobes at places where another descry has its jump. For such a uprobe the kernel copies
 * the file's first instruction, writes an int3 over the jump's first byte, and lets the program
 * continue behind that instruction, in the middle of the jump. So the kernel engine does not attach
 * such uprobes. The opposite case does no harm: the in-process engine does not patch a place that
 * holds a uprobe's int3. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "base/procmem.h"
#include "base/sorted.h"
#include "data/options.h"
#include "load/inproc/patch/conflict.h"
#include "load/inproc/undo/undo.h"

enum {
	/* Records of a process that are looked at, in all its areas: twice as many as a tracer can
	 * make. A process that has more has forged them, and harms itself. */
	LOOK_RECORDS = 2 << 20,
};
/* The processor's time that the search may take, because each process can make its list of mappings
 * and its records long. */
#define LOOK_NS 5000000000ull

/* The place of a uprobe in a file. Devices are not compared: on some file systems /proc/PID/maps
 * and stat(2) name different ones for one file. */
struct uprobe_place {
	uint64_t inode, offset;
	pid_t pid; /* 0: all processes */
	const struct probe *probe;
};

struct conflict_look {
	VEC(struct uprobe_place) places; /* sorted */
	/* those of the process that is looked at */
	pid_t pid;
	const struct mappings *maps;
	const struct probe *found;
};

static bool is_uprobe(const struct probe *p)
{
	return (p->kind == ATTACH_UPROBE || p->kind == ATTACH_URETPROBE) && p->object;
}

static int by_place(const void *a, const void *b)
{
	const struct uprobe_place *x = a, *y = b;

	return COMPARE(x->inode, y->inode) ?: COMPARE(x->offset, y->offset);
}

/* Returns the inode of the file that the probe attaches to, 0: it has gone. */
static uint64_t inode_of(const struct probe *p)
{
	char path[OBJECT_FILE_PATH];
	struct stat st;

	if (p->file && object_reopen(p->file) && object_file_path(p->file, path) &&
	    !stat(path, &st))
		return st.st_ino;
	return stat(p->object, &st) ? 0 : st.st_ino;
}

static void places_collect(struct conflict_look *l, const struct image *img)
{
	/* With -x follow the kernel is given no process: the program looks whose child it is. */
	const bool all = img->options && opt_on(img->options, OPT_FOLLOW);
	const struct probe *last = NULL;
	uint64_t inode = 0;

	for (uint32_t i = 0; i < img->nprobes; i++) {
		const struct probe *p = img->probes[i].probe;

		if (!is_uprobe(p))
			continue;
		if (!last || last->file != p->file || strcmp(last->object, p->object))
			inode = inode_of(p);
		last = p;
		if (inode)
			vec_push(&l->places,
				 ((struct uprobe_place){ inode, p->offset, all ? 0 : p->pid, p }));
	}
	if (l->places.n)
		qsort(l->places.v, l->places.n, sizeof(*l->places.v), by_place);
}

/* Looks for probes at the bytes that each record says are patched. */
static bool probes_find_at(void *arg, const struct wire_undo *u, uint32_t n)
{
	struct conflict_look *l = arg;

	for (uint32_t i = 0; i < n && !l->found; i++) {
		const uint32_t len = u[i].len < WIRE_SITE_MAX ? u[i].len : WIRE_SITE_MAX;
		const struct mapping *m = len ? mappings_find(l->maps, u[i].site) : NULL;
		const uint64_t first = m ? u[i].site - m->start + m->offset : 0;
		uint32_t k;

		if (!m || !m->exec || !m->inode)
			continue;
		k = partition_point(l->places.n, j,
				    l->places.v[j].inode < m->inode ||
					    (l->places.v[j].inode == m->inode &&
					     l->places.v[j].offset < first));
		for (; k < l->places.n && l->places.v[k].inode == m->inode &&
		       l->places.v[k].offset - first < len;
		     k++)
			if (!l->places.v[k].pid || l->places.v[k].pid == l->pid)
				l->found = l->places.v[k].probe;
	}
	return !l->found;
}

static struct err *look_into(pid_t pid, struct conflict_look *l)
{
	uint64_t bases[WIRE_BASES];
	struct control *c = NULL;
	struct err *e = control_open(pid, &c) ?: control_maps(c, &l->maps);
	uint32_t n = 0, left = LOOK_RECORDS, tracer = 0;

	l->pid = pid;
	l->found = NULL;
	e = e ?: undo_areas(c, bases, &n);
	for (uint32_t i = 0; i < n && !e && !l->found; i++) {
		e = undo_log_scan(c, bases[i], &left, &tracer, probes_find_at, l);
		/* An area may be damaged, and the next one whole. */
		if (e && e->code == EINVAL) {
			err_free(e);
			e = NULL;
		}
	}
	/* The process has just ended, or this user may not read it and so cannot attach to it. */
	err_free(e);
	control_free(c);
	if (!l->found)
		return NULL;
	return err_new(
		EBUSY,
		"%s:%s:%s:%s: process %d is traced from inside by descry, process %u: a uprobe at the place of its jump would end the program",
		l->found->prov, l->found->mod, l->found->func, l->found->name, (int)pid, tracer);
}

static bool is_probed(const struct conflict_look *l, pid_t pid)
{
	for (uint32_t i = 0; i < l->places.n; i++)
		if (!l->places.v[i].pid || l->places.v[i].pid == pid)
			return true;
	return false;
}

/* Returns true when the process has memory at the place of an area's code, or a page there that
 * does not come. Does not read the list of mappings, which a process can make long. */
static bool has_areas(pid_t pid)
{
	cleanup_free char *path = xasprintf("/proc/%d/mem", (int)pid);
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool any = false;
	char byte;

	for (uint32_t i = 0; i < 2 * WIRE_BASES && fd >= 0 && !any; i++) {
		const uint64_t base = WIRE_BASE + i / 2 * WIRE_BASE_STEP;

		errno = 0;
		any = procmem_pread(pid, fd, &byte, 1, i % 2 ? base + WIRE_FACTS : base) == 1 ||
		      errno == ETIMEDOUT;
	}
	return any;
}

struct err *inproc_conflict(const struct image *img)
{
	const uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + LOOK_NS;
	struct conflict_look l = { 0 };
	struct err *e = NULL;
	cleanup_dir DIR *d = NULL;

	places_collect(&l, img);
	d = l.places.n ? opendir("/proc") : NULL;
	for (pid_t pid; !e && procdir_next(d, &pid);) {
		if (pid == getpid() || !is_probed(&l, pid) || !has_areas(pid))
			continue;
		e = look_into(pid, &l);
		if (!e && clock_ns(CLOCK_THREAD_CPUTIME_ID) > end)
			e = err_new(
				EBUSY,
				"it takes too long to check whether uprobes would harm the processes that another descry traces from inside: the last one looked at was process %d; end such processes, or trace one process with -p",
				(int)pid);
	}
	vec_fini(&l.places);
	return e;
}
