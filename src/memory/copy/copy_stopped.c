/* Copies the memory of a process as it is at one moment: while it is stopped, or by a copy of the
 * process. */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "memory/copy/copy_private.h"

enum { STOP_MS = 2000 };

/* Returns the bytes of a process that are in memory, without files and shared memory. */
static uint64_t own_bytes(pid_t pid)
{
	unsigned long long resident = 0, shared = 0;
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%*u %llu %llu", &resident, &shared) != 2 || shared > resident)
		resident = shared = 0;
	fclose(f);
	return (resident - shared) * MEMORY_PAGE;
}

/* Lists what the copy of a process does not have, or has with other bytes. Shared memory is none of
 * its own: the process changes it while it goes on. */
static void list_kept(const struct mappings *maps, const struct mappings *of_copy,
		      const space_range_vec *absent, space_range_vec *ret)
{
	const uint64_t java_end = copy_java_end(maps);

	for (uint32_t i = 0, k = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->v[i];
		uint32_t at = mappings_from(of_copy, m->start);
		bool has = at < of_copy->n && of_copy->v[at].start <= m->start &&
			   of_copy->v[at].end >= m->end && !m->shared;

		if (!copy_wants(m, java_end))
			continue;
		while (k < absent->n && absent->v[k].end <= m->start)
			k++;
		if (!has || (k < absent->n && absent->v[k].start < m->end))
			vec_push(ret, (struct space_range){ m->start, m->end });
	}
}

/* Reads what must be read while the process is stopped. */
static struct err *read_stopped(struct memory_copy *c, struct space *s, struct control_copy *k,
				const space_range_vec *absent, space_range_vec *ret_kept)
{
	struct mappings of_copy = { 0 };
	const struct mappings *maps;
	struct err *e = copy_begin(c, s, &maps);

	e = e ?: mappings_read_whole(control_copy_pid(k), &of_copy);
	if (!e)
		list_kept(maps, &of_copy, absent, ret_kept);
	e = e ?: copy_keep(c, s, ret_kept);
	mappings_free(&of_copy);
	return e;
}

/* Reads the rest in the copy of the process. */
static struct err *read_copied(struct memory_copy *c, struct control_copy *k,
			       const space_range_vec *kept, bool files)
{
	struct space *s = NULL;
	struct err *e;

	control_copy_close(k);
	e = control_copy_pid(k) ? space_live(control_copy_pid(k), &s)
				: err_new(ESRCH, "it has ended");
	e = e ?: copy_read(c, s, kept, NULL);
	if (!e && files)
		e = memory_copy_files(c, s);
	space_free(s);
	if (!control_copy_lives(k)) {
		err_free(e);
		e = err_new(
			ESRCH,
			"its copy was ended while it was read; without one it is read while it is "
			"stopped");
	}
	return e;
}

static struct err *resume(struct memory_stop *p, uint64_t begun)
{
	struct err *e;

	p->moment = now_ns();
	e = control_resume(p->control);
	p->ns += now_ns() - begun;
	return e;
}

static struct err *both(struct err *e, struct err *again)
{
	if (e)
		err_free(again);
	return e ?: again;
}

static struct err *copy_whole(struct space *s, struct memory_room *room, bool files,
			      struct memory_copy **ret)
{
	struct memory_copy *c = NULL;
	struct err *e = memory_copy_into(s, room, &c);

	if (!e && files)
		e = memory_copy_files(c, s);
	if (e)
		memory_copy_free(c);
	else
		*ret = c;
	return e;
}

struct err *memory_copy_stopped(struct memory_stop *p, struct space *s, bool files,
				struct memory_copy **ret)
{
	space_range_vec absent = { 0 }, kept = { 0 };
	struct control_copy *k = NULL;
	struct memory_room *room = NULL;
	struct memory_copy *c = NULL;
	struct err *e, *refused = NULL;
	const char *why;
	uint64_t begun;

	if (!p->control)
		return copy_whole(s, NULL, files, ret);
	if (p->fork_above && own_bytes(control_pid(p->control)) > p->fork_above)
		p->fork = true;
	why = p->fork ? control_copy_refused(control_pid(p->control), &absent) : NULL;
	if (!p->fork || why)
		room = memory_room_new(s);
	begun = now_ns();
	e = control_stop(p->control, STOP_MS);
	if (!e && p->fork && !why) {
		refused = control_copy(p->control, &k);
		why = refused ? refused->text : NULL;
	}
	snprintf(p->whole, sizeof(p->whole), "%s", why ?: "");
	if (refused) { /* a thread may have left its stop */
		e = resume(p, begun);
		begun = now_ns();
		e = e ?: control_stop(p->control, STOP_MS);
	}
	err_free(refused);
	if (!e && k) {
		c = xcalloc(1, sizeof(*c));
		e = read_stopped(c, s, k, &absent, &kept);
		e = both(e, resume(p, begun));
		e = e ?: read_copied(c, k, &kept, files);
	} else if (!e) {
		e = copy_whole(s, room, files, &c);
		e = both(e, resume(p, begun));
	}
	p->ns += control_copy_free(k);
	memory_room_free(room);
	vec_fini(&absent);
	vec_fini(&kept);
	if (e)
		memory_copy_free(c);
	else
		*ret = c;
	return e;
}
