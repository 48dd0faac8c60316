/* Modules that are loaded later or return: maps islands for them and patches them, in one more
 * stop. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "load/inproc/memory/inproc_files.h"
#include "load/inproc/memory/remote.h"
#include "load/inproc/patch/inproc_patch.h"
#include "load/inproc/patch/islands.h"
#include "load/inproc/patch/records.h"
#include "load/inproc/state/process_state.h"
#include "load/inproc/undo/undo.h"

enum { STOP_MS = 2000 };

/* Islands of modules that are new or are mapped at another address. */
struct islands {
	int fd;
	VEC(uint32_t) placed; /* modules */
};

/* Leaves the old place of a module that is mapped elsewhere now. The stubs stay in the memory file
 * and in forked children. */
static void leave_place(struct inproc_process *p, struct inproc_module *m)
{
	if (m->island_mem) {
		munmap(m->island_mem, m->island_size);
		vec_push(&p->left, (struct control_range){ m->island, m->island + m->island_size });
	}
	m->island_mem = NULL;
	m->island = 0;
	m->records &= m->fresh; /* other records belong to the old place */
}

static struct err *extend_islands(struct inproc_engine *e, struct inproc_process *p,
				  struct islands *ret)
{
	struct ranges r = { 0 };
	struct err *err = ranges_read(p->pid, &r);
	uint64_t used = 0, at = 0;

	for (uint32_t i = 0; i < p->modules.n; i++)
		if (!p->modules.v[i].enabled && !p->modules.v[i].gone)
			used += island_room(e, p, &p->modules.v[i]);
	ret->fd = island_file(e, used);
	if (!err && ret->fd < 0)
		err = err_errno(errno, "memfd_create");
	for (uint32_t i = 0; i < p->modules.n && !err; i++) {
		struct inproc_module *m = &p->modules.v[i];

		if (m->enabled || m->gone || !m->nsites ||
		    (m->island_mem && m->island_bias == m->bias))
			continue;
		leave_place(p, m);
		err = island_place(e, p, m, &r, ret->fd, &at);
		if (m->island_mem)
			vec_push(&ret->placed, i);
		if (!err && m->island_mem)
			err = island_write_stubs(e, p, m);
	}
	ranges_fini(&r);
	return err ?: file_seal(&ret->fd, &e->files.unsealed);
}

/* Maps the islands in the stopped process. Sends the code's file too, by which a watchdog
 * recognises the other file as descry's. */
static struct err *map_islands(struct inproc_engine *e, struct inproc_process *p, struct control *c,
			       const struct islands *is, uint32_t *ret_mapped)
{
	const int fds[] = { e->files.code.fd, is->fd };
	int theirs[2] = { -1, -1 };
	struct err *err = NULL;

	if (is->placed.n)
		err = remote_send_files(c, e->addr + WIRE_MAIL, fds, 2, theirs);
	for (uint32_t i = 0; i < is->placed.n && !err; i++) {
		const struct inproc_module *m = &p->modules.v[is->placed.v[i]];

		err = remote_map(c, m->island, m->island_size, PROT_READ | PROT_EXEC, theirs[1],
				 m->island_at);
		*ret_mapped += !err;
	}
	for (int i = 2; i-- > 0;)
		if (theirs[i] >= 0)
			err_free(remote_call(c, "close", SYS_close, (uint64_t)theirs[i], 0, 0,
					     NULL));
	return err;
}

/* Unmaps the islands at old places of modules, where no thread returns to them. */
static void unmap_left(struct inproc_process *p, struct control *c)
{
	for (uint32_t i = p->left.n; i-- > 0;) {
		const struct control_range *r = &p->left.v[i];
		pid_t tid = 1;

		err_free(control_refers(c, r, 1, false, &tid));
		if (tid)
			continue;
		err_free(remote_call(c, "munmap", SYS_munmap, r->lo, r->hi - r->lo, 0, NULL));
		p->left.v[i] = p->left.v[--p->left.n];
	}
}

/* Removes the islands of a failed extension, which is tried again later. */
static void take_back_islands(struct inproc_engine *e, struct inproc_process *p, struct control *c,
			      const struct islands *is, uint32_t mapped)
{
	for (uint32_t i = 0; i < p->modules.n; i++)
		if (!p->modules.v[i].enabled)
			process_forget(e, p, i);
	for (uint32_t i = 0; i < is->placed.n; i++) {
		struct inproc_module *m = &p->modules.v[is->placed.v[i]];

		if (i < mapped)
			err_free(remote_call(c, "munmap", SYS_munmap, m->island, m->island_size, 0,
					     NULL));
		munmap(m->island_mem, m->island_size);
		m->island_mem = NULL;
		m->island = 0;
	}
}

static struct err *try_extend(struct inproc_engine *e, struct inproc_process *p)
{
	struct islands is = { .fd = -1 };
	struct undo_log log = { 0 };
	struct control *c = NULL;
	struct err *err = extend_islands(e, p, &is);
	uint32_t mapped = 0;

	err = err ?: records_write(e, p, &log);
	err = err ?: control_open(p->pid, &c);
	err = err ?: control_stop_to_call(c, STOP_MS);
	if (!err && !process_holds(e, p->pid))
		err = err_new(ESRCH, "process %d has executed another program", (int)p->pid);
	if (!err && !samples_quiet(e, c))
		err = err_new(EEXIST, "threads are being sampled"); /* again, soon */
	err = err ?: map_islands(e, p, c, &is, &mapped);
	if (err) {
		take_back_islands(e, p, c, &is, mapped);
	} else {
		/* before the patch, because a partial patch needs its records too */
		records_enabled(p);
		err = records_patch(e, p, c, &log);
		unmap_left(p, c);
	}
	if (c && !err)
		err = control_resume(c);
	control_free(c);
	undo_log_fini(&log);
	if (is.fd >= 0)
		close(is.fd);
	vec_fini(&is.placed);
	return err;
}

struct err *process_extend(struct inproc_engine *e, struct inproc_process *p)
{
	enum { TRIES = 8 };
	struct err *err = NULL;

	for (int n = 0; n < TRIES; n++) {
		err_free(err);
		err = try_extend(e, p);
		if (!err || err->code != EEXIST)
			break;
		nap_ns(200000 << n);
	}
	return err ? err_wrap(err, "tracing libraries loaded by process %d", (int)p->pid) : NULL;
}
