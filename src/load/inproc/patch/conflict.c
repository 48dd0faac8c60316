/* Finds uprobes at places where another descry has its jump. For such a uprobe the kernel copies
 * the file's first instruction, writes an int3 over the jump's first byte, and lets the program
 * continue behind that instruction, in the middle of the jump. So the kernel engine does not attach
 * such uprobes. The opposite case does no harm: the in-process engine does not patch a place that
 * holds a uprobe's int3. */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/procdir.h"
#include "base/sorted.h"
#include "load/inproc/patch/conflict.h"
#include "load/inproc/undo/undo.h"

/* The processor's time that the search may take, because each process can make its list of mappings
 * long. */
#define LOOK_NS 5000000000ull

static bool is_uprobe(const struct probe *p)
{
	return (p->kind == ATTACH_UPROBE || p->kind == ATTACH_URETPROBE) && p->object;
}

struct where {
	const struct probe *probe;
	struct stat file;
};

/* Looks up the probe's address, once for each mapping of its file, in the records. */
static bool is_patched(const struct undo_log *log, const struct mappings *maps,
		       const struct where *w)
{
	for (uint32_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		uint64_t addr = m->start + (w->probe->offset - m->offset);
		uint32_t lo;

		if (m->inode != w->file.st_ino || !m->exec || w->probe->offset < m->offset ||
		    addr >= m->end)
			continue;
		lo = partition_point(log->sites.n, k, log->sites.v[k].site <= addr);
		while (lo-- > 0 && addr - log->sites.v[lo].site < WIRE_SITE_MAX)
			if (addr - log->sites.v[lo].site < log->sites.v[lo].len)
				return true;
	}
	return false;
}

static struct err *conflict_look_at(struct control *c, const struct image *img,
				    const struct undo_log *log)
{
	struct where w = { NULL };
	const char *last = NULL;
	const struct mappings *maps;
	struct err *e = control_maps(c, &maps);

	if (e) { /* the process has just ended */
		err_free(e);
		return NULL;
	}
	for (uint32_t i = 0; i < img->nprobes && !e; i++) {
		const struct probe *p = img->probes[i].probe;

		if (!is_uprobe(p) || (p->pid && p->pid != control_pid(c)))
			continue;
		if ((!last || strcmp(last, p->object)) && stat(p->object, &w.file))
			continue;
		last = p->object;
		w.probe = p;
		if (is_patched(log, maps, &w))
			e = err_new(
				EBUSY,
				"%s:%s:%s:%s: process %d is traced from inside by descry, process %u: a uprobe at the place of its jump would end the program",
				p->prov, p->mod, p->func, p->name, (int)control_pid(c),
				log->tracer_pid);
	}
	return e;
}

static struct err *look_into(pid_t pid, const struct image *img)
{
	uint64_t bases[WIRE_BASES];
	struct control *c = NULL;
	struct err *e = control_open(pid, &c), *found = NULL;
	uint32_t n = 0;

	e = e ?: undo_areas(c, bases, &n);
	for (uint32_t i = 0; i < n && !e && !found; i++) {
		struct undo_log log = { 0 };

		e = undo_log_read(c, bases[i], &log);
		if (!e)
			found = conflict_look_at(c, img, &log);
		undo_log_fini(&log);
	}
	/* The process has just ended, or this user may not read it and so cannot attach to it. */
	err_free(e);
	control_free(c);
	return found;
}

static bool is_probed(const struct image *img, pid_t pid)
{
	for (uint32_t i = 0; i < img->nprobes; i++) {
		const struct probe *p = img->probes[i].probe;

		if (is_uprobe(p) && (!p->pid || p->pid == pid))
			return true;
	}
	return false;
}

struct err *inproc_conflict(const struct image *img, bool *ret_all)
{
	const uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + LOOK_NS;
	struct err *e = NULL;
	cleanup_dir DIR *d = NULL;
	bool any = false;

	*ret_all = true;
	for (uint32_t i = 0; i < img->nprobes; i++)
		any |= is_uprobe(img->probes[i].probe);
	d = any ? opendir("/proc") : NULL;
	for (pid_t pid; !e && procdir_next(d, &pid);) {
		if (pid == getpid() || !is_probed(img, pid))
			continue;
		*ret_all = clock_ns(CLOCK_THREAD_CPUTIME_ID) < end;
		if (!*ret_all)
			break;
		if (mappings_any(pid, "/memfd:" WIRE_MEMFD_CODE))
			e = look_into(pid, img);
	}
	return e;
}
